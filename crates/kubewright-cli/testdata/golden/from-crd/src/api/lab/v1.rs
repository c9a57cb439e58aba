//! Version v1 of lab.example.com.

mod oddity;
mod root;

pub use oddity::*;
pub use root::*;
