//! Validation of `clientConfig`, shared by admission and conversion webhooks.

use serde_json::Value;

use crate::field::{ErrorList, FieldError, Path};
use crate::names;
use crate::object::Fields as _;

/// Validates a `clientConfig`, except for its CA bundle.
pub fn client_config(config: &Value, path: &Path) -> ErrorList {
    match (config.at("url").as_str(), config.has("service")) {
        (Some(text), false) => url(text, &path.child("url")),
        (None, true) => service(config.at("service"), &path.child("service")),
        _ => vec![FieldError::required(path, "exactly one of url or service is required")],
    }
}

/// Validates a URL. Go's parser rejects more.
fn url(text: &str, path: &Path) -> ErrorList {
    const FORM: &str = "; desired format: https://host[/path]";
    let mut errors = ErrorList::new();
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest)) if scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) => {
            (scheme, rest)
        }
        _ => ("", rest),
    };
    let authority = rest.strip_prefix("//").map_or("", |rest| rest.split('/').next().unwrap_or_default());
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if scheme.to_lowercase() != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(FieldError::invalid(path, scheme.to_lowercase(), detail));
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
    // Upstream swaps the two arguments and reports the other field.
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
    let mut errors = ErrorList::new();
    let mut wrong = |detail: String| errors.push(FieldError::invalid(path, value, detail));
    match value {
        "" | "/" => return errors,
        "//" => {
            wrong("segment[0] may not be empty".to_owned());
            return errors;
        }
        _ => {}
    }
    if !value.starts_with('/') {
        wrong("must start with a '/'".to_owned());
    }
    let mut rest = value.chars();
    rest.next();
    let rest = rest.as_str();
    for (i, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            wrong(format!("segment[{i}] may not be empty"));
            continue;
        }
        for message in names::dns1123_subdomain(step) {
            wrong(format!("segment[{i}]: {message}"));
        }
    }
    errors
}
