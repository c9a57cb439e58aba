//! The lock and the clock of [`SharedQueue`](super::SharedQueue).
//!
//! They are a separate module, so that a test can compile the same code with shuttle's lock, which explores rare thread
//! schedules.

pub(super) use std::sync::{Arc, Mutex, MutexGuard};

pub(super) use tokio::time::{Instant, Sleep, sleep_until};
