//! Validation of CertificateSigningRequests.
//!
//! A problem that the stored object has already is tolerated on update, as in kube-apiserver.

mod der;
mod pem;
mod x509;

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::Value;

use crate::validation::{one_of, required, strings};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path, quote};
use kubewright_apimachinery::meta::bytes;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const MIN_EXPIRATION: i64 = 600;

/// Problems of the stored object that an update may keep.
#[derive(Default)]
struct Tolerated {
    legacy_signer: bool,
    unknown_usages: bool,
    duplicate_usages: bool,
    approved_and_denied: bool,
    duplicate_conditions: bool,
    empty_condition_type: bool,
    certificate: bool,
}

impl Tolerated {
    fn on_update(new: &Value, old: &Value) -> Self {
        let usages = strings(old.at("spec"), "usages");
        let conditions: Vec<&str> =
            old.list_at("status.conditions").iter().map(|condition| condition.str_at("type")).collect();
        let distinct = |items: &[&str]| items.iter().collect::<HashSet<_>>().len() == items.len();
        Self {
            legacy_signer: old.str_at("spec.signerName") == LEGACY_SIGNER,
            unknown_usages: usages.iter().any(|usage| !USAGES.contains(usage)),
            duplicate_usages: !distinct(&usages),
            approved_and_denied: conditions.contains(&"Approved") && conditions.contains(&"Denied"),
            duplicate_conditions: !distinct(&conditions),
            empty_condition_type: conditions.contains(&""),
            certificate: new.at("status.certificate") == old.at("status.certificate")
                || certificate_problem(&bytes::decode(old.str_at("status.certificate"))).is_some(),
        }
    }
}

/// Checks a request that is about to be created.
pub(super) fn create(object: &Value) -> ErrorList {
    request(object, &Tolerated::default())
}

/// Validates a request that replaces `old`, as a whole or in `subresource`.
pub(super) fn update(subresource: &str, new: &Value, old: &Value) -> ErrorList {
    let mut errors = request(new, &Tolerated::on_update(new, old));
    let path = Path::new("status").child("conditions");
    let of_type = |object: &Value, name: &str| -> Vec<Value> {
        object.list_at("status.conditions").iter().filter(|c| c.str_at("type") == name).cloned().collect()
    };
    for name in ["Approved", "Denied", "Failed"] {
        if of_type(new, name).len() < of_type(old, name).len() {
            let detail = format!("updates may not remove a condition of type {}", quote(name));
            errors.push(FieldError::forbidden(&path, detail));
        }
    }
    if subresource != "approval" {
        for name in ["Approved", "Denied"] {
            let (new, old) = (of_type(new, name), of_type(old, name));
            // A removed condition is already reported above.
            let verb = match new.len().cmp(&old.len()) {
                Ordering::Greater => "add",
                Ordering::Equal if new != old => "modify",
                Ordering::Equal | Ordering::Less => continue,
            };
            let detail = format!("updates may not {verb} a condition of type {}", quote(name));
            errors.push(FieldError::forbidden(&path, detail));
        }
    }
    let (new, old) = (new.str_at("status.certificate"), old.str_at("status.certificate"));
    if new != old {
        let path = Path::new("status").child("certificate");
        if subresource != "status" {
            errors.push(FieldError::forbidden(&path, "updates may not set certificate content"));
        } else if !old.is_empty() {
            errors.push(FieldError::forbidden(&path, "updates may not modify existing certificate content"));
        }
    }
    errors
}

fn request(object: &Value, tolerated: &Tolerated) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = object.at("spec");
    let path = Path::new("spec");
    if let Err(detail) = request_problem(&bytes::decode(spec.str_at("request"))) {
        // Bytes that are absent marshal to null.
        errors.push(FieldError::invalid_printed(
            &path.child("request"),
            spec.at("request").to_string(),
            detail,
        ));
    }
    errors.extend(usages(&strings(spec, "usages"), &path.child("usages"), tolerated));
    let signer = spec.str_at("signerName");
    if signer == LEGACY_SIGNER && !tolerated.legacy_signer {
        let detail = "the legacy signerName is not allowed via this API version";
        errors.push(FieldError::invalid(&path.child("signerName"), signer, detail));
    } else {
        errors.extend(signer_name(signer, &path.child("signerName")));
    }
    if let Some(seconds) = spec.int_at("expirationSeconds").filter(|seconds| *seconds < MIN_EXPIRATION) {
        let detail = format!("may not specify a duration less than {MIN_EXPIRATION} seconds (10 minutes)");
        errors.push(FieldError::invalid(&path.child("expirationSeconds"), seconds, detail));
    }
    let path = Path::new("status").child("conditions");
    errors.extend(conditions(object.list_at("status.conditions"), &path, tolerated));
    if !tolerated.certificate {
        errors.extend(certificate(object));
    }
    errors
}

fn request_problem(pem: &[u8]) -> Result<(), String> {
    match pem::blocks(pem).first() {
        Some(block) if block.label == "CERTIFICATE REQUEST" => x509::check_request(&block.bytes),
        _ => Err("PEM block type must be CERTIFICATE REQUEST".to_owned()),
    }
}

fn certificate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(problem) = certificate_problem(&bytes::decode(object.str_at("status.certificate"))) {
        let path = Path::new("status").child("certificate");
        errors.push(FieldError::invalid(&path, "<certificate data>", problem));
    }
    errors
}

fn usages(usages: &[&str], path: &Path, tolerated: &Tolerated) -> ErrorList {
    let mut errors = ErrorList::new();
    if usages.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    for (i, usage) in usages.iter().enumerate().filter(|_| !tolerated.unknown_usages) {
        errors.extend(one_of(usage, &USAGES, &path.index(i)));
    }
    let mut seen = HashSet::new();
    for (i, usage) in usages.iter().enumerate() {
        if !seen.insert(usage) && !tolerated.duplicate_usages {
            errors.push(FieldError::duplicate(&path.index(i), *usage));
        }
    }
    errors
}

fn signer_name(name: &str, path: &Path) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return vec![FieldError::invalid(path, name, detail)];
    };
    let mut errors = ErrorList::new();
    if domain.len() > names::SUBDOMAIN_MAX_LENGTH {
        errors.push(FieldError::too_long(path, names::SUBDOMAIN_MAX_LENGTH));
    }
    errors.extend(parts(domain, names::dns1123_label, path));
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, domain, detail));
    }
    errors.extend(parts(rest, names::dns1123_subdomain, path));
    // A domain, a slash, and a label before a subdomain.
    let max = 2 * names::SUBDOMAIN_MAX_LENGTH + names::LABEL_MAX_LENGTH + 2;
    if name.len() > max {
        errors.push(FieldError::too_long(path, max));
    }
    errors
}

/// The problems of the first invalid part between dots.
fn parts(text: &str, check: fn(&str) -> Vec<String>, path: &Path) -> ErrorList {
    let wrong = text.split('.').map(|part| (part, check(part))).find(|(_, messages)| !messages.is_empty());
    let Some((part, messages)) = wrong else { return ErrorList::new() };
    let details = messages.into_iter().map(|message| format!("validating label {}: {message}", quote(part)));
    details.map(|detail| FieldError::invalid(path, text, detail)).collect()
}

fn conditions(conditions: &[Value], list: &Path, tolerated: &Tolerated) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let path = list.index(i);
        let kind = condition.str_at("type");
        if !tolerated.empty_condition_type {
            errors.extend(required(kind, &path.child("type")));
        }
        let known: &[&str] = match kind {
            "Approved" | "Denied" | "Failed" => &["True"],
            _ => &["False", "True", "Unknown"],
        };
        match condition.str_at("status") {
            "" => errors.push(FieldError::required(&path.child("status"), "")),
            status => errors.extend(one_of(status, known, &path.child("status"))),
        }
        let rival = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !rival.is_empty() && seen.contains(&rival) && !tolerated.approved_and_denied {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(list, kind, detail));
        }
        if !seen.insert(kind) && !tolerated.duplicate_conditions {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
    }
    errors
}

fn certificate_problem(pem: &[u8]) -> Option<String> {
    if pem.is_empty() {
        return None;
    }
    let blocks = pem::blocks(pem);
    if blocks.is_empty() {
        return Some("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    blocks.iter().find_map(|block| {
        if block.label != "CERTIFICATE" {
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {}", quote(&block.label)));
        }
        if block.has_headers {
            return Some("no PEM block headers are permitted".to_owned());
        }
        if block.bytes.is_empty() {
            return Some("found CERTIFICATE PEM block containing 0 certificates".to_owned());
        }
        x509::check_certificates(&block.bytes).err()
    })
}
