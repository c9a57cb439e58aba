//! The runtime as its users see it.

mod queue;
mod queue_shuttle;
