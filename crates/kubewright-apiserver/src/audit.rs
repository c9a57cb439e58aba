//! Audit: a callback for every authenticated request, see [`Options::audit`](crate::Options::audit).
//!
//! An [`Audit`] gets each request with the status of its response. It cannot change either.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::request::Parts;
use http::{Response, header};
use kubewright_apimachinery::status::ApiError;
use kubewright_apimachinery::time;
use serde_json::{Value, json};

use crate::authn::User;
use crate::authz::authorize::selected_name;
use crate::encoding::body::Body;
use crate::request::{OverSocket, Request, Target};

/// A request and the status of its response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Audited {
    /// The effective user, after impersonation.
    pub user: String,
    /// Verb, as RBAC names it.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, with a subresource as `pods/log`; empty for a non-resource path.
    pub resource: String,
    /// Namespace; empty for none.
    pub namespace: String,
    /// Name; empty for none.
    pub name: String,
    /// Whether the request is a server-side apply.
    pub applies: bool,
    /// Status of the response.
    pub code: u16,
    /// Annotations of authorization and admission, for example those of webhooks and policies.
    pub annotations: BTreeMap<String, String>,
    /// The `Event` of `audit.k8s.io/v1`, of level `Metadata`.
    pub event: Value,
}

/// Receives the audited requests of a server.
pub trait Audit: Send + Sync + 'static {
    /// Called after the response to a request, and when a watch starts. Must not block.
    fn record(&self, request: Audited);
}

/// The annotations of an audit event, added while the request is handled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Annotations(Arc<Mutex<BTreeMap<String, String>>>);

impl Annotations {
    /// Adds an annotation. The first value of a key is kept, as upstream does.
    pub(crate) fn insert(&self, key: String, value: String) {
        self.lock().entry(key).or_insert(value);
    }

    /// Adds the decision of the authorizer.
    pub(crate) fn decided(&self, refusal: Option<&ApiError>) {
        let decision = if refusal.is_some() { "forbid" } else { "allow" };
        self.insert("authorization.k8s.io/decision".to_owned(), decision.to_owned());
        self.insert("authorization.k8s.io/reason".to_owned(), String::new());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Audited {
    pub(crate) fn new(
        request: &Request,
        parts: &Parts,
        sender: &User,
        audit_id: &str,
        answer: Result<&Response<Body>, &ApiError>,
        (received, now): (i64, i64),
    ) -> Self {
        let content_type = request.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let code = answer.map_or_else(|error| error.code, |response| response.status().as_u16());
        let mut audited = Self {
            user: request.user.name.clone(),
            verb: request.verb().to_owned(),
            group: String::new(),
            resource: String::new(),
            namespace: String::new(),
            name: String::new(),
            applies: content_type.is_some_and(|it| it.contains("apply-patch")),
            code,
            annotations: request.audit_annotations.lock().clone(),
            event: Value::Null,
        };
        if let Target::Resource(path) = &request.target {
            audited.group.clone_from(&path.group);
            audited.resource.clone_from(&path.resource);
            if !path.subresource.is_empty() {
                audited.resource = format!("{}/{}", path.resource, path.subresource);
            }
            audited.namespace.clone_from(&path.namespace);
            // As for authorization, a list of one object has its name.
            audited.name = selected_name(request).unwrap_or_else(|| path.name.clone());
        }
        let mut event = json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": audit_id,
            "stage": if request.is_long_running() { "ResponseStarted" } else { "ResponseComplete" },
            "requestURI": parts.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str),
            "verb": audited.verb,
            "user": shown(sender),
            "responseStatus": status(code, answer.err()),
            "requestReceivedTimestamp": time::format_rfc3339_micro(received),
            "stageTimestamp": time::format_rfc3339_micro(now),
        });
        if *sender != request.user {
            event["impersonatedUser"] = shown(&request.user);
        }
        if let Some(peer) = parts.extensions.get::<OverSocket>().and_then(|socket| socket.peer) {
            event["sourceIPs"] = json!([peer.to_string()]);
        }
        let agent = request.header(header::USER_AGENT);
        if !agent.is_empty() {
            event["userAgent"] = agent.into();
        }
        if let Target::Resource(path) = &request.target {
            let fields = [
                ("resource", &path.resource),
                ("namespace", &path.namespace),
                ("name", &audited.name),
                ("apiGroup", &path.group),
                ("apiVersion", &path.version),
                ("subresource", &path.subresource),
            ];
            event["objectRef"] = without_empty(fields.map(|(name, value)| (name, value.as_str().into())));
        }
        if !audited.annotations.is_empty() {
            event["annotations"] = json!(audited.annotations);
        }
        audited.event = event;
        audited
    }
}

fn shown(user: &User) -> Value {
    without_empty([
        ("username", user.name.as_str().into()),
        ("uid", user.uid.as_str().into()),
        ("groups", json!(user.groups)),
        ("extra", json!(user.extra)),
    ])
}

fn status(code: u16, error: Option<&ApiError>) -> Value {
    let mut status = json!({"metadata": {}, "code": code});
    if let Some(error) = error {
        let full = error.to_value();
        for field in ["status", "message", "reason", "details"] {
            if let Some(value) = full.get(field).filter(|value| !value.is_null()) {
                status[field] = value.clone();
            }
        }
    }
    status
}

fn without_empty<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let is_empty = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    let kept = fields.into_iter().filter(|(_, value)| !is_empty(value));
    Value::Object(kept.map(|(name, value)| (name.to_owned(), value)).collect())
}
