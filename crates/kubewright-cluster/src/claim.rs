//! Whose an object is: a controller keeps what it owns and what still matches, takes what matches and has no owner, and
//! lets go of what no longer matches.
//!
//! Invariant: nothing is taken away from another controller, and nothing that is being deleted changes hands.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as Selector;
use kubewright_runtime::client::{self, ignore_not_found};
use kubewright_runtime::owner::{controller_of, remove_owner_reference, set_controller_reference};
use kubewright_runtime::{
    Cache, Client, Key, LabelSelector, List, Manager, Object, Patch, RegisterError, Result,
};

/// The index that finds objects by the uid of their controller.
const CONTROLLER: &str = "metadata.controller";
/// The value under which objects without a controller are found; no uid is like this.
const NOBODY: &str = "-";

/// What is to become of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Keep,
    Adopt,
    Release,
    Ignore,
}

/// Indexes the objects of a type by their controller. Several controllers share the index.
pub(crate) fn index<K: Object>(manager: &Manager) -> Result<(), RegisterError> {
    let by_controller = manager.cache().index::<K>(CONTROLLER, |object| {
        vec![controller_of(object).map_or_else(|| NOBODY.to_owned(), |owner| owner.uid.clone())]
    });
    by_controller.map(drop)
}

/// A selector of a spec as one that can be asked. One that cannot be read matches nothing, as upstream has it: the API
/// server does not let any in.
pub(crate) fn selector(selector: &Selector) -> Option<LabelSelector> {
    LabelSelector::try_from(selector.clone()).ok().filter(|selector| !selector.is_empty())
}

/// The objects of a kind, in the namespace of `object`, whose selectors match it.
pub(crate) fn selecting<K: Object>(
    object: &impl Object,
    cache: &Cache,
    selector: impl Fn(&K) -> Option<LabelSelector>,
) -> Vec<Key> {
    let meta = object.meta();
    let labels = meta.labels.clone().unwrap_or_default();
    let namespace = meta.namespace.clone().unwrap_or_default();
    let all = cache.list::<K>(&List::namespace(namespace)).unwrap_or_default();
    let selects = |other: &&Arc<K>| selector(other).is_some_and(|selector| selector.matches(&labels));
    all.iter().filter(selects).map(|other| Key::of(&**other)).collect()
}

/// Those of them that would adopt `object`: none, if it has a controller.
pub(crate) fn takers<K: Object>(
    object: &impl Object,
    cache: &Cache,
    selector: impl Fn(&K) -> Option<LabelSelector>,
) -> Vec<Key> {
    if controller_of(object).is_some() { Vec::new() } else { selecting(object, cache, selector) }
}

/// What is controlled by the object with this uid.
pub(crate) async fn controlled<K: Object>(
    client: &Client,
    namespace: &str,
    uid: &str,
) -> Result<Vec<Arc<K>>, client::Error> {
    client.list::<K>(&List::namespace(namespace).field(CONTROLLER, uid)).await
}

/// What is `owner`'s, after taking and letting go.
pub(crate) async fn claim<O: Object, K: Object>(
    client: &Client,
    owner: &O,
    selector: &LabelSelector,
) -> Result<Vec<Arc<K>>> {
    claim_where(client, owner, |object: &K| selects(selector, object)).await
}

/// The same where more than labels says what matches.
pub(crate) async fn claim_where<O: Object, K: Object>(
    client: &Client,
    owner: &O,
    matches: impl Fn(&K) -> bool,
) -> Result<Vec<Arc<K>>> {
    let meta = owner.meta();
    let (namespace, uid) =
        (meta.namespace.as_deref().unwrap_or_default(), meta.uid.as_deref().unwrap_or_default());
    let mut candidates = controlled::<K>(client, namespace, uid).await?;
    candidates.extend(controlled::<K>(client, namespace, NOBODY).await?);
    let mut mine = Vec::with_capacity(candidates.len());
    for object in candidates {
        match fate(owner, &*object, matches(&object)) {
            Fate::Keep => mine.push(object),
            Fate::Ignore => {}
            Fate::Adopt => {
                // The owner may be gone or be another by now, which a cache cannot tell.
                let fresh = client.uncached().get_opt::<O>(&Key::of(owner)).await?;
                let lives = fresh.is_some_and(|fresh| {
                    fresh.meta().uid == meta.uid && fresh.meta().deletion_timestamp.is_none()
                });
                if lives {
                    let mut adopted = (*object).clone();
                    set_controller_reference(owner, &mut adopted)?;
                    let adopted = ignore_not_found(hand_over(client, &*object, &adopted).await)?;
                    mine.extend(adopted.map(Arc::new));
                }
            }
            Fate::Release => {
                let mut released = (*object).clone();
                remove_owner_reference(owner, &mut released);
                ignore_not_found(hand_over(client, &*object, &released).await)?;
            }
        }
    }
    Ok(mine)
}

/// Changes the owners of an object, if it is still the one that was seen.
async fn hand_over<K: Object>(client: &Client, old: &K, new: &K) -> Result<K, client::Error> {
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

fn fate<O: Object, K: Object>(owner: &O, object: &K, matches: bool) -> Fate {
    let leaves = owner.meta().deletion_timestamp.is_some();
    let goes = object.meta().deletion_timestamp.is_some();
    match controller_of(object) {
        Some(reference) if Some(&reference.uid) != owner.meta().uid.as_ref() => Fate::Ignore,
        Some(_) if matches => Fate::Keep,
        Some(_) if leaves || goes => Fate::Ignore,
        Some(_) => Fate::Release,
        None if matches && !leaves && !goes => Fate::Adopt,
        None => Fate::Ignore,
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
    fn what_matches_is_kept_or_adopted_and_what_does_not_is_released_or_left_alone() {
        let web = LabelSelector::equal([("app", "web")]);
        let fate = |pod: &Pod| fate(&owner(), pod, selects(&web, pod));
        assert_eq!(fate(&pod("web", Some("me"))), Fate::Keep);
        assert_eq!(fate(&pod("web", None)), Fate::Adopt);
        assert_eq!(fate(&pod("api", Some("me"))), Fate::Release);
        assert_eq!(fate(&pod("api", None)), Fate::Ignore);
        assert_eq!(fate(&pod("web", Some("other"))), Fate::Ignore);
        assert_eq!(fate(&pod("api", Some("other"))), Fate::Ignore);
    }

    #[test]
    fn who_is_being_deleted_takes_nothing_and_lets_nothing_go() {
        let mut leaving = owner();
        leaving.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        assert_eq!(fate(&leaving, &pod("web", None), true), Fate::Ignore);
        assert_eq!(fate(&leaving, &pod("api", Some("me")), false), Fate::Ignore);
        assert_eq!(fate(&leaving, &pod("web", Some("me")), true), Fate::Keep);
        let mut going = pod("web", None);
        going.metadata.deletion_timestamp = leaving.metadata.deletion_timestamp.clone();
        assert_eq!(fate(&owner(), &going, true), Fate::Ignore);
    }
}
