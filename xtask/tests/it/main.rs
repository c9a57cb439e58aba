//! Runs the commands as a program and on workspaces with deliberate violations.

mod facts;
mod help;
mod readme;
mod tidy;
