//! Response bodies: complete, a list that is assembled while it is sent, or a stream of events.

mod joined;

use std::borrow::Cow;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Frame, SizeHint};

use joined::Joined;
pub(crate) use joined::{Items, Render};

/// The body of a response.
pub struct Body(Kind);

enum Kind {
    Whole(Bytes),
    Joined(Box<Joined>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    /// An empty body.
    pub fn empty() -> Self {
        Self(Kind::Whole(Bytes::new()))
    }

    /// The bytes of a complete body.
    pub(crate) fn into_whole(self) -> Result<Bytes, Self> {
        match self.0 {
            Kind::Whole(bytes) => Ok(bytes),
            other => Err(Self(other)),
        }
    }

    /// A list: `head`, the items joined with `separator`, and `tail`. Chunks are assembled when the reader
    /// polls.
    pub(crate) fn list(
        head: Vec<u8>,
        items: Items,
        separator: &'static [u8],
        tail: impl Into<Cow<'static, [u8]>>,
    ) -> Self {
        Self(Kind::Joined(Box::new(Joined::new(head, items, separator, tail.into()))))
    }

    /// A body that ends when the stream does.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Stream(Box::pin(stream)))
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self(Kind::Whole(bytes.into()))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().0 {
            Kind::Whole(bytes) => {
                let whole = std::mem::take(bytes);
                Poll::Ready((!whole.is_empty()).then(|| Ok(Frame::data(whole))))
            }
            Kind::Joined(joined) => joined.poll_next(cx).map(|next| next.map(|piece| Ok(Frame::data(piece)))),
            Kind::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|next| next.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Joined(joined) => joined.is_ended(),
            Kind::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Joined(joined) => {
                joined.left().map_or_else(SizeHint::default, |left| SizeHint::with_exact(left as u64))
            }
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            Kind::Whole(_) => "Body::Whole",
            Kind::Joined(_) => "Body::Joined",
            Kind::Stream(_) => "Body::Stream",
        })
    }
}
