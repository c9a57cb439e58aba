//! Environments as tests use them.

mod environments;
mod faults;
mod tutorial;
