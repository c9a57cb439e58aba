//! Descriptions of types and fields in OpenAPI documents.
//!
//! The facts table has no descriptions. Documents are complete without them; with them, `kubectl explain`
//! describes fields.

/// Descriptions of types and fields. Types have their published names, such as `io.k8s.api.core.v1.Pod`.
pub trait Descriptions: Send + Sync {
    /// The description of a type.
    fn of_type(&self, name: &str) -> Option<&str>;

    /// The description of a field by its JSON name.
    fn of_field(&self, name: &str, field: &str) -> Option<&str>;
}

/// An implementation without descriptions.
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
