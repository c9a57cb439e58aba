//! VolumeAttachment.

use serde_json::{Value, json};

use super::size;
use crate::core::persistent_volume::defaults::source;
use crate::core::persistent_volume::sources;
use crate::core::persistent_volume::validation::inline_volume;
use crate::core::pod::defaults::resources::round_up;
use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::reset_fields;
use crate::strategy::{keep, keep_spec_and_metadata};
use crate::table::row::Row;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::json;
use kubewright_apimachinery::meta::{self, Check};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "VolumeAttachment",
    defaults,
    prepare_create: |object| object.set_at("status", json!({"attached": false})),
    prepare_update: |new, old| keep(new, old, "status"),
    prepare_subresource: keep_spec_and_metadata,
    update_checks: &[Check::New, Check::New],
    subresource_checks: |_| &[Check::New, Check::New],
    validate,
    validate_update,
    validate_subresource: |subresource, new, old| match subresource {
        "status" => validate_update(new, old),
        _ => ErrorList::new(),
    },
    reset_fields: reset_fields::metadata_and_spec,
    cells,
    registry: RegistryRules { returns_deleted: true, ..RegistryRules::CONDITIONAL_UPDATE },
    ..super::GROUP
};

const MAX_ATTACHMENT_METADATA: usize = 256 * 1024;

const MAX_ERROR_MESSAGE: usize = 1024;

const ONE_SOURCE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

fn defaults(object: &mut Value) {
    if object.has("spec.source.inlineVolumeSpec") {
        round_up(object, "spec.source.inlineVolumeSpec.capacity");
        source(object, "spec.source.inlineVolumeSpec");
    }
}

fn validate(object: &Value) -> ErrorList {
    let spec = object.at("spec");
    let path = Path::new("spec");
    let mut errors = sources::driver_name(spec.str_at("attacher"), &path.child("attacher"));
    let source = path.child("source");
    match (spec.at("source.persistentVolumeName").as_str(), spec.has("source.inlineVolumeSpec")) {
        (None, false) => errors.push(FieldError::required(&source, ONE_SOURCE)),
        (Some(_), true) => errors.push(FieldError::forbidden(&source, ONE_SOURCE)),
        (Some(""), false) => {
            let detail = "must specify non empty persistentVolumeName";
            errors.push(FieldError::required(&source.child("persistentVolumeName"), detail));
        }
        (Some(name), false) => {
            let path = source.child("persistentVolumeName");
            errors.extend(meta::invalid(&path, name, names::dns1123_subdomain(name)));
        }
        (None, true) => {
            let path = source.child("inlineVolumeSpec");
            errors.extend(inline_volume(spec.at("source.inlineVolumeSpec"), &path));
        }
    }
    let node = spec.str_at("nodeName");
    errors.extend(meta::invalid(&path.child("nodeName"), node, names::dns1123_subdomain(node)));
    errors.extend(attachment_status(object.at("status")));
    errors
}

fn validate_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = validate(new);
    errors.extend(validate(new));
    if new.at("spec") != old.at("spec") {
        let printed = printed_attachment(new.at("spec"));
        errors.push(FieldError::invalid_printed(&Path::new("spec"), printed, meta::IMMUTABLE));
    }
    errors
}

fn attachment_status(status: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("status");
    if size(status.map_at("attachmentMetadata")) > MAX_ATTACHMENT_METADATA {
        errors.push(FieldError::too_long(&path.child("attachmentMetadata"), MAX_ATTACHMENT_METADATA));
    }
    for name in ["attachError", "detachError"] {
        let path = path.child(name);
        if status.at(name).str_at("message").len() > MAX_ERROR_MESSAGE {
            // Upstream prints the limit of another field.
            errors.push(FieldError::too_long(&path.child("message"), MAX_ATTACHMENT_METADATA));
        }
        if let Some(code @ ..0) = status.at(name).int_at("errorCode") {
            let detail = format!("must be between 0 and {}, inclusive", i32::MAX);
            errors.push(FieldError::invalid(&path.child("errorCode"), code, detail));
        }
    }
    errors
}

fn printed_attachment(spec: &Value) -> String {
    // Upstream's internal type has no JSON names for the inline spec. Here it has those of the API.
    format!(
        "{{\"Attacher\":{},\"Source\":{{\"PersistentVolumeName\":{},\"InlineVolumeSpec\":{}}},\"NodeName\":{}}}",
        json::quote(spec.str_at("attacher")),
        json::to_string(spec.at("source.persistentVolumeName")),
        json::to_string(spec.at("source.inlineVolumeSpec")),
        json::quote(spec.str_at("nodeName"))
    )
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    vec![
        row.name(),
        row.text("spec.attacher"),
        row.text("spec.source.persistentVolumeName"),
        row.text("spec.nodeName"),
        row.flag("status.attached"),
        row.age(),
    ]
}
