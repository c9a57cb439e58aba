//! Where threads meet: the lock and the clock of [`SharedQueue`](super::SharedQueue).
//!
//! They stand in a module of their own so that a test can build the same code on shuttle's, which tries the
//! schedules that a machine seldom shows.

pub(super) use std::sync::{Arc, Mutex, MutexGuard};

pub(super) use tokio::time::{Instant, Sleep, sleep_until};
