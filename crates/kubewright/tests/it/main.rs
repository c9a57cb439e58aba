//! Tests of the facade.

mod apply;
mod declare;
mod documentation;
mod flags;
mod kinds;
mod object;
mod object_kinds;
mod prelude;
