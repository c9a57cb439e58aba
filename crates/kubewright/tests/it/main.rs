//! The facade as an operator's author sees it.

mod flags;
mod kinds;
