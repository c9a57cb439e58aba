//! Runs the API server's validation on a new object.
//!
//! Same steps as in `kubewright-apiserver`: decoding, defaults, validation. Also reports unknown fields,
//! which the API server drops with a warning.

use kubewright_apiextensions::crd;
use kubewright_apimachinery::field::FieldError;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::{decode, types};
use kubewright_apis::{defaults, validation};
use kubewright_cel::rules::Compiler;
use serde_json::Value;

/// Longer values are omitted, because they are whole schemas.
const SHORT: usize = 80;

/// An error of the API server.
pub(super) struct Refusal {
    /// The field path; empty for the whole object.
    pub(super) field: String,
    /// The message.
    pub(super) message: String,
    /// Whether the field is unknown.
    pub(super) is_unknown: bool,
}

/// All errors of an object.
pub(super) fn refusals(object: &Value) -> Vec<Refusal> {
    let gvk = Gvk::of(object);
    let Some(of_kind) = types::type_of_kind(gvk.group, gvk.version, gvk.kind) else { return Vec::new() };
    let mut refusals: Vec<Refusal> =
        decode::unknown_fields(of_kind, object).iter().map(|text| unknown_field(text)).collect();
    let mut object = object.clone();
    if let Err(error) = decode::complete(of_kind, &mut object) {
        refusals.push(Refusal::of_the_whole(error.to_string()));
        return refusals;
    }
    let errors = if gvk == crd::GVK {
        if let Err(message) = crd::complete(&mut object) {
            refusals.push(Refusal::of_the_whole(message));
            return refusals;
        }
        crd::set_defaults(&mut object);
        crd::prepare_create(&mut object);
        crd::validate_create(&object, &Compiler)
    } else {
        defaults::apply(gvk, &mut object);
        validation::create(gvk, gvk.kind == "Role", &object)
    };
    refusals.extend(errors.iter().map(Refusal::of));
    refusals
}

impl Refusal {
    fn of(error: &FieldError) -> Self {
        let is_long = error.value.as_ref().is_some_and(|value| value.len() > SHORT);
        let message = if is_long && !error.detail.is_empty() { error.detail.clone() } else { error.body() };
        Self { field: error.field.clone(), message, is_unknown: false }
    }

    fn of_the_whole(message: String) -> Self {
        Self { field: String::new(), message, is_unknown: false }
    }
}

/// Parses `unknown field "webhooks[0].x"`.
fn unknown_field(text: &str) -> Refusal {
    let field = text.split('"').nth(1).unwrap_or_default().to_owned();
    let message = "unknown field, which the API server drops".to_owned();
    Refusal { field, message, is_unknown: true }
}
