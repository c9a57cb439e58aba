//! Adoption: a controller keeps matching objects that it controls, adopts matching orphans, and releases
//! objects that no longer match.
//!
//! Invariant: it never takes objects of other controllers, and never changes the owner references of objects
//! that are being deleted.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as Selector;
use kubewright_runtime::client::{self, ignore_not_found};
use kubewright_runtime::controller::{Predicate, Watch};
use kubewright_runtime::owner::{controller_of, remove_owner_reference, set_controller_reference};
use kubewright_runtime::{
    Cache, Client, Key, LabelSelector, ListOptions, Manager, Object, Patch, RegisterError, Result,
};

/// Index of objects by the UID of their controller.
const CONTROLLER: &str = "metadata.controller";
/// The index value of objects without a controller. Never a valid UID.
const NO_CONTROLLER: &str = "-";

/// What to do with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Keep,
    Adopt,
    Release,
    Ignore,
}

/// Registers the index of objects by controller. Several controllers share it.
pub(crate) fn index<K: Object>(manager: &Manager) -> Result<(), RegisterError> {
    let by_controller = manager.cache().index::<K>(CONTROLLER, |object| {
        vec![controller_of(object).map_or_else(|| NO_CONTROLLER.to_owned(), |owner| owner.uid.clone())]
    });
    by_controller.map(drop)
}

/// Converts the selector of a spec. As upstream, an invalid one matches nothing; the API server rejects
/// those.
pub(crate) fn selector(selector: &Selector) -> Option<LabelSelector> {
    LabelSelector::try_from(selector.clone()).ok().filter(|selector| !selector.is_empty())
}

/// The objects of a kind in the namespace of `object` whose selectors match it.
pub(crate) fn selecting<K: Object>(
    object: &impl Object,
    cache: &Cache,
    selector: impl Fn(&K) -> Option<LabelSelector>,
) -> Vec<Key> {
    let meta = object.meta();
    let labels = meta.labels.clone().unwrap_or_default();
    let namespace = meta.namespace.clone().unwrap_or_default();
    let all = cache.list::<K>(&ListOptions::namespace(namespace)).unwrap_or_default();
    let selects = |other: &&Arc<K>| selector(other).is_some_and(|selector| selector.matches(&labels));
    all.iter().filter(selects).map(|other| Key::of(&**other)).collect()
}

/// Watches objects without a controller: only they can be adopted. Other events are dropped without decoding objects.
pub(crate) fn orphans<K: Object>() -> Watch<K> {
    Watch::new().filter(Predicate::new(|event| {
        let mut entries = [event.old_entry(), event.new_entry()].into_iter().flatten();
        entries.any(|entry| !entry.owners().iter().any(|owner| owner.controller == Some(true)))
    }))
}

/// The objects that would adopt `object`; none if it has a controller.
pub(crate) fn adopters<K: Object>(
    object: &impl Object,
    cache: &Cache,
    selector: impl Fn(&K) -> Option<LabelSelector>,
) -> Vec<Key> {
    if controller_of(object).is_some() { Vec::new() } else { selecting(object, cache, selector) }
}

/// The objects controlled by the object with this UID.
pub(crate) async fn controlled<K: Object>(
    client: &Client,
    namespace: &str,
    uid: &str,
) -> Result<Vec<Arc<K>>, client::Error> {
    client.list::<K>(&ListOptions::namespace(namespace).field(CONTROLLER, uid)).await
}

/// Adopts and releases objects; returns those controlled by `owner`.
pub(crate) async fn claim<O: Object, K: Object>(
    client: &Client,
    owner: &O,
    selector: &LabelSelector,
) -> Result<Vec<Arc<K>>> {
    claim_where(client, owner, |object: &K| selects(selector, object)).await
}

/// Like [`claim`], with a custom predicate.
pub(crate) async fn claim_where<O: Object, K: Object>(
    client: &Client,
    owner: &O,
    matches: impl Fn(&K) -> bool,
) -> Result<Vec<Arc<K>>> {
    let meta = owner.meta();
    let (namespace, uid) =
        (meta.namespace.as_deref().unwrap_or_default(), meta.uid.as_deref().unwrap_or_default());
    let mut candidates = controlled::<K>(client, namespace, uid).await?;
    candidates.extend(controlled::<K>(client, namespace, NO_CONTROLLER).await?);
    let mut mine = Vec::with_capacity(candidates.len());
    for object in candidates {
        match action_for(owner, &*object, matches(&object)) {
            Action::Keep => mine.push(object),
            Action::Ignore => {}
            Action::Adopt => {
                // Read the owner from the API server: the cache may not show that it was deleted or
                // recreated.
                let fresh = client.uncached().get_opt::<O>(&Key::of(owner)).await?;
                let lives = fresh.is_some_and(|fresh| {
                    fresh.meta().uid == meta.uid && fresh.meta().deletion_timestamp.is_none()
                });
                if lives {
                    let mut adopted = (*object).clone();
                    set_controller_reference(owner, &mut adopted)?;
                    let adopted = ignore_not_found(patch_owners(client, &*object, &adopted).await)?;
                    mine.extend(adopted.map(Arc::new));
                }
            }
            Action::Release => {
                let mut released = (*object).clone();
                remove_owner_reference(owner, &mut released);
                ignore_not_found(patch_owners(client, &*object, &released).await)?;
            }
        }
    }
    Ok(mine)
}

/// Patches the owner references of an object with a UID and resourceVersion precondition.
async fn patch_owners<K: Object>(client: &Client, old: &K, new: &K) -> Result<K, client::Error> {
    let mut patch = serde_json::json!({ "metadata": { "ownerReferences": new.meta().owner_references } });
    patch["metadata"]["uid"] = old.meta().uid.clone().into();
    let version = old.meta().resource_version.as_deref().unwrap_or_default();
    client.patch(old, &Patch::merge(patch).optimistic(version)).await
}

/// Whether a selector matches the labels of an object.
pub(crate) fn selects(selector: &LabelSelector, object: &impl Object) -> bool {
    object
        .meta()
        .labels
        .as_ref()
        .map_or_else(|| selector.matches(&BTreeMap::new()), |it| selector.matches(it))
}

fn action_for<O: Object, K: Object>(owner: &O, object: &K, matches: bool) -> Action {
    let owner_terminating = owner.meta().deletion_timestamp.is_some();
    let object_terminating = object.meta().deletion_timestamp.is_some();
    match controller_of(object) {
        Some(reference) if Some(&reference.uid) != owner.meta().uid.as_ref() => Action::Ignore,
        Some(_) if matches => Action::Keep,
        Some(_) if owner_terminating || object_terminating => Action::Ignore,
        Some(_) => Action::Release,
        None if matches && !owner_terminating && !object_terminating => Action::Adopt,
        None => Action::Ignore,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};

    use super::*;

    fn pod(app: &str, owner: Option<&str>) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.labels = Some(BTreeMap::from([("app".to_owned(), app.to_owned())]));
        pod.metadata.owner_references = owner.map(|uid| {
            vec![OwnerReference { uid: uid.to_owned(), controller: Some(true), ..OwnerReference::default() }]
        });
        pod
    }

    fn owner() -> ReplicaSet {
        let mut set = ReplicaSet::default();
        set.metadata.uid = Some("me".to_owned());
        set
    }

    #[test]
    fn matching_objects_are_kept_or_adopted_and_others_released_or_ignored() {
        let web = LabelSelector::equal([("app", "web")]);
        let action_for = |pod: &Pod| action_for(&owner(), pod, selects(&web, pod));
        assert_eq!(action_for(&pod("web", Some("me"))), Action::Keep);
        assert_eq!(action_for(&pod("web", None)), Action::Adopt);
        assert_eq!(action_for(&pod("api", Some("me"))), Action::Release);
        assert_eq!(action_for(&pod("api", None)), Action::Ignore);
        assert_eq!(action_for(&pod("web", Some("other"))), Action::Ignore);
        assert_eq!(action_for(&pod("api", Some("other"))), Action::Ignore);
    }

    #[test]
    fn a_terminating_owner_neither_adopts_nor_releases() {
        let mut leaving = owner();
        leaving.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        assert_eq!(action_for(&leaving, &pod("web", None), true), Action::Ignore);
        assert_eq!(action_for(&leaving, &pod("api", Some("me")), false), Action::Ignore);
        assert_eq!(action_for(&leaving, &pod("web", Some("me")), true), Action::Keep);
        let mut going = pod("web", None);
        going.metadata.deletion_timestamp = leaving.metadata.deletion_timestamp.clone();
        assert_eq!(action_for(&owner(), &going, true), Action::Ignore);
    }
}
