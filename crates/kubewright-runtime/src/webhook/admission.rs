//! One admission request and its response, independent of the client library.
//!
//! Owns the JSON of `AdmissionReview` in `admission.k8s.io/v1` and `v1beta1`. Objects stay raw until a handler decodes
//! them. Whether a request is allowed is decided by the [`AdmissionHandler`].

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apimachinery::webhook::Declaration;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::Chain;

/// What the API server is about to do with the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object, or one of its subresources, is updated.
    Update,
    /// The object is deleted.
    Delete,
    /// A connection to the object is opened, such as `kubectl exec`.
    Connect,
}

impl Operation {
    /// The name in an AdmissionReview, such as `CREATE`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// Group, version and kind of the object in a request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, Default)]
#[serde(default)]
pub struct GroupVersionKind {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

/// Group, version and plural name of the resource in a request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, Default)]
#[serde(default)]
pub struct GroupVersionResource {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural name of the resource.
    pub resource: String,
}

/// The user who sent the request to the API server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, Default)]
#[serde(default)]
pub struct UserInfo {
    /// User name.
    pub username: String,
    /// Unique ID of the user.
    pub uid: String,
    /// Groups of the user.
    pub groups: Vec<String>,
    /// Attributes that the authenticator added.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// An admission request. Field names and meanings are those of `admission.k8s.io/v1`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AdmissionRequest {
    /// The UID of the request.
    pub uid: String,
    /// The kind that the webhook is registered for; differs from [`request_kind`](Self::request_kind) with
    /// `matchPolicy: Equivalent`.
    #[serde(default)]
    pub kind: GroupVersionKind,
    /// The resource that the webhook is registered for.
    #[serde(default)]
    pub resource: GroupVersionResource,
    /// Subresource, such as `status`; empty for the object itself.
    #[serde(default)]
    pub sub_resource: String,
    /// The kind of the original request.
    #[serde(default)]
    pub request_kind: Option<GroupVersionKind>,
    /// The resource of the original request.
    #[serde(default)]
    pub request_resource: Option<GroupVersionResource>,
    /// The subresource of the original request.
    #[serde(default)]
    pub request_sub_resource: String,
    /// Name of the object; empty for a create with `generateName`.
    #[serde(default)]
    pub name: String,
    /// Namespace of the object; empty for cluster-scoped objects.
    #[serde(default)]
    pub namespace: String,
    /// The operation.
    pub operation: Operation,
    /// The user who sent the request.
    #[serde(default)]
    pub user_info: UserInfo,
    /// The object after the operation; none on delete.
    #[serde(default)]
    pub object: Option<Box<RawValue>>,
    /// The object before the operation; on update and delete.
    #[serde(default)]
    pub old_object: Option<Box<RawValue>>,
    /// Whether this is a dry run. A handler with side effects must skip them.
    #[serde(default)]
    pub dry_run: bool,
    /// CreateOptions, UpdateOptions or DeleteOptions.
    #[serde(default)]
    pub options: Option<Box<RawValue>>,
}

impl AdmissionRequest {
    /// The object after the operation, decoded.
    pub fn object<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        decode(self.object.as_deref(), "object")
    }

    /// The object before the operation, decoded.
    pub fn old_object<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        decode(self.old_object.as_deref(), "oldObject")
    }

    /// The name that error messages use: the object's, or its `generateName`.
    pub(crate) fn shown_name(&self) -> String {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Named {
            metadata: Meta,
        }
        #[derive(Deserialize, Default)]
        #[serde(default, rename_all = "camelCase")]
        struct Meta {
            name: String,
            generate_name: String,
        }
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let raw = self.object.as_deref().or(self.old_object.as_deref());
        let named: Named = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        if named.metadata.name.is_empty() { named.metadata.generate_name } else { named.metadata.name }
    }
}

/// The request has no object, or one that the handler's type does not accept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The field is absent.
    #[error("admission request has no {0}")]
    Absent(&'static str),
    /// The object does not fit the type.
    #[error("failed to decode {field} of the admission request")]
    Decode {
        /// `object` or `oldObject`.
        field: &'static str,
        /// Where the object does not fit.
        #[source]
        source: serde_json::Error,
    },
}

fn decode<T: DeserializeOwned>(raw: Option<&RawValue>, field: &'static str) -> Result<T, DecodeError> {
    let raw = raw.ok_or(DecodeError::Absent(field))?;
    serde_json::from_str(raw.get()).map_err(|source| DecodeError::Decode { field, source })
}

/// Why a [`Defaulter`](super::Defaulter) or [`Validator`](super::Validator) rejects an object.
///
/// Every error converts into a denial with `?`: the client gets 403 with the error's text. Use
/// [`Rejection::invalid`] for field errors, which the client gets as 422 with one cause per field.
#[non_exhaustive]
pub enum Rejection {
    /// Field errors: 422 Invalid, one cause per field.
    Invalid(ErrorList),
    /// A Kubernetes Status, returned unchanged.
    Status(Box<ApiError>),
    /// 403 Forbidden with this message.
    Denied(String),
}

impl Rejection {
    /// Rejects the object because of these fields.
    pub fn invalid(errors: ErrorList) -> Self {
        Self::Invalid(errors)
    }

    /// Denies the request with this message.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::Denied(message.into())
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Rejection {
    fn from(error: E) -> Self {
        let error: Box<dyn std::error::Error + Send + Sync> = Box::new(error);
        match error.downcast::<ApiError>() {
            Ok(status) => Self::Status(status),
            Err(error) => Self::Denied(Chain(&*error).to_string()),
        }
    }
}

impl fmt::Debug for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(errors) => f.debug_tuple("Invalid").field(errors).finish(),
            Self::Status(status) => f.debug_tuple("Status").field(status).finish(),
            Self::Denied(message) => f.debug_tuple("Denied").field(message).finish(),
        }
    }
}

/// The response to an admission request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AdmissionResponse {
    allowed: bool,
    status: Option<Value>,
    patch: Vec<Value>,
    warnings: Vec<String>,
    audit_annotations: BTreeMap<String, String>,
}

impl AdmissionResponse {
    /// Allows the request.
    pub fn allowed() -> Self {
        Self { allowed: true, ..Self::default() }
    }

    /// Denies the request: 403 Forbidden with this message.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::failed(&ApiError::new(403, "Forbidden", message))
    }

    /// Denies the request because the webhook failed.
    pub fn errored(code: u16, message: impl Into<String>) -> Self {
        Self::failed(&ApiError::new(code, "", message))
    }

    /// Denies the request with a Kubernetes Status.
    pub fn failed(error: &ApiError) -> Self {
        let mut status = error.to_value();
        if let Some(status) = status.as_object_mut() {
            status.retain(|key, _| !matches!(key.as_str(), "kind" | "apiVersion"));
        }
        Self { status: Some(status), ..Self::default() }
    }

    /// Denies the request with the rejection of a handler.
    pub fn rejected(request: &AdmissionRequest, rejection: Rejection) -> Self {
        match rejection {
            Rejection::Invalid(errors) => {
                let kind = Qualified { group: &request.kind.group, name: &request.kind.kind };
                Self::failed(&ApiError::invalid(kind, &request.shown_name(), &errors))
            }
            Rejection::Status(status) => Self::failed(&status),
            Rejection::Denied(message) => Self::denied(message),
        }
    }

    /// Allows the request and changes the object with JSON patch operations (RFC 6902).
    pub fn patched(operations: Vec<Value>) -> Self {
        Self { patch: operations, ..Self::allowed() }
    }

    /// Adds a warning. kubectl prints it; keep it below 120 characters.
    #[must_use]
    pub fn warning(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Adds several warnings.
    #[must_use]
    pub fn warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// Adds an annotation to the audit event of the request. The API server prefixes the key with the webhook's name.
    #[must_use]
    pub fn audit_annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.audit_annotations.insert(key.into(), value.into());
        self
    }

    /// Whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// The message of the status, or an empty text.
    pub fn message(&self) -> &str {
        self.status.as_ref().and_then(|status| status["message"].as_str()).unwrap_or_default()
    }

    /// The status code of a denial.
    pub(crate) fn code(&self) -> Option<u16> {
        self.status.as_ref().and_then(|status| u16::try_from(status["code"].as_u64()?).ok())
    }

    pub(crate) fn warning_texts(&self) -> &[String] {
        &self.warnings
    }

    /// The JSON patch operations.
    pub fn patch(&self) -> &[Value] {
        &self.patch
    }
}

/// Handles admission requests without a type. Most webhooks are a [`Defaulter`](super::Defaulter) or a
/// [`Validator`](super::Validator) instead.
pub trait AdmissionHandler: Send + Sync + 'static {
    /// The webhook's declaration. `#[webhook]` generates this function. A handler without it can be served at a path
    /// with [`Webhooks::admission`](super::Webhooks::admission), but not registered with a manager.
    fn webhook() -> Option<Declaration>
    where
        Self: Sized,
    {
        None
    }

    /// Handles one request. A panic becomes a 500 response and does not stop the server.
    fn handle(&self, request: &AdmissionRequest) -> impl Future<Output = AdmissionResponse> + Send;
}

/// The supported versions of AdmissionReview.
const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/// A decoded AdmissionReview.
pub(super) struct Review {
    api_version: &'static str,
    pub(super) request: AdmissionRequest,
}

impl Review {
    pub(super) fn decode(body: &[u8]) -> Result<Self, ReviewError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            #[serde(default)]
            api_version: String,
            #[serde(default)]
            kind: String,
            request: Option<AdmissionRequest>,
        }
        let wire: Wire = serde_json::from_slice(body).map_err(ReviewError::Decode)?;
        let known = VERSIONS.into_iter().find(|version| *version == wire.api_version);
        match (known, wire.kind.as_str(), wire.request) {
            (Some(api_version), "AdmissionReview", Some(request)) => Ok(Self { api_version, request }),
            (Some(_), "AdmissionReview", None) => Err(ReviewError::NoRequest),
            _ => Err(ReviewError::Unexpected { api_version: wire.api_version, kind: wire.kind }),
        }
    }

    pub(super) fn encode(&self, response: &AdmissionResponse) -> Bytes {
        encode(self.api_version, &self.request.uid, response)
    }
}

/// The response to a body that is not an AdmissionReview. It is a review as well, so that the API server reports the
/// reason.
pub(super) fn encode_error(error: &ReviewError) -> Bytes {
    encode(VERSIONS[0], "", &AdmissionResponse::errored(400, Chain(error).to_string()))
}

fn encode(api_version: &str, uid: &str, response: &AdmissionResponse) -> Bytes {
    use base64::Engine as _;
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Wire<'a> {
        kind: &'static str,
        api_version: &'a str,
        response: Response<'a>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Response<'a> {
        uid: &'a str,
        allowed: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        patch: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        patch_type: Option<&'static str>,
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        warnings: &'a [String],
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        audit_annotations: &'a BTreeMap<String, String>,
    }
    let AdmissionResponse { allowed, status, patch, warnings, audit_annotations } = response;
    let json = |patch: &Vec<Value>| serde_json::to_vec(patch).expect("JSON values serialize to JSON");
    let patch = (!patch.is_empty()).then(|| base64::engine::general_purpose::STANDARD.encode(json(patch)));
    let response = Response {
        uid,
        allowed: *allowed,
        status: status.as_ref(),
        patch_type: patch.as_ref().map(|_| "JSONPatch"),
        patch,
        warnings,
        audit_annotations,
    };
    let review = Wire { kind: "AdmissionReview", api_version, response };
    serde_json::to_vec(&review).expect("a response serializes to JSON").into()
}

/// The body is not an AdmissionReview with a request.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReviewError {
    #[error("failed to decode the AdmissionReview")]
    Decode(#[source] serde_json::Error),
    #[error("expected an AdmissionReview of admission.k8s.io/v1 or v1beta1, got {kind:?} of {api_version:?}")]
    Unexpected { api_version: String, kind: String },
    #[error("the AdmissionReview has no request")]
    NoRequest,
    #[error("request body is empty")]
    Empty,
    #[error("contentType={0}, expected application/json")]
    ContentType(String),
}
