//! ControllerRevisions of StatefulSets and DaemonSets.
//!
//! A revision contains the patch that restores its template; `kubectl rollout undo` sends it. `choose`
//! decides which revision to keep, renumber or create (pure); [`follow`] writes the result.
//!
//! Invariant: the current template has the revision with the highest number.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kubewright_runtime::client::ignore_not_found;
use kubewright_runtime::owner::set_controller_reference;
use kubewright_runtime::{Context, Delete, Key, LabelSelector, Object, Patch, Result};
use serde_json::{Value, json};

use crate::{adoption, hash, pod};

/// The pod label with the revision hash.
pub(crate) const REVISION: &str = "controller-revision-hash";
/// Maximum length of the owner's name in revision names.
const LONGEST_PREFIX: usize = 223;

/// The revisions of an object.
pub(crate) struct History {
    /// The revision of the current template.
    pub(crate) current: Arc<ControllerRevision>,
    /// The other revisions, oldest first.
    pub(crate) old: Vec<Arc<ControllerRevision>>,
    /// The number of name collisions.
    pub(crate) collisions: i32,
}

/// The object whose revisions are managed.
pub(crate) struct Subject<'a> {
    /// Selects the revisions of the object.
    pub(crate) selector: &'a LabelSelector,
    /// The current template.
    pub(crate) template: &'a PodTemplateSpec,
    /// The label of revisions with their hash.
    pub(crate) label: &'static str,
    /// The number of name collisions so far.
    pub(crate) collisions: i32,
}

/// Makes the current template the latest revision. Returns `None` in a terminating namespace, where nothing
/// can be created.
pub(crate) async fn follow<O: Object>(
    owner: &O,
    subject: &Subject<'_>,
    cx: &Context,
) -> Result<Option<History>> {
    let mut old = adoption::claim::<O, ControllerRevision>(cx.client(), owner, subject.selector).await?;
    old.sort_by_cached_key(|it| {
        (it.revision, pod::created(it.metadata.creation_timestamp.as_ref()), it.metadata.name.clone())
    });
    let patch = patch_to(subject.template)?;
    let mut collisions = subject.collisions;
    let current = match choose(&old, &patch) {
        Choice::Keep(at) => old.remove(at),
        Choice::Renumber(at, number) => {
            let again = old.remove(at);
            let number = Patch::merge(json!({ "revision": number }));
            Arc::new(cx.client().patch(&*again, &number).await?)
        }
        Choice::Create(number) => loop {
            let new = revision(owner, subject, &patch, number, collisions);
            match cx.client().create(&new).await {
                Ok(created) => break Arc::new(created),
                Err(error) if error.is_already_exists() => {
                    match cx.client().uncached().get_opt::<ControllerRevision>(&Key::of(&new)).await? {
                        Some(same) if data(&same) == Some(&patch) => break same,
                        Some(_) => collisions += 1,
                        None => {}
                    }
                }
                // Nothing can be created in a terminating namespace.
                Err(error) if error.is_namespace_terminating() => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        },
    };
    Ok(Some(History { current, old, collisions }))
}

/// Deletes the `surplus` oldest revisions without pods.
pub(crate) async fn shorten(
    old: &[Arc<ControllerRevision>],
    surplus: usize,
    is_live: impl Fn(&ControllerRevision) -> bool,
    cx: &Context,
) -> Result<()> {
    for revision in old.iter().filter(|revision| !is_live(revision)).take(surplus) {
        let how = Delete::new().uid(revision.metadata.uid.clone().unwrap_or_default());
        ignore_not_found(cx.client().delete_with(&**revision, &how).await)?;
    }
    Ok(())
}

/// The template of a revision.
pub(crate) fn template(revision: &ControllerRevision) -> Result<PodTemplateSpec> {
    // As text, like all other objects: a deserializer of `Value` would be compiled for every type below.
    let template = data(revision).map(|data| data["spec"]["template"].to_string()).unwrap_or_default();
    Ok(serde_json::from_str(&template)?)
}

/// The name of a revision.
pub(crate) fn name(revision: &ControllerRevision) -> &str {
    revision.metadata.name.as_deref().unwrap_or_default()
}

/// A label of an object.
pub(crate) fn label<'a>(object: &'a impl Object, name: &str) -> Option<&'a str> {
    object.meta().labels.as_ref()?.get(name).map(String::as_str)
}

/// How the current template becomes the latest revision.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    /// The revision at this index already is the latest.
    Keep(usize),
    /// The revision at this index is older and gets this number: a rollback.
    Renumber(usize, i64),
    /// A new revision with this number is created.
    Create(i64),
}

fn choose(revisions: &[Arc<ControllerRevision>], patch: &Value) -> Choice {
    let next = revisions.last().map_or(1, |last| last.revision + 1);
    match revisions.iter().rposition(|revision| data(revision) == Some(patch)) {
        Some(at) if at + 1 == revisions.len() => Choice::Keep(at),
        Some(at) => Choice::Renumber(at, next),
        None => Choice::Create(next),
    }
}

fn data(revision: &ControllerRevision) -> Option<&Value> {
    revision.data.as_ref().map(|data| &data.0)
}

/// The patch that sets this template.
fn patch_to(template: &PodTemplateSpec) -> Result<Value> {
    let mut template = serde_json::to_value(template)?;
    template["$patch"] = json!("replace");
    Ok(json!({ "spec": { "template": template } }))
}

/// The hash of a patch and the collision count.
fn hash_of(patch: &Value, collisions: i32) -> String {
    // Go escapes these characters, and the hash must be the same as upstream's.
    let escapes = [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026")];
    let text = escapes.iter().fold(patch.to_string(), |text, (letter, escape)| text.replace(*letter, escape));
    hash::encode(hash::fnv1(format!("{text}{collisions}").as_bytes()))
}

fn revision<O: Object>(
    owner: &O,
    subject: &Subject<'_>,
    patch: &Value,
    number: i64,
    collisions: i32,
) -> ControllerRevision {
    let hash = hash_of(patch, collisions);
    let mut prefix = owner.meta().name.clone().unwrap_or_default();
    prefix.truncate(LONGEST_PREFIX);
    let labels = subject.template.metadata.as_ref().and_then(|meta| meta.labels.clone());
    let mut labels = labels.unwrap_or_default();
    labels.insert(subject.label.to_owned(), hash.clone());
    let mut revision = ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{prefix}-{hash}")),
            namespace: owner.meta().namespace.clone(),
            labels: Some(labels),
            annotations: owner.meta().annotations.clone(),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(patch.clone())),
        revision: number,
    };
    // Cannot fail: the revision is new and in the same namespace.
    let _ = set_controller_reference(owner, &mut revision);
    revision
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::StatefulSet;

    use super::*;

    fn template_of(image: &str) -> PodTemplateSpec {
        serde_json::from_value(json!({
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "web", "image": image, "args": ["a<b"] }] },
        }))
        .unwrap()
    }

    fn made(image: &str, number: i64, collisions: i32) -> Arc<ControllerRevision> {
        let owner: StatefulSet = serde_json::from_value(json!({
            "metadata": { "name": "web", "namespace": "default", "uid": "1", "annotations": { "note": "x" } },
            "spec": { "selector": {}, "template": {} },
        }))
        .unwrap();
        let template = template_of(image);
        let selector = LabelSelector::equal([("app", "web")]);
        let subject = Subject {
            selector: &selector,
            template: &template,
            label: "controller.kubernetes.io/hash",
            collisions,
        };
        Arc::new(revision(&owner, &subject, &patch_to(&template).unwrap(), number, collisions))
    }

    #[test]
    fn revisions_are_kept_renumbered_or_created() {
        let revisions = [made("web:1", 1, 0), made("web:2", 4, 0)];
        let choose = |image| choose(&revisions, &patch_to(&template_of(image)).unwrap());
        assert_eq!(choose("web:2"), Choice::Keep(1));
        assert_eq!(choose("web:1"), Choice::Renumber(0, 5));
        assert_eq!(choose("web:3"), Choice::Create(5));
        assert_eq!(super::choose(&[], &json!({})), Choice::Create(1));
    }

    #[test]
    fn a_revision_contains_its_template_and_is_named_by_its_hash() {
        let one = made("web:1", 1, 0);
        assert_eq!(template(&one).unwrap(), template_of("web:1"));
        let hash = label(&*one, "controller.kubernetes.io/hash").unwrap();
        assert_eq!(name(&one), format!("web-{hash}"));
        assert_eq!(one.metadata.annotations.as_ref().unwrap()["note"], "x");
        assert_ne!(name(&one), name(&made("web:2", 1, 0)));
        assert_ne!(name(&one), name(&made("web:1", 1, 1)), "a collision changes the name");
    }

    #[test]
    fn the_hash_equals_that_of_a_real_cluster() {
        let container = json!({
            "name": "nginx", "image": "nginx", "imagePullPolicy": "Always", "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        });
        let spec = json!({
            "containers": [container], "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
            "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30,
        });
        // Older versions serialized an empty creation time.
        let metadata = json!({ "creationTimestamp": null, "labels": { "app": "nginx-sts" } });
        let template = json!({ "$patch": "replace", "metadata": metadata, "spec": spec });
        assert_eq!(hash_of(&json!({ "spec": { "template": template } }), 0), "6798d68dcd");
    }

    #[test]
    fn the_hash_uses_gos_json_escapes() {
        let text = r#"{"spec":{"template":{"$patch":"replace","a":"x\u003cy"}}}0"#;
        let patch = json!({ "spec": { "template": { "a": "x<y", "$patch": "replace" } } });
        assert_eq!(hash_of(&patch, 0), hash::encode(hash::fnv1(text.as_bytes())));
    }
}
