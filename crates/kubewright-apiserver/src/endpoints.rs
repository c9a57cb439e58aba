//! Handlers of requests: reading, watching, patching, deleting, reviews, discovery and OpenAPI documents.
//!
//! A handler negotiates, calls the registry or the store, and encodes the response. Creates and updates are in
//! [`crate::registry::write`].

pub(crate) mod delete;
pub(crate) mod discovery;
pub(crate) mod openapi;
pub(crate) mod patch;
pub(crate) mod read;
pub(crate) mod reviews;
pub(crate) mod version;
pub(crate) mod watch;
