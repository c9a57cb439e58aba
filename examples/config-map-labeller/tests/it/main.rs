//! The operator as a program, against the embedded API server behind TLS.
#![cfg(unix)] // it is told to end by signals

mod cluster;
mod failures;
mod program;
mod relay;
mod runs;
mod signals;
