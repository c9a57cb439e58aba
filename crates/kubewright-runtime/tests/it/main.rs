//! The runtime as its users see it.

mod queue;
mod queue_shuttle;
//! The runtime against the embedded API server.

mod health;
mod metrics;
mod serve;
