//! The fence: the deadline until which this process may send writes.
//!
//! An [`Election`](crate::election::Election) extends the deadline of its fence with every renewal, and every write to the API
//! server checks the fence first. The invariant: **the fences of two contenders for one Lease are never open at the
//! same time**. This module sends no requests and does not elect the leader.
//!
//! # Why two are never open at once
//!
//! Let `D` be the lease duration and `R` the renew deadline. A leader's fence is open until `sent + R`, where `sent`
//! was read from the local clock *before* the last successful write of the Lease was sent.
//!
//! 1. A record is visible only after the server stored it, and the server stores it after it was sent. Another
//!    contender therefore starts to count the record's age at `sent` or later, by its own clock.
//! 2. It acquires the Lease only after it has counted `D`, and only if the record is still current: its write has the
//!    `resourceVersion` that it read. If the server stored a renewal before, that write fails; a renewal that arrives
//!    later fails itself. So the record that was replaced is the leader's last successful write or a later one, and
//!    the other fence opens at `sent + D` or later.
//! 3. Clocks are never compared, only durations. If each clock drifts by at most the fraction `p`, then `R` takes the
//!    leader at most `R / (1 - p)`, and `D` takes the other at least `D / (1 + p)`. [`LeaderElectionOptions`] require
//!    `R <= 0.98 D`, which is safe for `p` = 1 %; the defaults (10 s of 15 s) are safe for 20 %.
//!
//! A leader that releases the Lease closes its fence before it sends the release.
//!
//! [`LeaderElectionOptions`]: crate::LeaderElectionOptions

mod layer;

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

pub(crate) use self::layer::is_read;
pub use self::layer::{FenceLayer, FenceService};
use crate::Clock;

/// Whether a write may be sent now. Cheap to clone; clones share one fence.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use kubewright_runtime::internal::Fence;
///
/// // Without leader election, every write is allowed.
/// let fence = Fence::open();
/// assert!(fence.check().unwrap().instant().is_none());
/// let written = fence.guard(async { "written" }).await;
/// assert_eq!(written, Ok("written"));
/// # });
/// ```
///
/// [`Election::fence`](crate::election::Election::fence) returns the fence of an election. It is closed until the election is
/// won. It closes again when the renew deadline has passed since the last renewal was *sent*, which is before any other
/// contender may consider the Lease expired.
///
/// # Paused processes
///
/// Tokio's clock (`CLOCK_MONOTONIC` on Linux) continues while a process is stopped (SIGSTOP, a debugger, a frozen
/// cgroup), so the first check after the pause fails. It stops while the *machine* is suspended, and possibly while a
/// virtual machine is paused. Therefore each renewal also sets a deadline on the wall clock, and a check fails when the
/// [`Clock`] is past it. Setting the wall clock forward closes the fence too, until the next renewal; that costs a
/// retry period and no safety. A machine that is suspended *and* has its wall clock set back by as much is not
/// detected.
///
/// # Limitations
///
/// - A request that was sent cannot be recalled: one sent shortly before the deadline may be stored later. It has the
///   time between renew deadline and lease duration to arrive. Where this matters, use a precondition such as
///   `resourceVersion`.
/// - Only writes that go through the fence are fenced. A future that passes work to another task moves it out of the
///   scope of [`guard`](Self::guard).
/// - A client that deletes the Lease or writes another holder into it breaks the guarantee.
/// - Two processes with the same identity count as one contender.
/// - client-go compares records to the second, so contenders in Go see two renewals within one second as one. With such
///   contenders, a retry period below 1 s needs a renew deadline at least 1 s shorter than the lease duration. The
///   defaults satisfy this.
#[derive(Clone)]
pub struct Fence(Option<Arc<Shared>>);

/// Why a write may not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fenced {
    /// Another replica holds the Lease, or it has no holder, or it was released.
    #[error("this replica is not the leader")]
    NotLeading,
    /// The Lease was not renewed in time; another replica may lead now.
    #[error("the lease was not renewed in time; another replica may lead now")]
    Expired,
    /// The wall clock is past the lease's deadline, although the monotonic clock is not.
    #[error(
        "the wall clock is past the lease's deadline: the machine was suspended or its clock was changed"
    )]
    Suspended,
}

/// Until when an open fence stays open, unless the Lease is renewed or released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// The deadline; `None` without leader election.
    pub fn instant(self) -> Option<Instant> {
        self.0
    }

    /// The remaining time, for request timeouts; `None` without leader election.
    pub fn remaining(self) -> Option<Duration> {
        self.0.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }
}

impl Fence {
    /// A fence that is always open, for a process without leader election.
    pub fn open() -> Self {
        Self(None)
    }

    /// A closed fence and the gate that opens it. Must be called within a tokio runtime, because it uses its clock.
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

    /// Whether a write may be sent now, and until when further writes may.
    ///
    /// Lock-free. The result is outdated immediately; use [`guard`](Self::guard) for anything that takes time.
    pub fn check(&self) -> Result<Deadline, Fenced> {
        match &self.0 {
            None => Ok(Deadline(None)),
            Some(shared) => shared.check().map(|deadline| Deadline(Some(deadline))),
        }
    }

    /// Runs `future` while the fence is open, and drops it when the fence closes, so that it sends nothing more. A
    /// renewal extends its time.
    ///
    /// The fence is checked before each poll: a process that was paused past its deadline does not poll `future` again.
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

/// The election's handle to a [`Fence`].
pub(crate) struct Gate(Arc<Shared>);

impl Gate {
    /// Opens the fence, or keeps it open, until `deadline`; `wall` is the same time on the wall clock.
    pub(crate) fn hold(&self, deadline: Instant, wall: Timestamp) {
        let shared = &self.0;
        let nanos = deadline.saturating_duration_since(shared.zero).as_nanos();
        // Readers load the deadline first. With the new deadline they see the new wall time; with the old one they may
        // see either, and at worst reject a write that would be allowed a moment later.
        shared.wall.store(wall.as_microsecond(), Ordering::Release);
        shared.deadline.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Closes the fence and cancels guarded futures.
    pub(crate) fn close(&self) {
        let shared = &self.0;
        shared.deadline.store(CLOSED, Ordering::Release);
        shared.closed.notify_waiters();
    }
}

/// The deadline of a closed fence.
const CLOSED: u64 = 0;

struct Shared {
    zero: Instant,
    /// In nanoseconds since `zero`.
    deadline: AtomicU64,
    /// The same deadline on the wall clock, in microseconds.
    wall: AtomicI64,
    /// Notified when the fence closes before its deadline.
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
        // Created before the first check, so that no close is missed; free until polled.
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
                // Renewals do not reset the timer: when it fires, check for a later deadline.
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
