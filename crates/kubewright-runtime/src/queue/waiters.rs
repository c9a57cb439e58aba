//! Workers that wait for an item.
//!
//! [`WaiterList`] tracks which workers wait, which were woken and have not run yet, and which one sleeps until the next
//! delayed item (the timer). Invariants after [`settle`](WaiterList::settle): if an item is ready and a worker waits,
//! one worker has been woken; if an item is delayed and a worker waits, one of them is the timer. A woken worker calls
//! [`leave`](WaiterList::leave) when it runs or is dropped, so that the next one can be woken. So workers wake one by
//! one, as many as there are items. It does not know items or locks.

use std::collections::VecDeque;
use std::task::Waker;
use std::time::Duration;

#[derive(Default)]
pub(super) struct WaiterList {
    /// Ordered by ticket, so the longest waiting first. The first is the timer. It is woken for an item only if no
    /// other worker waits, so that the timer rarely changes.
    parked: VecDeque<Parked>,
    /// The number of workers that were woken and have not left yet.
    woken: usize,
    next_ticket: Ticket,
    /// The timer, or the worker that was woken to become it, and its deadline. Reset when it leaves.
    watch: Option<(Ticket, Duration)>,
}

/// Identifies a worker during one wait.
pub(super) type Ticket = u64;

struct Parked {
    ticket: Ticket,
    waker: Waker,
}

impl WaiterList {
    pub(super) fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        self.next_ticket
    }

    /// Registers a waiting worker. Returns its deadline if it is the timer.
    pub(super) fn park(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
        next_at: Option<Duration>,
    ) -> Option<Duration> {
        let place = self.parked.partition_point(|parked| parked.ticket < ticket);
        self.parked.insert(place, Parked { ticket, waker: waker.clone() });
        let until = next_at.filter(|_| place == 0)?;
        self.watch = Some((ticket, until));
        Some(until)
    }

    /// Removes a worker that was woken or no longer waits.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.watch.take_if(|(watching, _)| *watching == ticket);
        match self.parked.binary_search_by_key(&ticket, |parked| parked.ticket) {
            Ok(place) => drop(self.parked.remove(place)),
            Err(_) => self.woken -= 1,
        }
    }

    /// Selects the workers to wake for the state of the queue.
    pub(super) fn settle(&mut self, ready: usize, next_at: Option<Duration>, wake: &mut Wakes) {
        if self.woken == 0 && ready > 0 {
            let place = usize::from(self.parked.len() > 1);
            if let Some(parked) = self.parked.remove(place) {
                self.woken += 1;
                wake.push(parked.waker);
            }
        }
        if let (Some(first), Some(at)) = (self.parked.front(), next_at) {
            let watched = self.watch.is_some_and(|(ticket, until)| ticket == first.ticket && until <= at);
            if !watched {
                self.watch = Some((first.ticket, at));
                wake.push(first.waker.clone());
            }
        }
    }

    pub(super) fn wake_all(&mut self, wake: &mut Wakes) {
        self.woken += self.parked.len();
        self.parked.drain(..).for_each(|parked| wake.push(parked.waker));
    }
}

/// The wakers to call after the lock is released. One needs no allocation.
#[derive(Default)]
pub(super) struct Wakes {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Wakes {
    pub(super) fn push(&mut self, waker: Waker) {
        match &self.first {
            None => self.first = Some(waker),
            Some(_) => self.others.push(waker),
        }
    }

    pub(super) fn wake(self) {
        self.first.into_iter().chain(self.others).for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_timer_that_finds_no_item_waits_again_and_is_woken_later() {
        let woken = Arc::new(Count::default());
        let waker = Waker::from(woken.clone());
        let mut waiters = WaiterList::default();
        let ticket = waiters.ticket();
        let (early, late) = (Duration::from_secs(1), Duration::from_secs(2));
        assert_eq!(waiters.park(ticket, &waker, Some(early)), Some(early));
        // The deadline passes, but another worker took the item.
        waiters.leave(ticket);
        assert_eq!(waiters.park(ticket, &waker, None), None);
        let mut wake = Wakes::default();
        waiters.settle(0, Some(late), &mut wake);
        wake.wake();
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    }
}
