//! The chores, tried from outside: on workspaces with planted violations, and as a program.

mod facts;
mod help;
mod readme;
mod tidy;
