//! Owner references, by controllerutil's rules.
//!
//! The garbage collector deletes an object after its owners. The reference that is marked as controller determines
//! which object a controller reconciles. References are compared by group, kind and name, so that an owner in another
//! version, or a recreated owner, is the same owner. This module does not call the API server: the caller writes the
//! object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{ApiResource, DynamicObject};

use crate::client::Writable;
use crate::{Gvk, Key, Kind, Object, Scope};

/// An object that can be an owner or have owners.
///
/// Implemented for every [`Object`] and for [`DynamicObject`]; do not implement it yourself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object",
    note = "use a type of k8s-openapi, a type with `#[derive(CustomResource)]`, or `DynamicObject`",
    note = "pass the object itself: `&*object` for an `Arc`"
)]
pub trait Referable {
    /// The kind of the type. `None` for dynamic objects.
    fn known_kind() -> Option<Kind>
    where
        Self: Sized;
    /// Group, version and kind. `None` for a dynamic object without `apiVersion` and `kind`.
    fn gvk(&self) -> Option<Gvk>;
    /// Whether the kind is namespaced. `None` if only the API server knows.
    fn scope(&self) -> Option<Scope>;
    /// The metadata.
    fn metadata(&self) -> &ObjectMeta;
    /// The metadata, mutable.
    fn metadata_mut(&mut self) -> &mut ObjectMeta;
}

impl<K: kube::Resource<DynamicType: KindOf<K>>> Referable for K {
    fn known_kind() -> Option<Kind> {
        K::DynamicType::known()
    }

    fn gvk(&self) -> Option<Gvk> {
        K::DynamicType::gvk(self)
    }

    fn scope(&self) -> Option<Scope> {
        K::DynamicType::scope()
    }

    fn metadata(&self) -> &ObjectMeta {
        self.meta()
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        self.meta_mut()
    }
}

/// How the kind of an object of type `K` is determined.
///
/// Implemented for kube's dynamic types instead of the objects, because the compiler considers
/// `impl<K: Object> Referable for K` and `impl Referable for DynamicObject` to overlap.
#[diagnostic::on_unimplemented(
    message = "`{K}` is not a Kubernetes object",
    note = "use a type of k8s-openapi, a type with `#[derive(CustomResource)]`, or `DynamicObject`"
)]
pub trait KindOf<K> {
    /// The type of the whole object, as the server returns it.
    type Stored: Writable;
    /// The kind, if the type determines it.
    fn known() -> Option<Kind>;
    /// Group, version and kind of an object.
    fn gvk(object: &K) -> Option<Gvk>;
    /// Whether the kind is namespaced.
    fn scope() -> Option<Scope>;
}

impl<K: Object> KindOf<K> for () {
    type Stored = K;

    fn known() -> Option<Kind> {
        Some(Kind::of::<K>())
    }

    fn gvk(_: &K) -> Option<Gvk> {
        Some(Gvk::new(K::group(&()), K::version(&()), K::kind(&())))
    }

    fn scope() -> Option<Scope> {
        Some(K::scope())
    }
}

impl KindOf<DynamicObject> for ApiResource {
    type Stored = DynamicObject;

    fn known() -> Option<Kind> {
        None
    }

    fn gvk(object: &DynamicObject) -> Option<Gvk> {
        let types = object.types.as_ref()?;
        let known = !types.api_version.is_empty() && !types.kind.is_empty();
        known.then(|| Gvk::of(&types.api_version, &types.kind))
    }

    fn scope() -> Option<Scope> {
        None
    }
}

/// Why an owner reference cannot be set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// Another object already controls it.
    #[error(
        "{object} is already controlled by {} {} and cannot also be controlled by {owner}; \
         give the object another name, or use set_owner_reference",
        existing.kind,
        existing.name
    )]
    AlreadyOwned {
        /// The object.
        object: String,
        /// The owner that was to be set.
        owner: String,
        /// The existing controller reference.
        existing: Box<OwnerReference>,
    },
    /// Owner and object are in different namespaces.
    #[error(
        "{owner} cannot own {object}: cross-namespace owner references are not allowed. \
         To reconcile for an object in another namespace, use watches() with a label or an annotation"
    )]
    CrossNamespace {
        /// The owner.
        owner: String,
        /// The object.
        object: String,
    },
    /// The object is cluster-scoped, but the owner is namespaced.
    #[error(
        "{owner} cannot own {object}: a namespaced owner cannot own a cluster-scoped object. \
         Use a finalizer on the owner to delete the object"
    )]
    ClusterScoped {
        /// The owner.
        owner: String,
        /// The object.
        object: String,
    },
    /// The object is namespaced but has no namespace.
    #[error("{object} has no namespace: set it to {namespace:?}, the namespace of its owner")]
    NoNamespace {
        /// The object.
        object: String,
        /// The namespace of the owner.
        namespace: String,
    },
    /// The owner has no name, no uid or no namespace.
    #[error("{owner} has no {missing}: create the owner first, and use the object that the server returned")]
    OwnerNotCreated {
        /// The owner.
        owner: String,
        /// The missing field.
        missing: &'static str,
    },
    /// The owner is a dynamic object without `apiVersion` and `kind`.
    #[error("{owner} cannot be an owner: it has no apiVersion and kind")]
    OwnerWithoutKind {
        /// The owner.
        owner: String,
    },
}

/// Options of an owner reference.
///
/// ```
/// use kubewright_runtime::owner::OwnerOptions;
///
/// assert_eq!(OwnerOptions::default().block_owner_deletion, None);
/// ```
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnerOptions {
    /// Whether foreground deletion of the owner waits for the object. If `None`, an existing reference is unchanged, a
    /// new controller reference has `true`, and any other new reference does not set it.
    pub block_owner_deletion: Option<bool>,
}

impl OwnerOptions {
    /// Sets [`block_owner_deletion`](Self::block_owner_deletion).
    #[must_use]
    pub fn block_owner_deletion(mut self, block: bool) -> Self {
        self.block_owner_deletion = Some(block);
        self
    }
}

/// Sets `owner` as the controller of `object`: the garbage collector deletes the object after its owner, and changes of
/// the object reconcile the owner.
///
/// An object has at most one controller. An existing reference to the same owner is updated.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::owner::{controller_of, set_controller_reference};
///
/// let mut owner = Deployment::default();
/// owner.metadata.namespace = Some("default".to_owned());
/// owner.metadata.name = Some("web".to_owned());
/// owner.metadata.uid = Some("6f2d".to_owned());
/// let mut page = ConfigMap::default();
/// page.metadata.namespace = Some("default".to_owned());
///
/// set_controller_reference(&owner, &mut page)?;
/// assert_eq!(controller_of(&page).unwrap().name, "web");
/// # Ok::<(), kubewright_runtime::owner::OwnerError>(())
/// ```
pub fn set_controller_reference(
    owner: &(impl Referable + ?Sized),
    object: &mut impl Referable,
) -> Result<(), OwnerError> {
    set_controller_reference_with(owner, object, OwnerOptions::default())
}

/// Like [`set_controller_reference`], with options.
pub fn set_controller_reference_with(
    owner: &(impl Referable + ?Sized),
    object: &mut impl Referable,
    options: OwnerOptions,
) -> Result<(), OwnerError> {
    let mut reference = reference_to(owner, object)?;
    if let Some(existing) = controller_of(object)
        && !same_owner(existing, &reference)
    {
        return Err(OwnerError::AlreadyOwned {
            object: describe(object),
            owner: describe(owner),
            existing: Box::new(existing.clone()),
        });
    }
    reference.controller = Some(true);
    reference.block_owner_deletion = Some(options.block_owner_deletion.unwrap_or(true));
    upsert(object.metadata_mut(), reference);
    Ok(())
}

/// Adds `owner` to the owners of `object`, which is deleted after the last of them.
///
/// An existing reference to the same owner is updated, and stays the controller reference if it was.
pub fn set_owner_reference(
    owner: &(impl Referable + ?Sized),
    object: &mut impl Referable,
    options: OwnerOptions,
) -> Result<(), OwnerError> {
    let mut reference = reference_to(owner, object)?;
    let existing = owner_references(object).iter().find(|existing| same_owner(existing, &reference));
    reference.controller = existing.and_then(|existing| existing.controller);
    reference.block_owner_deletion =
        options.block_owner_deletion.or_else(|| existing.and_then(|existing| existing.block_owner_deletion));
    upsert(object.metadata_mut(), reference);
    Ok(())
}

/// Removes the reference to `owner`. Returns whether there was one.
pub fn remove_owner_reference(owner: &(impl Referable + ?Sized), object: &mut impl Referable) -> bool {
    let Some(identity) = identity(owner) else { return false };
    let meta = object.metadata_mut();
    let Some(references) = &mut meta.owner_references else { return false };
    let before = references.len();
    references.retain(|reference| !same_owner(reference, &identity));
    let removed = references.len() < before;
    if references.is_empty() {
        meta.owner_references = None;
    }
    removed
}

/// Whether `object` has a reference to `owner`, by group, kind and name.
pub fn has_owner_reference(owner: &(impl Referable + ?Sized), object: &impl Referable) -> bool {
    identity(owner).is_some_and(|identity| {
        owner_references(object).iter().any(|reference| same_owner(reference, &identity))
    })
}

/// The controller reference of the object.
pub fn controller_of(object: &impl Referable) -> Option<&OwnerReference> {
    owner_references(object).iter().find(|reference| reference.controller == Some(true))
}

/// Whether `owner` controls `object`, compared by uid: a recreated owner does not.
pub fn is_controlled_by(object: &impl Referable, owner: &(impl Referable + ?Sized)) -> bool {
    controller_of(object).is_some_and(|reference| owner.metadata().uid.as_deref() == Some(&reference.uid))
}

fn owner_references(object: &impl Referable) -> &[OwnerReference] {
    object.metadata().owner_references.as_deref().unwrap_or_default()
}

/// Creates a reference from `object` to `owner`, if the rules allow it.
fn reference_to(
    owner: &(impl Referable + ?Sized),
    object: &impl Referable,
) -> Result<OwnerReference, OwnerError> {
    let Some(reference) = identity(owner) else {
        return Err(OwnerError::OwnerWithoutKind { owner: describe(owner) });
    };
    let not_created = |missing| Err(OwnerError::OwnerNotCreated { owner: describe(owner), missing });
    if reference.name.is_empty() {
        return not_created("name");
    }
    if reference.uid.is_empty() {
        return not_created("uid");
    }
    let Some(namespace) = namespace(owner) else {
        return match owner.scope() {
            Some(Scope::Namespaced) => not_created("namespace"),
            _ => Ok(reference),
        };
    };
    match (self::namespace(object), object.scope()) {
        (_, Some(Scope::Cluster)) | (None, None) => {
            Err(OwnerError::ClusterScoped { owner: describe(owner), object: describe(object) })
        }
        (None, Some(Scope::Namespaced)) => {
            Err(OwnerError::NoNamespace { object: describe(object), namespace: namespace.to_owned() })
        }
        (Some(other), _) if other != namespace => {
            Err(OwnerError::CrossNamespace { owner: describe(owner), object: describe(object) })
        }
        (Some(_), _) => Ok(reference),
    }
}

/// The reference that identifies `owner`.
fn identity(owner: &(impl Referable + ?Sized)) -> Option<OwnerReference> {
    let gvk = owner.gvk()?;
    let meta = owner.metadata();
    Some(OwnerReference {
        api_version: gvk.api_version(),
        kind: gvk.kind,
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    })
}

fn same_owner(one: &OwnerReference, other: &OwnerReference) -> bool {
    group(&one.api_version) == group(&other.api_version) && one.kind == other.kind && one.name == other.name
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Replaces the reference to the same owner, or appends it.
fn upsert(meta: &mut ObjectMeta, reference: OwnerReference) {
    let references = meta.owner_references.get_or_insert_default();
    match references.iter_mut().find(|existing| same_owner(existing, &reference)) {
        Some(existing) => *existing = reference,
        None => references.push(reference),
    }
}

fn namespace(object: &(impl Referable + ?Sized)) -> Option<&str> {
    object.metadata().namespace.as_deref().filter(|namespace| !namespace.is_empty())
}

/// `Kind namespace/name`, for messages.
fn describe(object: &(impl Referable + ?Sized)) -> String {
    let kind = object.gvk().map_or_else(|| "object".to_owned(), |gvk| gvk.kind);
    let meta = object.metadata();
    let name = meta.name.as_deref().or(meta.generate_name.as_deref()).unwrap_or("<unnamed>");
    format!("{kind} {}", Key::new(meta.namespace.as_deref(), name))
}

#[cfg(test)]
mod tests;
