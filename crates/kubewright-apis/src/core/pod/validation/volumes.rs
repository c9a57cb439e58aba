//! Validation of volume names and of the number of sources.
//!
//! `sources`, `cloud` and `projected` validate the sources themselves.

mod cloud;
mod projected;
mod sources;

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::checks;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

/// The valid volumes by name. Containers may mount these.
pub(super) type Volumes<'a> = HashMap<&'a str, &'a Value>;

/// The name of a source, its path in the error about a second source, and its validation.
type Source = (&'static str, &'static str, fn(&Value, &Path, &mut ErrorList));

/// In upstream's order: of two sources, the later one is reported. Some paths reproduce upstream's
/// misspellings.
const SOURCES: [Source; 30] = [
    ("emptyDir", "emptyDir", sources::empty_dir),
    ("hostPath", "hostPath", sources::host_path),
    ("gitRepo", "gitRepo", sources::git_repo),
    ("gcePersistentDisk", "gcePersistentDisk", cloud::gce_persistent_disk),
    ("awsElasticBlockStore", "awsElasticBlockStore", cloud::aws_elastic_block_store),
    ("secret", "secret", sources::secret),
    ("nfs", "nfs", sources::nfs),
    ("iscsi", "iscsi", sources::iscsi),
    ("glusterfs", "glusterfs", cloud::glusterfs),
    ("flocker", "flocker", cloud::flocker),
    ("persistentVolumeClaim", "persistentVolumeClaim", sources::claim),
    ("rbd", "rbd", cloud::rbd),
    ("cinder", "cinder", cloud::cinder),
    ("cephfs", "cephFS", cloud::cephfs),
    ("quobyte", "quobyte", cloud::quobyte),
    ("downwardAPI", "downwarAPI", projected::downward_api),
    ("fc", "fc", sources::fibre_channel),
    ("flexVolume", "flexVolume", cloud::flex),
    ("configMap", "configMap", sources::config_map),
    ("azureFile", "azureFile", cloud::azure_file),
    ("vsphereVolume", "vsphereVolume", cloud::vsphere),
    ("photonPersistentDisk", "photonPersistentDisk", cloud::photon_persistent_disk),
    ("portworxVolume", "portworxVolume", cloud::portworx),
    ("azureDisk", "azureDisk", cloud::azure_disk),
    ("storageos", "storageos", cloud::storage_os),
    ("projected", "projected", projected::projected),
    ("scaleIO", "scaleIO", cloud::scale_io),
    ("csi", "csi", sources::csi),
    ("ephemeral", "ephemeral", sources::ephemeral),
    ("image", "image", sources::image),
];

/// Validates the volumes of a pod. The name of the pod, empty in a template, is part of the names of
/// generated claims.
pub(super) fn volumes<'a>(
    spec: &'a Value,
    pod_name: &str,
    path: &Path,
    errors: &mut ErrorList,
) -> Volumes<'a> {
    let created: HashSet<String> = spec
        .list_at("volumes")
        .iter()
        .filter(|volume| !pod_name.is_empty() && volume.has("ephemeral"))
        .map(|volume| format!("{pod_name}-{}", volume.str_at("name")))
        .collect();
    let mut valid = Volumes::new();
    for (volume, path) in checks::items(spec, "volumes", path) {
        let before = errors.len();
        source(volume, pod_name, &path, errors);
        let name = volume.str_at("name");
        let name_path = path.child("name");
        if name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        } else {
            checks::dns_label(name, &name_path, errors);
        }
        if valid.contains_key(name) {
            errors.push(FieldError::duplicate(&name_path, name));
        }
        if errors.len() == before {
            valid.insert(name, volume);
        }
        let claim = volume.str_at("persistentVolumeClaim.claimName");
        if created.contains(claim) {
            errors.push(FieldError::invalid(
                &path.child("persistentVolumeClaim").child("claimName"),
                claim,
                "must not reference a PVC that gets created for an ephemeral volume",
            ));
        }
    }
    valid
}

fn source(volume: &Value, pod_name: &str, path: &Path, errors: &mut ErrorList) {
    let mut found = false;
    for (name, extra_name, check) in SOURCES {
        if !volume.has(name) {
            continue;
        }
        if found {
            errors.push(FieldError::forbidden(
                &path.child(extra_name),
                "may not specify more than 1 volume type",
            ));
        } else {
            // Upstream uses another name for this one in errors.
            let child = if name == "gcePersistentDisk" { "persistentDisk" } else { name };
            check(volume.at(name), &path.child(child), errors);
            if name == "ephemeral" {
                claim_name(volume.str_at("name"), pod_name, path, errors);
            }
        }
        found = true;
        if name == "iscsi" {
            initiator_length(volume, path, errors);
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

/// Validates the name of the generated claim, which consists of pod and volume name.
fn claim_name(volume: &str, pod: &str, path: &Path, errors: &mut ErrorList) {
    if pod.is_empty() || volume.is_empty() {
        return;
    }
    let claim = format!("{pod}-{volume}");
    for message in names::dns1123_subdomain(&claim) {
        let detail = format!("PVC name {}: {message}", kubewright_apimachinery::field::quote(&claim));
        errors.push(FieldError::invalid(&path.child("name"), volume, detail));
    }
}

fn initiator_length(volume: &Value, path: &Path, errors: &mut ErrorList) {
    let name = volume.str_at("name");
    if volume.has("iscsi.initiatorName") && name.len() + 1 + volume.str_at("iscsi.targetPortal").len() > 64 {
        errors.push(FieldError::invalid(
            &path.child("name"),
            name,
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
             iscsi.initiatorName is specified.",
        ));
    }
}
