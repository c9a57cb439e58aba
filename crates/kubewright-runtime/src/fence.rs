//! The fence: up to when writes may leave this process.
//!
//! An [`Election`](crate::Election) moves the deadline of its fence with every renewal; whoever writes to the API
//! server asks the fence first. The one invariant: **at no moment are the fences of two contenders for one Lease
//! open**. Nothing here talks to the server or decides who leads.
//!
//! # Why two are never open at once
//!
//! Let `D` be the Lease's duration and `R` the renew deadline. A leader's fence is open up to `sent + R`, where
//! `sent` was read from the local clock *before* the last successful write of the Lease was sent.
//!
//! 1. Nobody sees a record before the server stored it, and the server does not store it before it was sent. Another
//!    contender therefore begins to count the record's age at `sent` or later, by its own clock.
//! 2. It takes the Lease over no sooner than when it has counted `D`, and only if the record is still the last one:
//!    its write names the `resourceVersion` that it read. A renewal that the server stored before makes that write
//!    fail; a renewal that comes after fails itself. So of the leader's successful writes, the overtaken record is
//!    the last or a later one, and the other's fence opens at `sent + D` or later.
//! 3. Clocks are never compared, only durations. If each clock runs wrong by at most the fraction `p`, then `R` takes
//!    the leader at most `R / (1 - p)` and `D` takes the other at least `D / (1 + p)`. [`ElectionOptions`]
//!    demand `R <= 0.98 D`, which holds for `p` = 1 %; the defaults (10 s of 15 s) hold for 20 %.
//!
//! A leader that gives the Lease up closes its fence before it says so to the server.
//!
//! [`ElectionOptions`]: crate::ElectionOptions

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::Clock;

/// Says whether a write may leave now. Cheap to clone; all clones are one fence.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use kubewright_runtime::Fence;
///
/// // Without leader election nothing is ever refused.
/// let fence = Fence::open();
/// assert!(fence.check().unwrap().instant().is_none());
/// let written = fence.guard(async { "written" }).await;
/// assert_eq!(written, Ok("written"));
/// # });
/// ```
///
/// The fence of an election comes from [`Election::fence`](crate::Election::fence). It is closed until the election
/// is won, and again when the renew deadline has passed since the last renewal was *sent*, which is before any other
/// contender may consider the Lease expired.
///
/// # A process that stood still
///
/// Tokio's clock (`CLOCK_MONOTONIC` on Linux) goes on while a process is stopped (SIGSTOP, a debugger, a frozen
/// cgroup), so that the first check after it refuses. It does not go on while the *machine* is suspended, and a
/// virtual machine that was paused may not notice either. Therefore each renewal also notes the time of day, and a
/// check refuses when the [`Clock`] is past it by the same span. A time of day that is set forward by hand closes
/// the fence too, until the next renewal; that costs a retry period and no safety. A machine that is suspended *and*
/// has its time of day set back by as much goes unnoticed.
///
/// # What it cannot promise
///
/// - A request whose bytes have left cannot be called back: one that was sent at the last moment may be stored
///   later. The time between renew deadline and lease duration is what it has to arrive. What must hold without
///   exception needs a precondition, such as a `resourceVersion`.
/// - Only what goes through the fence is fenced, and a future that hands work to another task takes it out of
///   [`guard`](Self::guard)'s reach.
/// - Whoever deletes the Lease, or writes another holder into it, takes it by force.
/// - Two processes with one identity are one contender to everybody.
/// - Contenders in Go see two renewals within one second of the time of day as one, because client-go compares
///   records to the second. Beside them, a retry period below 1 s wants a renew deadline that is 1 s shorter than the
///   lease duration; the defaults are far from it.
#[derive(Clone)]
pub struct Fence(Option<Arc<Shared>>);

/// Why a write may not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fenced {
    /// The Lease is another's, or nobody's, or was given up.
    #[error("this replica does not lead")]
    NotLeading,
    /// The Lease was not renewed in time; another replica may lead now.
    #[error("the lease was not renewed in time, so another replica may lead now")]
    Expired,
    /// By the time of day the Lease was not renewed in time, although the process did not notice that time went by.
    #[error("the time of day is past the lease's deadline: the machine was suspended, or its clock was set")]
    Suspended,
}

/// Up to when an open fence stays open, unless the Lease is renewed or given up meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// The moment; none without leader election.
    pub fn instant(self) -> Option<Instant> {
        self.0
    }

    /// What is left, for the timeout of a request; none without leader election.
    pub fn remaining(self) -> Option<Duration> {
        self.0.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }
}

impl Fence {
    /// The fence of a process without leader election: always open, at no cost.
    pub fn open() -> Self {
        Self(None)
    }

    /// A closed fence, and what opens it. Must be called within a runtime, because its clock is the runtime's.
    pub(crate) fn closed(clock: Arc<dyn Clock>) -> (Gate, Self) {
        let shared = Arc::new(Shared {
            zero: Instant::now(),
            deadline: AtomicU64::new(CLOSED),
            wall: AtomicI64::new(i64::MIN),
            closed: Notify::new(),
            clock,
        });
        (Gate(shared.clone()), Self(Some(shared)))
    }

    /// Whether a write may leave now, and up to when the next ones may.
    ///
    /// Takes no lock. An answer is old as soon as it is given; what takes time belongs into [`guard`](Self::guard).
    pub fn check(&self) -> Result<Deadline, Fenced> {
        match &self.0 {
            None => Ok(Deadline(None)),
            Some(shared) => shared.check().map(|deadline| Deadline(Some(deadline))),
        }
    }

    /// Runs `future` while the fence is open, and drops it at the moment when it closes, so that it sends nothing
    /// more. A renewal meanwhile gives it more time.
    ///
    /// The fence is asked before each poll: a process that stood still past its deadline does not take one step of
    /// `future` when it wakes up.
    pub async fn guard<F: Future>(&self, future: F) -> Result<F::Output, Fenced> {
        match &self.0 {
            None => Ok(future.await),
            Some(shared) => shared.guard(future).await,
        }
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fence").field(&self.check()).finish()
    }
}

/// The election's side of a [`Fence`].
pub(crate) struct Gate(Arc<Shared>);

impl Gate {
    /// Opens the fence, or keeps it open, up to `deadline`, which the time of day will call `wall`.
    pub(crate) fn hold(&self, deadline: Instant, wall: Timestamp) {
        let shared = &self.0;
        let nanos = deadline.saturating_duration_since(shared.zero).as_nanos();
        // A reader loads the deadline first. With the new one it finds the new time of day; with the old one it may
        // find either, and at worst refuses what a moment later is allowed.
        shared.wall.store(wall.as_microsecond(), Ordering::Release);
        shared.deadline.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Closes the fence and drops what it guards.
    pub(crate) fn close(&self) {
        let shared = &self.0;
        shared.deadline.store(CLOSED, Ordering::Release);
        shared.closed.notify_waiters();
    }
}

/// The deadline of a closed fence: long ago.
const CLOSED: u64 = 0;

struct Shared {
    zero: Instant,
    /// In nanoseconds since `zero`.
    deadline: AtomicU64,
    /// The same moment by the time of day, in microseconds.
    wall: AtomicI64,
    /// Told when the fence closes before its deadline.
    closed: Notify,
    clock: Arc<dyn Clock>,
}

impl Shared {
    fn check(&self) -> Result<Instant, Fenced> {
        let nanos = self.deadline.load(Ordering::Acquire);
        if nanos == CLOSED {
            return Err(Fenced::NotLeading);
        }
        let deadline = self.zero + Duration::from_nanos(nanos);
        if Instant::now() >= deadline {
            return Err(Fenced::Expired);
        }
        if self.clock.now().as_microsecond() >= self.wall.load(Ordering::Acquire) {
            return Err(Fenced::Suspended);
        }
        Ok(deadline)
    }

    async fn guard<F: Future>(&self, future: F) -> Result<F::Output, Fenced> {
        let mut future = pin!(future);
        // Exists before the first check, so that no closing is missed; costs nothing until it is polled.
        let mut closed = pin!(self.closed.notified());
        let mut timer = pin!(sleep_until(self.check()?));
        poll_fn(|cx| {
            if let Err(fenced) = self.check() {
                return Poll::Ready(Err(fenced));
            }
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            loop {
                if closed.as_mut().poll(cx).is_ready() {
                    closed.set(self.closed.notified());
                } else if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                // Renewals do not touch the timer: one that fires looks whether there was one.
                match self.check() {
                    Ok(deadline) => timer.as_mut().reset(deadline),
                    Err(fenced) => return Poll::Ready(Err(fenced)),
                }
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests;
