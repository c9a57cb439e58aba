//! A pool of HTTP/2 connections that limits the requests per connection.
//!
//! Servers limit the concurrent requests on an HTTP/2 connection (kube-apiserver: 100), and a watch is a request that
//! never ends. hyper's client queues excess requests on its single connection: an operator with 100 watches would never
//! get another response. So each [`Connection`] is a client with its own connection.
//!
//! Invariant: no connection carries more requests than the limit.
//!
//! Connections stay in the pool. hyper closes the socket of one without requests after a while.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

/// A pool of connections. Clones share it.
pub(super) struct ConnectionPool<C> {
    open: Arc<dyn Fn() -> C + Send + Sync>,
    opened: Arc<Mutex<Opened<C>>>,
    limit: usize,
}

struct Opened<C> {
    connections: Vec<Connection<C>>,
    generation: usize,
}

struct Connection<C> {
    client: C,
    /// One reference is held here, and one by each request until its response was read or dropped.
    running: Arc<()>,
}

/// A request's slot on a connection, held until this is dropped.
#[derive(Debug)]
pub(super) struct Slot(#[expect(dead_code, reason = "only its reference count is used")] Arc<()>);

impl<C: Clone> ConnectionPool<C> {
    /// Creates a pool with a limit of requests per connection. Connections are opened on demand.
    pub(super) fn new(limit: usize, open: impl Fn() -> C + Send + Sync + 'static) -> Self {
        let opened = Opened { connections: Vec::new(), generation: 0 };
        Self { open: Arc::new(open), opened: Arc::new(Mutex::new(opened)), limit: limit.max(1) }
    }

    /// Takes a slot on the first connection that has one, so that later connections become idle and close. Connections
    /// of another generation take no new requests, but finish theirs.
    pub(super) fn slot(&self, generation: usize) -> (C, Slot) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.generation != generation {
            *opened = Opened { connections: Vec::new(), generation };
        }
        let connections = &mut opened.connections;
        let free =
            connections.iter().position(|connection| Arc::strong_count(&connection.running) <= self.limit);
        let at = free.unwrap_or_else(|| {
            connections.push(Connection { client: (self.open)(), running: Arc::new(()) });
            connections.len() - 1
        });
        let connection = &connections[at];
        (connection.client.clone(), Slot(connection.running.clone()))
    }
}

impl<C> Clone for ConnectionPool<C> {
    fn clone(&self) -> Self {
        Self { open: self.open.clone(), opened: self.opened.clone(), limit: self.limit }
    }
}

/// A response body that keeps its slot until it is read or dropped.
#[derive(Debug)]
pub(super) struct PooledBody {
    body: Incoming,
    _slot: Slot,
}

impl PooledBody {
    pub(super) fn new(body: Incoming, slot: Slot) -> Self {
        Self { body, _slot: slot }
    }
}

impl Body for PooledBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    /// A pool whose connections are numbered in the order in which they are opened.
    fn numbered(limit: usize) -> ConnectionPool<usize> {
        let opened = AtomicUsize::new(0);
        ConnectionPool::new(limit, move || opened.fetch_add(1, Ordering::SeqCst))
    }

    #[test]
    fn a_connection_is_opened_when_the_others_are_full_and_reused_afterwards() {
        let pool = numbered(2);
        let mut slots: Vec<_> = (0..5).map(|_| pool.slot(0)).collect();
        assert_eq!(slots.iter().map(|(connection, _)| *connection).collect::<Vec<_>>(), [0, 0, 1, 1, 2]);
        slots.remove(1);
        assert_eq!(pool.clone().slot(0).0, 0);
    }

    proptest! {
        /// No connection exceeds its limit, and none is opened while another has a free slot.
        #[test]
        fn connections_never_exceed_their_limit(limit in 1..4_usize, steps in prop::collection::vec(0..8_usize, 0..60)) {
            let pool = numbered(limit);
            let mut running: Vec<(usize, Slot)> = Vec::new();
            let mut opened = 0;
            for step in steps {
                // One step in four ends a request, if there is one.
                if step < 2 && !running.is_empty() {
                    running.swap_remove(step % running.len());
                    continue;
                }
                let on = |connection: usize, running: &[(usize, Slot)]| running.iter().filter(|(of, _)| *of == connection).count();
                let first_free = (0..opened).find(|connection| on(*connection, &running) < limit);
                let (connection, slot) = pool.slot(0);
                prop_assert_eq!(connection, first_free.unwrap_or(opened));
                opened = opened.max(connection + 1);
                running.push((connection, slot));
                prop_assert!(on(connection, &running) <= limit);
            }
        }
    }
}
