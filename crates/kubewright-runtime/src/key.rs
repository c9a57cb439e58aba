//! Object keys: namespace and name.
//!
//! Keys are in every queue, index and log line, so a [`Key`] is one shared string and cheap to clone. Keys are ordered
//! as `namespace/name`, which keeps a namespace together.

use std::fmt;
use std::sync::Arc;

/// Namespace and name of an object. Cheap to clone.
///
/// ```
/// use kubewright_runtime::Key;
///
/// let key = Key::namespaced("default", "web");
/// assert_eq!(key.to_string(), "default/web");
/// assert_eq!((key.namespace(), key.name()), (Some("default"), "web"));
/// assert_eq!(Key::cluster("node-1").namespace(), None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

impl Key {
    /// The key of a namespaced object.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        Self(format!("{namespace}/{name}").into())
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: &str) -> Self {
        Self(name.into())
    }

    /// The key of an object, cluster-scoped if `namespace` is `None`.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace {
            Some(namespace) if !namespace.is_empty() => Self::namespaced(namespace, name),
            _ => Self::cluster(name),
        }
    }

    /// The key of an object.
    pub fn of<K: kube::Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default())
    }

    /// The namespace; `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// `namespace/name`, or the name of a cluster-scoped object.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}
