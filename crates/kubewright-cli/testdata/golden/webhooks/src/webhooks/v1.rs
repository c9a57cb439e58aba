//! Webhooks for version v1.

pub mod order;
