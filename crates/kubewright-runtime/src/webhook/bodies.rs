//! Reads request bodies within one budget of memory.
//!
//! Clients of the webhook server are not authenticated, so anyone in the cluster can send large bodies and never finish
//! them. [`Bodies`] limits the bytes of all bodies together. If a body does not fit, the body that has been read for
//! longest gives way, so that slow clients cannot keep others out. A body of the API server arrives within milliseconds
//! and is not affected.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Limited};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::BoxError;

/// How long a body may be read before it can be rejected in favor of another one.
const GRACE: Duration = Duration::from_secs(1);

/// A body could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the request body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("failed to read the request body: {0}")]
    Read(BoxError),
    #[error("the request body arrives too slowly, and its memory is needed for other requests")]
    TooSlow,
}

/// The bodies of all running requests. Clones share the budget.
#[derive(Clone)]
pub(super) struct Bodies {
    budget: usize,
    largest: usize,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Default)]
struct State {
    used: usize,
    next: u64,
    /// Bodies that are not complete, oldest first.
    reading: BTreeMap<u64, Reading>,
}

struct Reading {
    since: Instant,
    bytes: usize,
    rejected: CancellationToken,
}

/// The memory of a complete body. Dropping it frees the memory.
pub(super) struct Held {
    bytes: usize,
    shared: Arc<Shared>,
}

/// The memory of a body that is being read.
struct Lease<'a> {
    id: u64,
    rejected: CancellationToken,
    bodies: &'a Bodies,
}

impl Bodies {
    /// `largest` is the limit of one body. The budget must not be smaller.
    pub(super) fn new(budget: usize, largest: usize) -> Self {
        Self { budget, largest, shared: Arc::default() }
    }

    /// Reads a whole body.
    pub(super) async fn read<B>(&self, body: B) -> Result<(Bytes, Held), BodyError>
    where
        B: http_body::Body + Send,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let lease = self.lease();
        let reading = async {
            let mut body = std::pin::pin!(Limited::new(body, self.largest));
            let mut content = BytesMut::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| {
                    if error.is::<http_body_util::LengthLimitError>() {
                        BodyError::TooLarge(self.largest)
                    } else {
                        BodyError::Read(error)
                    }
                })?;
                if let Ok(data) = frame.into_data() {
                    lease.reserve(data.remaining()).await;
                    content.put(data);
                }
            }
            Ok(content.freeze())
        };
        tokio::select! {
            biased;
            () = lease.rejected.cancelled() => Err(BodyError::TooSlow),
            content = reading => Ok((content?, lease.complete())),
        }
    }

    fn lease(&self) -> Lease<'_> {
        let mut state = self.shared.state();
        let id = state.next;
        state.next += 1;
        let rejected = CancellationToken::new();
        state.reading.insert(id, Reading { since: Instant::now(), bytes: 0, rejected: rejected.clone() });
        Lease { id, rejected, bodies: self }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Rejects the oldest body, if it is old enough. Otherwise returns when that is the case; `None` if there is none.
    fn reject_oldest(&mut self, now: Instant) -> Result<(), Option<Instant>> {
        // A body without memory frees nothing.
        let oldest = self.reading.iter().find(|(_, reading)| reading.bytes > 0);
        let Some((&id, reading)) = oldest else { return Err(None) };
        let until = reading.since + GRACE;
        if now < until {
            return Err(Some(until));
        }
        if let Some(reading) = self.reading.remove(&id) {
            self.used -= reading.bytes;
            reading.rejected.cancel();
        }
        Ok(())
    }
}

impl Lease<'_> {
    /// Waits until the budget has room for more bytes of this body.
    async fn reserve(&self, bytes: usize) {
        let Bodies { budget, shared, .. } = self.bodies;
        loop {
            // Before the check, so that no memory is freed unnoticed in between.
            let freed = shared.freed.notified();
            let wait_until = {
                let mut state = shared.state();
                loop {
                    let state = &mut *state;
                    if state.used + bytes <= *budget {
                        // A body that was rejected is dropped at the next await.
                        let Some(reading) = state.reading.get_mut(&self.id) else { break None };
                        reading.bytes += bytes;
                        state.used += bytes;
                        return;
                    }
                    match state.reject_oldest(Instant::now()) {
                        Ok(()) => shared.freed.notify_waiters(),
                        Err(until) => break until,
                    }
                }
            };
            let grace_ends = async {
                match wait_until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = freed => {}
                () = grace_ends => {}
            }
        }
    }

    /// Ends the reading of the body. Its memory stays reserved, and the body is no longer rejected.
    fn complete(self) -> Held {
        let shared = Arc::clone(&self.bodies.shared);
        let reading = shared.state().reading.remove(&self.id);
        Held { bytes: reading.map_or(0, |reading| reading.bytes), shared }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.bodies.shared.state();
        if let Some(reading) = state.reading.remove(&self.id) {
            state.used -= reading.bytes;
            self.bodies.shared.freed.notify_waiters();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.state().used -= self.bytes;
        self.shared.freed.notify_waiters();
    }
}
