//! The runtime as its users see it.

mod queue;
mod queue_shuttle;
//! The runtime against the embedded API server.

mod connect;
mod connect_relay;
mod health;
mod metrics;
mod serve;
//! The runtime on the embedded API server.

mod condition;
mod events;
mod owner;
