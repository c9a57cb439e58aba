//! Webhooks of this operator.

pub mod v1;
