//! Runs the commands as a program and on workspaces with deliberate violations.

mod api;
mod facts;
mod features;
mod help;
mod packages;
mod readme;
mod tidy;
