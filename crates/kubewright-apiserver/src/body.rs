//! Bodies of answers: whole, in shared pieces, or a stream of events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Frame, SizeHint};

/// The body of an answer.
pub struct Body(Kind);

enum Kind {
    Pieces(VecDeque<Bytes>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    /// No body.
    pub fn empty() -> Self {
        Self(Kind::Pieces(VecDeque::new()))
    }

    /// Pieces that are sent one after the other, without copying them together.
    pub fn pieces(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        Self(Kind::Pieces(pieces.into_iter().filter(|piece| !piece.is_empty()).collect()))
    }

    /// A body that ends when the stream does.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Stream(Box::pin(stream)))
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self::pieces([bytes.into()])
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
            Kind::Pieces(pieces) => Poll::Ready(pieces.pop_front().map(|piece| Ok(Frame::data(piece)))),
            Kind::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|next| next.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Pieces(pieces) if pieces.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Pieces(pieces) => SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum()),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            Kind::Pieces(_) => "Body::Pieces",
            Kind::Stream(_) => "Body::Stream",
        })
    }
}
