//! Webhooks.

pub mod v1;
