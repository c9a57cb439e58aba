//! Rules of the conversion between versions.

use serde_json::Value;

use super::super::spec::Spec;
use super::demands::Demands;
use super::one_of;
use crate::field::{ErrorList, FieldError, Path};
use crate::names;
use crate::object::Fields as _;
use crate::validation::meta::{bytes, invalid};

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Checks `spec.conversion`. Its webhook has paths of upstream's internal type.
pub(super) fn validate(spec: &Spec<'_>, demands: &Demands<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let conversion = spec.raw.at("conversion");
    if conversion.is_null() {
        return errors;
    }
    let strategy = conversion.str_at("strategy");
    if strategy != "None" && spec.preserves_unknown_fields() {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(&path.child("strategy"), strategy, detail));
    }
    errors.extend(one_of(&path.child("strategy"), strategy, &["None", "Webhook"]));
    let config = conversion.at("webhook.clientConfig");
    let config_path = path.child("webhookClientConfig");
    let versions = conversion.at("webhook.conversionReviewVersions");
    let versions_path = path.child("conversionReviewVersions");
    if strategy == "Webhook" {
        errors.extend(client_config(config, demands, &config_path));
        errors.extend(review_versions(versions, demands, &versions_path));
        return errors;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if !config.is_null() {
        errors.push(FieldError::forbidden(&config_path, detail));
    }
    if versions.as_array().is_some_and(|versions| !versions.is_empty()) {
        errors.push(FieldError::forbidden(&versions_path, detail));
    }
    errors
}

/// Whether a stored conversion names a known review version, or none at all.
pub(super) fn knows_version_or_none(conversion: &Value) -> bool {
    let versions = conversion.list_at("webhook.conversionReviewVersions");
    versions.is_empty() || versions.iter().any(is_known)
}

fn is_known(version: &Value) -> bool {
    version.as_str().is_some_and(|version| REVIEW_VERSIONS.contains(&version))
}

fn review_versions(versions: &Value, demands: &Demands<'_>, path: &Path) -> ErrorList {
    let list = versions.as_array().map_or(&[][..], Vec::as_slice);
    if list.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = ErrorList::new();
    for (i, version) in list.iter().enumerate() {
        let path = path.index(i);
        let text = version.as_str().unwrap_or_default();
        if list[..i].contains(version) {
            errors.push(FieldError::invalid(&path, text, "duplicate version"));
        } else {
            errors.extend(invalid(&path, text, names::dns1035_label(text)));
        }
    }
    if demands.known_review_version && !list.iter().any(is_known) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::invalid(path, versions.clone(), detail));
    }
    errors
}

fn client_config(config: &Value, demands: &Demands<'_>, path: &Path) -> ErrorList {
    if config.is_null() {
        return vec![FieldError::required(path, "required when strategy is set to Webhook")];
    }
    let mut errors = match (config.at("url").as_str(), config.has("service")) {
        (Some(text), false) => url(text, &path.child("url")),
        (None, true) => service(config.at("service"), &path.child("service")),
        _ => vec![FieldError::required(path, "exactly one of url or service is required")],
    };
    let bundle = config.str_at("caBundle");
    if demands.ca_bundle
        && let Some(problem) = ca_bundle_problem(bundle)
    {
        errors.push(FieldError::invalid(&path.child("caBundle"), bundle, problem));
    }
    errors
}

/// What is wrong with a CA bundle, as base64: only that nothing in it says that it is a certificate, for
/// certificates themselves are not read here. No bundle is fine.
pub(in crate::crd) fn ca_bundle_problem(bundle: &str) -> Option<&'static str> {
    if bundle.is_empty() {
        return None;
    }
    let labels = bytes::pem_labels(&bytes::decode(bundle));
    let certificate = labels.iter().any(|label| label == "CERTIFICATE");
    (!certificate).then_some("unable to load root certificates: unable to parse bytes as PEM block")
}

/// Checks a URL, of which Go's parser would refuse more.
fn url(text: &str, path: &Path) -> ErrorList {
    const FORM: &str = "; desired format: https://host[/path]";
    let mut errors = ErrorList::new();
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_scheme = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let (scheme, rest) = rest.split_once(':').filter(|(scheme, _)| is_scheme(scheme)).unwrap_or(("", rest));
    let scheme = scheme.to_lowercase();
    let authority = rest.strip_prefix("//").map_or("", |rest| rest.split('/').next().unwrap_or_default());
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(FieldError::invalid(path, scheme, detail));
    }
    if host.is_empty() {
        errors.push(FieldError::invalid(path, "", format!("host must be specified{FORM}")));
    }
    if let Some(user) = user {
        errors.push(FieldError::invalid(path, user, "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        errors.push(FieldError::invalid(path, fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        errors.push(FieldError::invalid(path, query, "query parameters are not permitted in the URL"));
    }
    errors
}

fn service(service: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    // Upstream passes the two in the wrong order, and so names the other one.
    for (missing, shown) in [("namespace", "name"), ("name", "namespace")] {
        if service.str_at(missing).is_empty() {
            errors.push(FieldError::required(&path.child(shown), ""));
        }
    }
    let port = service.int_at("port").unwrap_or_default();
    let problems = names::port_number(port);
    if !problems.is_empty() {
        let detail = format!("port is not valid: {}", problems.join(", "));
        errors.push(FieldError::invalid(&path.child("port"), port, detail));
    }
    errors.extend(service_path(service.str_at("path"), &path.child("path")));
    errors
}

fn service_path(value: &str, path: &Path) -> ErrorList {
    let details = match value {
        "" | "/" => Vec::new(),
        "//" => vec!["segment[0] may not be empty".to_owned()],
        _ => service_path_problems(value),
    };
    details.into_iter().map(|detail| FieldError::invalid(path, value, detail)).collect()
}

fn service_path_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if !value.starts_with('/') {
        problems.push("must start with a '/'".to_owned());
    }
    // The first character goes even if it is no slash.
    let rest = value.split_at(value.chars().next().map_or(0, char::len_utf8)).1;
    for (i, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            problems.push(format!("segment[{i}] may not be empty"));
            continue;
        }
        problems
            .extend(names::dns1123_subdomain(step).iter().map(|problem| format!("segment[{i}]: {problem}")));
    }
    problems
}
