//! The pure rules of Kubernetes objects.
//!
//! Nothing here does I/O, reads a clock or draws a random number, and nothing here knows tokio: the same
//! input gives the same answer. The API server, the manifest generator and the runtime call these rules;
//! they never write their own.

pub mod decode;
pub mod duration;
pub mod encode;
pub mod types;
pub mod field;
pub mod gvk;
pub mod json;
mod keyed;
pub mod names;
pub mod nearest;
pub mod object;
pub mod patch;
pub mod permission;
pub mod quantity;
pub mod selector;
pub mod status;
pub mod time;
