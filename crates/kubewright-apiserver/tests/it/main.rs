//! Unmodified clients on the embedded server, and everything that they may count on.

mod api;
mod world;
