//! The pure rules of Kubernetes objects.
//!
//! Nothing here does I/O, reads a clock or draws a random number, and nothing here knows tokio: the same
//! input gives the same answer. The API server, the manifest generator and the runtime call these rules;
//! they never write their own.

pub mod apply;
pub mod cel;
pub mod convert;
pub mod crd;
pub mod custom;
pub mod decode;
pub mod defaults;
pub mod duration;
pub mod encode;
pub mod facts;
pub mod field;
pub mod gvk;
pub mod json;
mod keyed;
pub mod names;
pub mod nearest;
pub mod object;
pub mod openapi;
pub mod patch;
pub mod permission;
pub mod protobuf;
pub mod quantity;
pub mod quota;
pub mod selectable;
pub mod selector;
pub mod status;
pub mod strategy;
pub mod table;
pub mod time;
pub mod validation;
