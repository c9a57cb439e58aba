//! The row of a CertificateSigningRequest.

use serde_json::Value;

use crate::table::row::{NONE, Row, condition};
use kubewright_apimachinery::duration::human_duration;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn cells(row: &Row<'_>) -> Vec<Value> {
    let duration = row.object.int_at("spec.expirationSeconds").map(human_duration);
    vec![
        row.name(),
        row.age(),
        row.text_or("spec.signerName", NONE),
        row.text("spec.username"),
        duration.as_deref().unwrap_or(NONE).into(),
        certificate_status(row).into(),
    ]
}

fn certificate_status(row: &Row<'_>) -> String {
    let has = |ty: &str| condition(row.list("status.conditions"), ty).is_some();
    let decision = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if row.str("status.certificate").is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}
