//! The facade as an operator's author sees it.

mod apply;
mod declare;
mod flags;
mod kinds;
mod object;
mod object_kinds;
