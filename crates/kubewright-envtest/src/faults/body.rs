//! Response bodies of watches that can be cut, ended, expired or stalled.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use serde_json::json;

use super::request::RecordedRequest;

/// A fault of an open watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamFault {
    Cut,
    End,
    Expire,
    Stall,
}

/// Controls an open watch.
pub(super) struct Valve {
    pub(super) request: RecordedRequest,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    fate: Option<StreamFault>,
    waker: Option<Waker>,
}

impl Valve {
    pub(super) fn new(request: RecordedRequest) -> Self {
        Self { request, state: Mutex::default() }
    }

    pub(super) fn meet(&self, fate: Option<StreamFault>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.fate = fate;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    fn fate(&self, cx: &Context<'_>) -> Option<StreamFault> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waker = Some(cx.waker().clone());
        state.fate
    }
}

/// The source of a response body.
pub(super) enum Source {
    Embedded(kubewright_apiserver::Body),
    Remote(kube::client::Body),
}

/// A response body.
pub(crate) struct Answer {
    body: Source,
    valve: Option<Arc<Valve>>,
    over: bool,
}

impl Answer {
    pub(super) fn new(body: Source, valve: Option<Arc<Valve>>) -> Self {
        Self { body, valve, over: false }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let answer = self.get_mut();
        if answer.over {
            return Poll::Ready(None);
        }
        let fate = answer.valve.as_ref().and_then(|valve| valve.fate(cx));
        answer.over = matches!(fate, Some(StreamFault::Cut | StreamFault::End | StreamFault::Expire));
        match fate {
            None => match &mut answer.body {
                Source::Embedded(body) => Pin::new(body)
                    .poll_frame(cx)
                    .map(|frame| frame.map(|frame| frame.map_err(|never: Infallible| match never {}))),
                Source::Remote(body) => Pin::new(body)
                    .poll_frame(cx)
                    .map(|frame| frame.map(|frame| frame.map_err(io::Error::other))),
            },
            Some(StreamFault::Stall) => Poll::Pending,
            Some(StreamFault::End) => Poll::Ready(None),
            Some(StreamFault::Cut) => Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into()))),
            Some(StreamFault::Expire) => {
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": "too old resource version: 1 (2)", "reason": "Expired", "code": 410,
                });
                let line = format!("{}\n", json!({ "type": "ERROR", "object": status }));
                Poll::Ready(Some(Ok(Frame::data(line.into()))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let body = || match &self.body {
            Source::Embedded(body) => body.is_end_stream(),
            Source::Remote(body) => body.is_end_stream(),
        };
        self.over || (self.valve.is_none() && body())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            _ if self.valve.is_some() => SizeHint::default(),
            Source::Embedded(body) => body.size_hint(),
            Source::Remote(body) => body.size_hint(),
        }
    }
}
