//! Ends connections that send no request.
//!
//! hyper has one timeout for the headers of a request and for the pause before them. They must differ: a client that
//! sends its headers slowly is closed early, while an idle connection stays open for longer than Go's clients keep it. If
//! the server closed it first, a request that the client sends at the same moment would fail.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// The timeout of request headers, as in controller-runtime.
const HEADERS: Duration = Duration::from_secs(32);
/// The timeout between two requests. Go's HTTP clients close idle connections after 90 s.
const IDLE: Duration = Duration::from_mins(2);

/// What a connection waits for. Clones share it.
#[derive(Clone)]
pub(super) struct Phase(Arc<Mutex<State>>);

struct State {
    waiting: Waiting,
    /// The task of a read that has no deadline. hyper does not read again after the response, because this read still
    /// waits.
    reader: Option<Waker>,
}

enum Waiting {
    /// For the rest of the headers, until this time.
    Headers(Instant),
    /// For the next request, until this time.
    Request(Instant),
    /// For the handler, which has its own deadline.
    Handler,
}

impl Phase {
    /// A new connection: its first request must follow.
    pub(super) fn new() -> Self {
        let waiting = Waiting::Headers(Instant::now() + HEADERS);
        Self(Arc::new(Mutex::new(State { waiting, reader: None })))
    }

    /// The headers are complete.
    pub(super) fn begun(&self) {
        self.state().waiting = Waiting::Handler;
    }

    /// The handler has returned.
    pub(super) fn ended(&self) {
        let mut state = self.state();
        state.waiting = Waiting::Request(Instant::now() + IDLE);
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }

    fn received(&self) {
        let mut state = self.state();
        if matches!(state.waiting, Waiting::Request(_)) {
            state.waiting = Waiting::Headers(Instant::now() + HEADERS);
        }
    }

    /// The deadline of a read. Without one, the task is woken when the next request can begin.
    fn deadline(&self, cx: &Context<'_>) -> Option<Instant> {
        let mut state = self.state();
        match state.waiting {
            Waiting::Headers(until) | Waiting::Request(until) => Some(until),
            Waiting::Handler => {
                state.reader = Some(cx.waker().clone());
                None
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream whose reads fail at the deadline of its phase.
pub(super) struct ReadTimeout<S> {
    stream: S,
    phase: Phase,
    sleep: Pin<Box<Sleep>>,
}

impl<S> ReadTimeout<S> {
    pub(super) fn new(stream: S, phase: Phase) -> Self {
        let sleep = Box::pin(tokio::time::sleep(HEADERS));
        Self { stream, phase, sleep }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buffer) {
            if buffer.filled().len() > before {
                self.phase.received();
            }
            return Poll::Ready(read);
        }
        let Some(deadline) = self.phase.deadline(cx) else { return Poll::Pending };
        if self.sleep.deadline() != deadline {
            self.sleep.as_mut().reset(deadline);
        }
        ready!(self.sleep.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client sends no request")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
