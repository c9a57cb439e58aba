//! Conversion of managedFields between an object and its scale subresource.
//!
//! A Scale has one owned field, `spec.replicas`, which has another path in the object. The entries are
//! converted in both directions, so that a manager that scales an object owns its replicas field.

use super::managed::{Entry, ManagedFields};
use super::path::Element;
use super::set::Set;

const SCALE: &str = "autoscaling/v1";

/// The path of the replicas field in each API version of a kind.
#[derive(Debug, Clone, Default)]
pub struct ReplicasPaths {
    paths: Vec<(String, Option<Vec<Element>>)>,
}

impl ReplicasPaths {
    /// Adds a version. `path` has the format of `specReplicasPath`; `None` if the version has no scale
    /// subresource.
    pub fn add(&mut self, api_version: &str, path: Option<&str>) {
        let elements = path.map(|path| path.trim_start_matches('.').split('.').map(Element::field).collect());
        self.paths.push((api_version.to_owned(), elements));
    }

    fn get(&self, api_version: &str) -> Option<&Option<Vec<Element>>> {
        self.paths.iter().find(|(version, _)| version == api_version).map(|(_, path)| path)
    }
}

fn scale_replicas() -> Set {
    Set::of_fields(&[&["spec", "replicas"]])
}

/// Converts the entries of an object that own its replicas to entries of the Scale.
pub fn to_scale(object: &ManagedFields, paths: &ReplicasPaths) -> ManagedFields {
    let entries = object.entries.iter().filter(|entry| match paths.get(&entry.api_version) {
        Some(Some(path)) => entry.fields.has(path),
        _ => false,
    });
    let entries = entries.map(|entry| Entry {
        api_version: SCALE.to_owned(),
        fields: scale_replicas(),
        ..entry.clone()
    });
    ManagedFields { entries: entries.collect() }
}

/// Merges the entries of a written Scale back into those of the object. `api_version` is that of the object
/// in the request.
pub fn from_scale(
    object: &ManagedFields,
    scale: &ManagedFields,
    api_version: &str,
    paths: &ReplicasPaths,
) -> ManagedFields {
    let mut scale: Vec<Entry> = scale.entries.clone();
    let mut entries = Vec::new();
    for entry in &object.entries {
        let Some(path) = paths.get(&entry.api_version) else { continue };
        let Some(path) = path.as_ref().filter(|path| entry.fields.has(path)) else {
            entries.push(entry.clone());
            continue;
        };
        // Update entries have the API version of the Scale here, so only apply entries match.
        let same = scale.iter().position(|other| other.is_of(&entry.manager, &entry.api_version));
        if let Some(at) = same {
            scale.remove(at);
            entries.push(entry.clone());
            continue;
        }
        let mut replicas = Set::default();
        replicas.insert(path);
        let mut entry = entry.clone();
        entry.fields.subtract(&replicas);
        if !entry.fields.is_empty() {
            entries.push(entry);
        }
    }
    let mut replicas = Set::default();
    if let Some(Some(path)) = paths.get(api_version) {
        replicas.insert(path);
    }
    let in_scale = [Element::field("spec"), Element::field("replicas")];
    for entry in scale.into_iter().filter(|entry| entry.fields.has(&in_scale)) {
        // As upstream, the time of a write through the Scale is lost.
        let before = object.position(&entry.manager, &entry.api_version);
        entries.push(Entry {
            api_version: api_version.to_owned(),
            time: before.and_then(|at| object.entries[at].time.clone()),
            fields: replicas.clone(),
            ..entry
        });
    }
    ManagedFields { entries }
}
