//! HorizontalPodAutoscaler.
//!
//! The two versions have different fields, so each has a row. Rules use the form of autoscaling/v2.

mod convert;
mod defaults;
mod table;
mod validation;

use serde_json::{Value, json};

use crate::convert::convert;
use crate::kinds::KindRules;
use crate::strategy::keep;
use crate::table::row::Row;
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

const V1: Gvk<'_> = Gvk { group: "autoscaling", version: "v1", kind: "HorizontalPodAutoscaler" };
const V2: Gvk<'_> = Gvk { group: "autoscaling", version: "v2", kind: "HorizontalPodAutoscaler" };

/// The rules of autoscaling/v2.
pub(crate) const RULES: KindRules = KindRules {
    kind: "HorizontalPodAutoscaler",
    defaults: defaults::v2,
    prepare_create: |object| prepare_create(V2, object),
    prepare_update: |new, old| prepare_update(V2, new, old),
    prepare_subresource: |subresource, new, old| prepare_subresource(V2, subresource, new, old),
    validate: validation::create,
    validate_update: validation::update,
    validate_subresource: |subresource, new, _| match subresource {
        "status" => validation::status(new),
        _ => ErrorList::new(),
    },
    cells: table::cells,
    convert: Some(convert::to_v2),
    ..super::GROUP
};

/// The rules of autoscaling/v1.
pub(crate) const V1_RULES: KindRules = KindRules {
    version: Some("v1"),
    defaults: defaults::v1,
    prepare_create: |object| prepare_create(V1, object),
    prepare_update: |new, old| prepare_update(V1, new, old),
    prepare_subresource: |subresource, new, old| prepare_subresource(V1, subresource, new, old),
    cells: |row| {
        let object = &convert(row.object.clone(), V2);
        table::cells(&Row { object, now: row.now })
    },
    convert: Some(convert::to_v1),
    ..RULES
};

fn prepare_create(gvk: Gvk<'_>, object: &mut Value) {
    as_v2(gvk, object, |hpa| hpa.set_at("status", json!({})));
}

fn prepare_update(gvk: Gvk<'_>, new: &mut Value, old: &Value) {
    let old = convert(old.clone(), V2);
    as_v2(gvk, new, |new| keep(new, &old, "status"));
}

fn prepare_subresource(gvk: Gvk<'_>, subresource: &str, new: &mut Value, old: &Value) {
    if subresource == "status" {
        let old = convert(old.clone(), V2);
        as_v2(gvk, new, |new| keep(new, &old, "spec"));
    }
}

/// Edits an object in v2 form, because v1 stores parts of spec and status in annotations.
fn as_v2(gvk: Gvk<'_>, object: &mut Value, edit: impl FnOnce(&mut Value)) {
    let mut latest = convert(object.take(), V2);
    edit(&mut latest);
    *object = convert(latest, gvk);
}

#[cfg(test)]
mod tests;
