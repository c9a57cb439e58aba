//! Who owns an object: owner references, by controllerutil's rules.
//!
//! An owner reference makes the garbage collector delete an object after its owner, and the one that is marked as
//! controller tells a controller which object to reconcile. References are compared by group, kind and name, as the
//! owner is one object whatever version it is read in and however often it was created anew. Nothing here talks to
//! the API server: the object is written by whoever sets the reference.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{ApiResource, DynamicObject};

use crate::client::Writable;
use crate::{Gvk, Key, Kind, Object, Scope};

/// An object that others can refer to: it knows its kind and has metadata.
///
/// Implemented for every [`Object`] and for [`DynamicObject`]; there is nothing to write.
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
    /// Group, version and kind. `None` for a dynamic object that does not say what it is.
    fn gvk(&self) -> Option<Gvk>;
    /// Whether such objects live in namespaces. `None` where only the API server knows.
    fn scope(&self) -> Option<Scope>;
    /// The metadata.
    fn metadata(&self) -> &ObjectMeta;
    /// The metadata, to change it.
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

/// How objects of type `K` tell their kind.
///
/// Implemented for kube's dynamic types rather than for the objects, because the compiler takes
/// `impl<K: Object> Referable for K` and `impl Referable for DynamicObject` to overlap.
#[diagnostic::on_unimplemented(
    message = "`{K}` is not a Kubernetes object",
    note = "use a type of k8s-openapi, a type with `#[derive(CustomResource)]`, or `DynamicObject`"
)]
pub trait KindOf<K> {
    /// The type of the whole object, as the server returns it.
    type Stored: Writable;
    /// The kind, if the type knows it.
    fn known() -> Option<Kind>;
    /// Group, version and kind of an object.
    fn gvk(object: &K) -> Option<Gvk>;
    /// Whether such objects live in namespaces.
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

/// Why an object cannot be given an owner.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// Another object controls it already.
    #[error(
        "{object} is already controlled by {} {} and cannot also be controlled by {owner}; \
         give the object another name, or use set_owner_reference",
        existing.kind,
        existing.name
    )]
    AlreadyOwned {
        /// The object.
        object: String,
        /// Who was to control it.
        owner: String,
        /// Who controls it.
        existing: Box<OwnerReference>,
    },
    /// Owner and object are in different namespaces.
    #[error(
        "{owner} cannot own {object}: an owner must be in the namespace of what it owns. \
         To watch an object of another namespace, map it with a label or an annotation"
    )]
    CrossNamespace {
        /// The owner.
        owner: String,
        /// The object.
        object: String,
    },
    /// The object is outside of namespaces, the owner in one.
    #[error(
        "{owner} cannot own {object}: an owner within a namespace cannot own an object outside of namespaces. \
         Delete such an object by a finalizer on its owner"
    )]
    ClusterScoped {
        /// The owner.
        owner: String,
        /// The object.
        object: String,
    },
    /// The object's kind lives in namespaces, but the object does not say in which.
    #[error("{object} has no namespace yet: set it to {namespace:?}, the namespace of its owner, first")]
    NoNamespace {
        /// The object.
        object: String,
        /// The namespace of the owner.
        namespace: String,
    },
    /// The owner has no name, no uid or no namespace.
    #[error(
        "{owner} has no {missing}: an owner must have been created first, use the object that the server answered"
    )]
    OwnerNotCreated {
        /// The owner.
        owner: String,
        /// What it lacks.
        missing: &'static str,
    },
    /// The owner is a dynamic object without `apiVersion` and `kind`.
    #[error("{owner} cannot be an owner: it does not say its apiVersion and kind")]
    OwnerWithoutKind {
        /// The owner.
        owner: String,
    },
}

/// What an owner reference says beside who the owner is.
///
/// ```
/// use kubewright_runtime::owner::OwnerOptions;
///
/// assert_eq!(OwnerOptions::default().block_owner_deletion, None);
/// ```
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnerOptions {
    /// Whether deleting the owner in the foreground waits for the object. If `None`, an existing reference keeps its
    /// own, a new one says nothing, and a controller's says yes.
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

/// Makes `owner` the controller of `object`: it is deleted with its owner, and its changes reconcile the owner.
///
/// An object has at most one controller. A reference to the same owner is brought up to date.
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

/// [`set_controller_reference`], with options.
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

/// Makes `owner` one of the owners of `object`, which is deleted after the last of them.
///
/// A reference to the same owner is brought up to date, and stays the controller's if it was.
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

/// Takes the reference to `owner` away. Whether there was one.
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

/// Whether `object` refers to `owner`, by group, kind and name.
pub fn has_owner_reference(owner: &(impl Referable + ?Sized), object: &impl Referable) -> bool {
    identity(owner).is_some_and(|identity| {
        owner_references(object).iter().any(|reference| same_owner(reference, &identity))
    })
}

/// The reference to the object's controller.
pub fn controller_of(object: &impl Referable) -> Option<&OwnerReference> {
    owner_references(object).iter().find(|reference| reference.controller == Some(true))
}

/// Whether `owner` itself, not a namesake of before, controls `object`: compared by uid.
pub fn is_controlled_by(object: &impl Referable, owner: &(impl Referable + ?Sized)) -> bool {
    controller_of(object).is_some_and(|reference| owner.metadata().uid.as_deref() == Some(&reference.uid))
}

fn owner_references(object: &impl Referable) -> &[OwnerReference] {
    object.metadata().owner_references.as_deref().unwrap_or_default()
}

/// A reference to `owner` that `object` may carry.
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

/// What tells `owner` from other objects, as a reference.
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

/// Replaces the reference to the same owner in its place, or adds one at the end.
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
