//! The operator as a program, against the embedded API server behind TLS.

mod cluster;
mod failures;
mod program;
mod relay;
mod runs;
mod signals;
