//! Webhooks of kinds in version v1.

pub mod pod;
