//! A new version of a kind starts as a copy of the storage version in the user's files.
//!
//! The copy is a three-way merge: the difference between the two renderings (the version name and `storage =
//! false`) is applied to the user's file of the old version. Without conversion, both versions then have the
//! same fields, and no stored field is pruned.

use kubewright_manifests::files::DEFINITIONS;
use kubewright_manifests::yaml;
use serde_json::Value;

use super::add::Copied;
use super::merge::merge;
use super::render::Rendering;
use super::{from_crd, kinds};
use crate::project::project_file::ProjectFile;

/// Replaces the types, sample and CRD of a new version in `after` with copies of the old version.
pub(crate) fn copy<E>(
    project: &ProjectFile,
    Copied { from, to }: &Copied,
    (before, after): (&mut Rendering, &mut Rendering),
    mut disk: impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<(), E> {
    for what in ["types", "sample"] {
        let (old, new) = (format!("{what}/{}", from.id()), format!("{what}/{}", to.id()));
        let (Some(old), Some(new)) = (before.get(&old), after.get_mut(&new)) else { continue };
        let Some(user) = disk(&old.path)? else { continue };
        let copy =
            merge(&old.text, &user, &new.text).unwrap_or_else(|_| renamed(&user, &from.version, &to.version));
        // `super` would refer to the module of the old version.
        new.text = match kinds::kinds(project).iter().find(|kind| kind.id() == from.id()) {
            Some(kind) => copy.replace("super::", &format!("crate::{}::", kind.api(project.multigroup))),
            None => copy,
        };
    }
    let crd = after.values().find(|file| {
        file.generated && file.path.starts_with(DEFINITIONS) && {
            let of_kind: Option<Value> = serde_saphyr::from_str(&file.text).ok();
            of_kind.is_some_and(|crd| {
                crd["spec"]["names"]["kind"] == to.kind && crd["spec"]["group"] == to.full_group()
            })
        }
    });
    let Some(path) = crd.map(|file| file.path.clone()) else { return Ok(()) };
    let (Some(old), Some(new)) = (before.get_mut(&path), after.get_mut(&path)) else { return Ok(()) };
    let Some(user) = disk(&path)?.filter(|user| *user != old.text) else { return Ok(()) };
    if let Some(copy) = with_version(&user, &from.version, &to.version) {
        (old.text, new.text) = (user, copy);
    }
    Ok(())
}

/// Renames the version in a file that was changed too much for a merge.
fn renamed(text: &str, from: &str, to: &str) -> String {
    let text = text
        .replace(&format!("version = \"{from}\""), &format!("version = \"{to}\", storage = false"))
        .replace(&format!("/{from}\n"), &format!("/{to}\n"));
    text.replacen(&format!("version {from} of"), &format!("version {to} of"), 1)
}

/// Copies a version in a generated CRD. Returns `None` if the file is not such a CRD.
fn with_version(text: &str, from: &str, to: &str) -> Option<String> {
    let mut crd: Value = serde_saphyr::from_str(text).ok()?;
    if yaml::document(&crd) != text {
        return None;
    }
    let versions = crd.pointer_mut("/spec/versions")?.as_array_mut()?;
    let of = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
    let old = versions.iter().find(|version| of(version) == from)?.clone();
    let one = from_crd::as_version(&serde_json::json!({ "spec": { "versions": [old] } }), to);
    versions.push(one.pointer("/spec/versions/0")?.clone());
    versions.sort_by_key(of);
    Some(yaml::document(&crd))
}
