//! Workers that wait for an item.
//!
//! Owns [`WaiterList`]: which workers wait, which were woken and have not run yet, and which one watches the clock. Two things hold after
//! [`settle`](WaiterList::settle): if an item is ready and a worker waits, one was woken and is on its way; and if an
//! item is delayed and a worker waits, one of them watches the clock. A woken worker that comes or goes says so with
//! [`leave`](WaiterList::leave), so that the next one can be woken: that one by one as many come as there are items, and
//! none comes in vain because others were faster. It knows nothing of items or locks.

use std::collections::VecDeque;
use std::task::Waker;
use std::time::Duration;

#[derive(Default)]
pub(super) struct WaiterList {
    /// By ticket, which is by who came first. The first watches the clock, and is woken for an item only if there
    /// is nobody else, so that the watch seldom changes.
    parked: VecDeque<Parked>,
    /// How many were woken and have not left yet.
    woken: usize,
    next_ticket: Ticket,
    /// Who watches the clock, or was woken to do so, and until when. Ends when that one leaves, even if it comes back.
    watch: Option<(Ticket, Duration)>,
}

/// The name of a worker for the time of one wait.
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

    /// A worker waits. Returns until when it watches the clock, if it is the one.
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

    /// A worker that parked does not wait any more, because it was woken or because it gave up.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.watch.take_if(|(watching, _)| *watching == ticket);
        match self.parked.binary_search_by_key(&ticket, |parked| parked.ticket) {
            Ok(place) => drop(self.parked.remove(place)),
            Err(_) => self.woken -= 1,
        }
    }

    /// Wakes whom the state of the queue calls for.
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

/// Whom to wake once the lock is free. One costs no allocation.
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
    fn who_watched_the_clock_and_came_back_to_nothing_is_told_when_there_is_something_again() {
        let woken = Arc::new(Count::default());
        let waker = Waker::from(woken.clone());
        let mut waiters = WaiterList::default();
        let ticket = waiters.ticket();
        let (early, late) = (Duration::from_secs(1), Duration::from_secs(2));
        assert_eq!(waiters.park(ticket, &waker, Some(early)), Some(early));
        // The time comes, but somebody else was faster.
        waiters.leave(ticket);
        assert_eq!(waiters.park(ticket, &waker, None), None);
        let mut wake = Wakes::default();
        waiters.settle(0, Some(late), &mut wake);
        wake.wake();
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    }
}
