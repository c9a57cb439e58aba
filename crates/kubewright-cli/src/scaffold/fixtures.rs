//! Fixtures of scaffolded webhooks: the kind's sample, and the object that the API server returns for it.
//!
//! They match the scaffolded handlers. If the user changed the sample, the version on disk is used.

use kubewright_apiextensions::custom::{self, CrdValidation};
use kubewright_manifests::files::DEFINITIONS;
use kubewright_manifests::yaml;
use serde_json::{Value, json};

use super::kinds::Kind;
use super::render::Rendering;
use super::samples;

/// The API server's responses for [`samples::fixture`] of built-in kinds. A test compares them.
const BUILTIN: &str = include_str!("../../templates/tests/builtin.yaml");

/// The files of a fixture.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fixture {
    pub(super) object: String,
    /// The API server's response.
    pub(super) expected: String,
}

/// The fixture of a kind, or `None` if no valid object is known.
pub(super) fn of(kind: &Kind<'_>) -> Option<Fixture> {
    let (object, expected) = if kind.own { own(kind)? } else { builtin(kind)? };
    Some(Fixture { object: text(&object), expected: text(&expected) })
}

fn own(kind: &Kind<'_>) -> Option<(Value, Value)> {
    let mut object = json!({
        "apiVersion": format!("{}/{}", kind.group, kind.resource.version),
        "kind": kind.resource.kind,
        "metadata": { "name": format!("{}-sample", kind.singular) },
    });
    let Some(imported) = &kind.imported else {
        object["spec"] = json!({});
        return Some((object.clone(), object));
    };
    if !imported.is_sample_taken {
        return None;
    }
    for (name, field) in &imported.sample {
        object[name] = field.clone();
    }
    let expected = answer(&imported.definition, &kind.resource.version, &object)?;
    Some((object, expected))
}

fn builtin(kind: &Kind<'_>) -> Option<(Value, Value)> {
    let mut object = samples::fixture(&kind.group, &kind.resource.version, &kind.resource.kind)?;
    let all: Vec<Value> = serde_saphyr::from_multiple(BUILTIN).expect("the template is YAML");
    let is_same = |one: &Value| one["apiVersion"] == object["apiVersion"] && one["kind"] == object["kind"];
    let mut expected = all.into_iter().find(is_same)?;
    if let Some(label) = &kind.selected {
        for object in [&mut object, &mut expected] {
            object["metadata"]["labels"][label] = "enabled".into();
        }
    }
    Some((object, expected))
}

/// The object that the API server returns: with CRD defaults and without status.
fn answer(crd: &Value, version: &str, object: &Value) -> Option<Value> {
    let definition = CrdValidation::compile(crd).ok()?;
    let version = definition.versions.get(version)?;
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut().filter(|_| version.status) {
        fields.remove("status");
    }
    custom::apply_defaults(&version.schema, &mut object);
    Some(object)
}

fn text(object: &Value) -> String {
    yaml::document(object).trim_start_matches("---\n").to_owned()
}

/// Replaces new fixtures in `after` with samples that the user changed.
pub(super) fn copy<E>(
    before: &Rendering,
    after: &mut Rendering,
    mut disk: impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<(), E> {
    let new: Vec<String> =
        after.keys().filter(|id| id.starts_with("fixture/") && !before.contains_key(*id)).cloned().collect();
    for id in new {
        let Some((kind, what)) = id.trim_start_matches("fixture/").rsplit_once('/') else { continue };
        let Some(sample) = after.get(&format!("sample/{kind}")) else { continue };
        let Some(user) = disk(&sample.path)?.filter(|user| *user != sample.text) else { continue };
        let Some(object) = single(&user, kind) else { continue };
        let changed = if what == "expected" {
            let Some(crd) = crd(after, kind, &mut disk)? else { continue };
            let version = kind.rsplit('/').nth(1).unwrap_or_default();
            answer(&crd, version, &object).map(|answer| text(&answer))
        } else {
            Some(user)
        };
        if let (Some(changed), Some(file)) = (changed, after.get_mut(&id)) {
            file.text = changed;
        }
    }
    Ok(())
}

/// The object in a sample, if it has this group, version and kind.
fn single(sample: &str, kind: &str) -> Option<Value> {
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(sample).ok()?;
    let object = objects.pop().filter(|_| objects.is_empty())?;
    let id = format!("{}/{}", object["apiVersion"].as_str()?, object["kind"].as_str()?);
    (id == kind).then_some(object)
}

/// The CRD of a kind: from disk, or as rendered.
fn crd<E>(
    after: &Rendering,
    kind: &str,
    disk: &mut impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<Option<Value>, E> {
    for file in after.values().filter(|file| file.generated && file.path.starts_with(DEFINITIONS)) {
        let read = |text: &str| serde_saphyr::from_str::<Value>(text).ok();
        let Some(crd) = read(&file.text) else { continue };
        let (group, name) = (&crd["spec"]["group"], &crd["spec"]["names"]["kind"]);
        let is_kind = kind.split('/').next().is_some_and(|wanted| *group == wanted)
            && kind.split('/').next_back().is_some_and(|wanted| *name == wanted);
        if is_kind {
            return Ok(disk(&file.path)?.and_then(|text| read(&text)).or(Some(crd)));
        }
    }
    Ok(None)
}
