//! Connections that are shared, and how many requests each may carry.
//!
//! A server limits the requests that run at once on an HTTP/2 connection, kube-apiserver to 100, and a watch is one
//! that never ends. hyper's client keeps what is above the limit waiting on its one connection: an operator with 100
//! watches would never get another answer. So each [`Lane`] is a client with a connection of its own, and the
//! invariant is that no lane carries more requests than it may.
//!
//! A lane once opened stays: without requests its connection is closed after a while, and a few bytes are left.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

/// Lanes of some kind of client. Clones share them.
pub(super) struct Lanes<C> {
    open: Arc<dyn Fn() -> C + Send + Sync>,
    opened: Arc<Mutex<Opened<C>>>,
    most: usize,
}

struct Opened<C> {
    lanes: Vec<Lane<C>>,
    generation: usize,
}

struct Lane<C> {
    client: C,
    /// Held once here, and once by each request until its answer has been read or dropped.
    running: Arc<()>,
}

/// A request's place on a lane, for as long as this lives.
#[derive(Debug)]
pub(super) struct Place(#[expect(dead_code, reason = "it is its being there that counts")] Arc<()>);

impl<C: Clone> Lanes<C> {
    /// Lanes of at most so many requests, which are opened as they are needed.
    pub(super) fn new(most: usize, open: impl Fn() -> C + Send + Sync + 'static) -> Self {
        let opened = Opened { lanes: Vec::new(), generation: 0 };
        Self { open: Arc::new(open), opened: Arc::new(Mutex::new(opened)), most: most.max(1) }
    }

    /// A place on the first lane that has one. Later lanes empty first, so that connections end when they can. Lanes
    /// of another generation take no more requests; those on them go on.
    pub(super) fn place(&self, generation: usize) -> (C, Place) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.generation != generation {
            *opened = Opened { lanes: Vec::new(), generation };
        }
        let lanes = &mut opened.lanes;
        let free = lanes.iter().position(|lane| Arc::strong_count(&lane.running) <= self.most);
        let at = free.unwrap_or_else(|| {
            lanes.push(Lane { client: (self.open)(), running: Arc::new(()) });
            lanes.len() - 1
        });
        let lane = &lanes[at];
        (lane.client.clone(), Place(lane.running.clone()))
    }
}

impl<C> Clone for Lanes<C> {
    fn clone(&self) -> Self {
        Self { open: self.open.clone(), opened: self.opened.clone(), most: self.most }
    }
}

/// An answer's body, which keeps its place until it is read or dropped.
#[derive(Debug)]
pub(super) struct Placed {
    body: Incoming,
    _place: Place,
}

impl Placed {
    pub(super) fn new(body: Incoming, place: Place) -> Self {
        Self { body, _place: place }
    }
}

impl Body for Placed {
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

    /// Lanes that are named by the order in which they were opened.
    fn numbered(most: usize) -> Lanes<usize> {
        let opened = AtomicUsize::new(0);
        Lanes::new(most, move || opened.fetch_add(1, Ordering::SeqCst))
    }

    #[test]
    fn a_lane_is_opened_when_the_others_are_full_and_used_again_when_not() {
        let lanes = numbered(2);
        let mut places: Vec<_> = (0..5).map(|_| lanes.place(0)).collect();
        assert_eq!(places.iter().map(|(lane, _)| *lane).collect::<Vec<_>>(), [0, 0, 1, 1, 2]);
        places.remove(1);
        assert_eq!(lanes.clone().place(0).0, 0);
    }

    proptest! {
        /// No lane is ever above its limit, and no lane is opened while another has a place.
        #[test]
        fn lanes_are_full_and_never_more_than_full(most in 1..4_usize, steps in prop::collection::vec(0..8_usize, 0..60)) {
            let lanes = numbered(most);
            let mut running: Vec<(usize, Place)> = Vec::new();
            let mut opened = 0;
            for step in steps {
                // One in four ends a request, if there is one.
                if step < 2 && !running.is_empty() {
                    running.swap_remove(step % running.len());
                    continue;
                }
                let on = |lane: usize, running: &[(usize, Place)]| running.iter().filter(|(of, _)| *of == lane).count();
                let first_free = (0..opened).find(|lane| on(*lane, &running) < most);
                let (lane, place) = lanes.place(0);
                prop_assert_eq!(lane, first_free.unwrap_or(opened));
                opened = opened.max(lane + 1);
                running.push((lane, place));
                prop_assert!(on(lane, &running) <= most);
            }
        }
    }
}
