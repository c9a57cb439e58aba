//! Synchronization primitives that wake tasks in a fixed order.
//!
//! The API server and the runtime use them, so that a test with a fixed seed and a paused clock makes the
//! same requests in the same order every time.

pub mod ordered_watch;
