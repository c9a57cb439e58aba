//! The operator as a program, against the embedded API server behind TLS.
#![cfg(unix)] // the tests send signals

mod cluster;
mod failures;
mod program;
mod relay;
mod runs;
mod signals;
