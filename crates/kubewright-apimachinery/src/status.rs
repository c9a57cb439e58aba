//! API errors: a `Status` with code, reason, message and details.
//!
//! Owns the texts of request errors; [`crate::field`] owns those of fields.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::field::{ErrorList, aggregate, quote};

/// A failed request.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiError {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason; empty where upstream sets none.
    pub reason: Cow<'static, str>,
    /// Human-readable message.
    pub message: String,
    /// Details about the object.
    pub details: Option<Box<Details>>,
    /// `metadata.continue`: the token to continue an expired list; empty if there is none.
    pub continue_token: Box<str>,
}

/// Details of an API error.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Details {
    /// Name of the object.
    pub name: String,
    /// API group.
    pub group: String,
    /// The resource; for invalid objects the kind.
    pub kind: String,
    /// UID of the object.
    pub uid: String,
    /// The individual causes.
    pub causes: Vec<Cause>,
    /// Seconds to wait before retrying; 0 if not set.
    pub retry_after_seconds: u32,
}

/// One cause of an API error.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// Machine-readable reason.
    pub reason: String,
    /// Human-readable message.
    pub message: String,
    /// The field, or empty.
    pub field: String,
}

/// A resource or kind with its group, as used in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Qualified<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Plural resource name, or the kind.
    pub name: &'a str,
}

impl std::fmt::Display for Qualified<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

impl ApiError {
    /// Creates an error without details.
    pub fn new(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            details: None,
            continue_token: "".into(),
        }
    }

    fn about(mut self, what: Qualified<'_>, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        what.group.clone_into(&mut details.group);
        what.name.clone_into(&mut details.kind);
        name.clone_into(&mut details.name);
        self
    }

    /// Sets the causes.
    #[must_use]
    pub fn with_causes(mut self, causes: Vec<Cause>) -> Self {
        self.details.get_or_insert_default().causes = causes;
        self
    }

    /// Sets the retry delay.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// With the token that continues an expired list.
    #[must_use]
    pub fn with_continue(mut self, token: &str) -> Self {
        self.continue_token = token.into();
        self
    }

    /// The object does not exist.
    pub fn not_found(what: Qualified<'_>, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{what} {} not found", quote(name))).about(what, name)
    }

    /// The object already exists.
    pub fn already_exists(what: Qualified<'_>, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{what} {} already exists", quote(name))).about(what, name)
    }

    /// The object was modified, or a precondition failed.
    pub fn conflict(what: Qualified<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {what} {}: {why}", quote(name));
        Self::new(409, "Conflict", message).about(what, name)
    }

    /// The request is not allowed.
    pub fn forbidden(what: Qualified<'_>, name: &str, why: &str) -> Self {
        let message = match (what.name, name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{what} is forbidden: {why}"),
            _ => format!("{what} {} is forbidden: {why}", quote(name)),
        };
        Self::new(403, "Forbidden", message).about(what, name)
    }

    /// The object is invalid.
    pub fn invalid(kind: Qualified<'_>, name: &str, errors: &ErrorList) -> Self {
        let mut message = format!("{kind} {} is invalid", quote(name));
        if !errors.is_empty() {
            message = format!("{message}: {}", aggregate(errors));
        }
        let causes = errors
            .iter()
            .map(|e| Cause { reason: e.kind.reason().to_owned(), message: e.body(), field: e.field.clone() })
            .collect();
        Self::new(422, "Invalid", message).about(kind, name).with_causes(causes)
    }

    /// The request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// An internal server error.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let text = message.to_string();
        Self::new(500, "InternalError", format!("Internal error occurred: {text}")).with_causes(vec![Cause {
            reason: String::new(),
            message: text,
            field: String::new(),
        }])
    }

    /// The server timed out or is not ready.
    pub fn timeout(message: &str, retry_after_seconds: u32) -> Self {
        Self::new(504, "Timeout", format!("Timeout: {message}")).with_retry_after(retry_after_seconds)
    }

    /// The resourceVersion or continue token is too old.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// The path does not support the HTTP method.
    pub fn method_not_allowed() -> Self {
        let mut error = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        error.details = Some(Box::default());
        error
    }

    /// The resource does not support the verb.
    pub fn method_not_supported(what: Qualified<'_>, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {:?}", what.to_string());
        let mut error = Self::new(405, "MethodNotAllowed", message);
        let (group, kind) = (what.group.to_owned(), what.name.to_owned());
        error.details = Some(Box::new(Details { group, kind, ..Details::default() }));
        error
    }

    /// The `Status` object of the response.
    pub fn to_value(&self) -> Value {
        let mut status = Map::new();
        status.insert("kind".into(), "Status".into());
        status.insert("apiVersion".into(), "v1".into());
        let mut metadata = Map::new();
        insert(&mut metadata, "continue", &self.continue_token);
        status.insert("metadata".into(), Value::Object(metadata));
        status.insert("status".into(), "Failure".into());
        insert(&mut status, "message", &self.message);
        insert(&mut status, "reason", &self.reason);
        if let Some(details) = &self.details {
            status.insert("details".into(), details.to_value());
        }
        status.insert("code".into(), self.code.into());
        Value::Object(status)
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

impl Details {
    fn to_value(&self) -> Value {
        let mut details = Map::new();
        insert(&mut details, "name", &self.name);
        insert(&mut details, "group", &self.group);
        insert(&mut details, "kind", &self.kind);
        insert(&mut details, "uid", &self.uid);
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(|cause| {
                let mut object = Map::new();
                insert(&mut object, "reason", &cause.reason);
                insert(&mut object, "message", &cause.message);
                insert(&mut object, "field", &cause.field);
                Value::Object(object)
            });
            details.insert("causes".into(), causes.collect());
        }
        if self.retry_after_seconds > 0 {
            details.insert("retryAfterSeconds".into(), self.retry_after_seconds.into());
        }
        Value::Object(details)
    }
}

fn insert(map: &mut Map<String, Value>, key: &str, value: &str) {
    if !value.is_empty() {
        map.insert(key.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{FieldError, Path};
    use serde_json::json;

    const PODS: Qualified<'_> = Qualified { group: "", name: "pods" };

    #[test]
    fn not_found_contains_the_group() {
        let deployments = Qualified { group: "apps", name: "deployments" };
        let error = ApiError::not_found(deployments, "x");
        assert_eq!(error.message, "deployments.apps \"x\" not found");
        assert_eq!(error.to_value()["details"], json!({"name": "x", "group": "apps", "kind": "deployments"}));
    }

    #[test]
    fn invalid_lists_its_causes() {
        let errors = vec![FieldError::required(&Path::new("spec").child("containers"), "")];
        let value = ApiError::invalid(Qualified { group: "", name: "Pod" }, "p", &errors).to_value();
        assert_eq!(value["message"], "Pod \"p\" is invalid: spec.containers: Required value");
        assert_eq!(value["code"], 422);
        assert_eq!(
            value["details"]["causes"],
            json!([{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers"}])
        );
    }

    #[test]
    fn forbidden_without_a_name_has_upstreams_text() {
        assert_eq!(ApiError::forbidden(PODS, "", "no").message, "pods is forbidden: no");
        assert_eq!(ApiError::forbidden(PODS, "a", "no").message, "pods \"a\" is forbidden: no");
    }
}
