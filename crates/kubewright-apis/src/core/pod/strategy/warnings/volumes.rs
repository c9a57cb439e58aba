//! Warnings about deprecated volumes and overlapping paths in projected volumes.

use serde_json::Value;

use super::Warnings;
use kubewright_apimachinery::field::{Path, quote};
use kubewright_apimachinery::object::Fields as _;

/// Deprecated and removed sources: field, name in the warning, and message.
const DEPRECATED: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

pub(super) fn volumes(spec: &Value, path: &Path, found: &mut Warnings) {
    for (index, volume) in spec.list_at("volumes").iter().enumerate() {
        let path = path.child("volumes").index(index);
        for (name, printed, message) in DEPRECATED {
            if volume.has(name) {
                found.add(&path.child(printed), message);
            }
        }
        let resources = volume.at("ephemeral.volumeClaimTemplate.spec.resources");
        let resources_path = ["ephemeral", "volumeClaimTemplate", "spec", "resources"]
            .into_iter()
            .fold(path, |path, name| path.child(name));
        for kind in ["requests", "limits"] {
            found.fraction(resources.at(kind), "storage", &resources_path.child(kind));
        }
    }
    for volume in spec.list_at("volumes") {
        files(volume, found);
    }
}

/// A path in a volume and, in a projected volume, its source.
struct File<'a> {
    path: &'a str,
    source: Option<String>,
}

impl File<'_> {
    fn printed(&self) -> String {
        match &self.source {
            Some(source) => format!("{} ({source})", quote(self.path)),
            None => quote(self.path),
        }
    }

    /// Whether the paths are equal or one is a parent directory of the other.
    fn overlaps(&self, other: &Self) -> bool {
        if self.path.is_empty() || other.path.is_empty() {
            return false;
        }
        let directory = |path: &str| format!("{}/", path.trim_end_matches('/'));
        let (own, other) = (directory(self.path), directory(other.path));
        own.starts_with(&other) || other.starts_with(&own)
    }
}

fn files(volume: &Value, found: &mut Warnings) {
    let name = quote(volume.str_at("name"));
    let plain = [
        ("configMap", format!("ConfigMap {}", quote(volume.str_at("configMap.name")))),
        ("secret", format!("Secret {}", quote(volume.str_at("secret.secretName")))),
        ("downwardAPI", "DownwardAPI".to_owned()),
    ];
    for (source, printed) in plain {
        overlaps(&format!("volume {name} ({printed})"), &listed(volume.at(source), None), found);
    }
    let mut all = Vec::new();
    for source in volume.list_at("projected.sources") {
        if source.as_object().is_none_or(|source| source.values().all(Value::is_null)) {
            found.list.push(format!("volume {name} (Projected) has no sources provided"));
        }
        let secret = format!("Secret {}", quote(source.str_at("secret.name")));
        let config_map = format!("ConfigMap {}", quote(source.str_at("configMap.name")));
        if source.has("configMap") {
            all.extend(listed(source.at("configMap"), Some(&config_map)));
        } else if source.has("secret") {
            all.extend(listed(source.at("secret"), Some(&secret)));
        } else if source.has("downwardAPI") {
            all.extend(listed(source.at("downwardAPI"), Some("DownwardAPI")));
        } else if source.has("serviceAccountToken") {
            let path = source.str_at("serviceAccountToken.path");
            all.push(File { path, source: Some("ServiceAccountToken".to_owned()) });
        }
    }
    overlaps(&format!("volume {name} (Projected)"), &all, found);
}

fn listed<'a>(source: &'a Value, printed: Option<&str>) -> Vec<File<'a>> {
    let items = source.list_at("items").iter();
    items.map(|item| File { path: item.str_at("path"), source: printed.map(str::to_owned) }).collect()
}

fn overlaps(volume: &str, files: &[File<'_>], found: &mut Warnings) {
    for (index, file) in files.iter().enumerate() {
        for other in files[..index].iter().filter(|other| file.overlaps(other)) {
            let (file, other) = (file.printed(), other.printed());
            found.list.push(format!("{volume}: overlapping paths: {file} with {other}"));
        }
    }
}
