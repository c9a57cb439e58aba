//! Where the documents' texts on types and fields come from: somebody else.
//!
//! The facts table holds no sentences. A document is complete without them; with them, `kubectl explain` tells
//! what a field is for. This module must not hold a text of its own.

/// The texts on types and fields. Types go by the names that they are published under, such as
/// `io.k8s.api.core.v1.Pod`.
pub trait Descriptions: Send + Sync {
    /// What the type is.
    fn of_type(&self, name: &str) -> Option<&str>;

    /// What a field of the type is, `field` being its name in JSON.
    fn of_field(&self, name: &str, field: &str) -> Option<&str>;
}

/// No texts.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDescriptions;

impl Descriptions for NoDescriptions {
    fn of_type(&self, _: &str) -> Option<&str> {
        None
    }

    fn of_field(&self, _: &str, _: &str) -> Option<&str> {
        None
    }
}
