//! Tests of the facade.

mod apply;
mod debug_page;
mod declare;
mod documentation;
mod flags;
mod kinds;
mod monitoring;
mod object;
mod object_kinds;
mod prelude;
mod troubleshooting;
