//! Environments as tests use them.

mod tutorial;
