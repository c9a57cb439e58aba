//! Environments as tests use them.

mod environments;
mod faults;
mod markdown_view;
mod observing;
mod tutorial;
mod users;
