//! Webhooks for one kind: [`Defaulter`] and [`Validator`].
//!
//! Decodes objects, collects field errors and warnings, and computes patches. It does not know about HTTP.

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::webhook::Declaration;
use serde::Serialize;
use serde_json::Value;

use super::admission::{
    AdmissionHandler, AdmissionRequest, AdmissionResponse, DecodeError, Operation, Rejection,
};
use super::diff;
use crate::error::Chain;
use crate::kind::Object;

/// Sets default values before an object is validated and stored: a mutating webhook.
///
/// It is called on create and update, not on delete. It must be idempotent, because the API server may call it twice
/// for one request. For defaults that do not depend on other fields, prefer `default` in the schema: it needs no
/// webhook.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kubewright_runtime::webhook::{AdmissionRequest, Defaulter, Rejection};
///
/// struct OneReplica;
///
/// impl Defaulter for OneReplica {
///     type Object = Deployment;
///
///     async fn default(&self, deployment: &mut Deployment, _: &AdmissionRequest) -> Result<(), Rejection> {
///         deployment.spec.get_or_insert_default().replicas.get_or_insert(1);
///         Ok(())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a defaulting webhook",
    note = "implement `Defaulter` with `type Object = ...` and `async fn default(&self, object, request)`"
)]
pub trait Defaulter: Send + Sync + 'static {
    /// The kind that it sets defaults for.
    type Object: Object;

    /// The webhook's declaration. `#[webhook]` generates this function; omitted values follow from
    /// [`Defaulter::Object`].
    fn webhook() -> Declaration
    where
        Self: Sized,
    {
        Declaration::default()
    }

    /// Changes the object in place, or rejects it.
    fn default(
        &self,
        object: &mut Self::Object,
        request: &AdmissionRequest,
    ) -> impl Future<Output = Result<(), Rejection>> + Send;
}

/// Accepts or rejects objects: a validating webhook.
///
/// Field errors are collected in the [`Validation`], so that the user sees all of them at once. For rules that one field
/// or CEL can express, prefer the schema: it needs no webhook.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kubewright_runtime::webhook::{Rejection, Validation, Validator};
///
/// struct FewReplicas;
///
/// impl Validator for FewReplicas {
///     type Object = Deployment;
///
///     async fn validate_create(&self, new: &Deployment, v: &mut Validation<'_>) -> Result<(), Rejection> {
///         let replicas = new.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
///         if !(1..=5).contains(&replicas) {
///             v.invalid("spec.replicas", replicas, "must be between 1 and 5");
///         }
///         Ok(())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a validating webhook",
    note = "implement `Validator` with `type Object = ...` and `async fn validate_create(&self, new, validation)`"
)]
pub trait Validator: Send + Sync + 'static {
    /// The kind that it validates.
    type Object: Object;

    /// The webhook's declaration. `#[webhook]` generates this function; omitted values follow from
    /// [`Validator::Object`].
    fn webhook() -> Declaration
    where
        Self: Sized,
    {
        Declaration::default()
    }

    /// Validates a new object.
    fn validate_create(
        &self,
        new: &Self::Object,
        validation: &mut Validation<'_>,
    ) -> impl Future<Output = Result<(), Rejection>> + Send;

    /// Validates an update. Without an implementation, the rules of a new object apply.
    fn validate_update(
        &self,
        old: &Self::Object,
        new: &Self::Object,
        validation: &mut Validation<'_>,
    ) -> impl Future<Output = Result<(), Rejection>> + Send {
        let _ = old;
        self.validate_create(new, validation)
    }

    /// Validates a delete. Without an implementation, every delete is allowed. The webhook must be registered for
    /// deletes.
    fn validate_delete(
        &self,
        old: &Self::Object,
        validation: &mut Validation<'_>,
    ) -> impl Future<Output = Result<(), Rejection>> + Send {
        let _ = (old, validation);
        std::future::ready(Ok(()))
    }
}

/// Collects the field errors and warnings of one validation.
///
/// Fields are named as users write them: `spec.replicas`, `spec.items[0].name`. A [`Path`] works as well.
#[derive(Debug)]
pub struct Validation<'a> {
    request: &'a AdmissionRequest,
    errors: ErrorList,
    warnings: Vec<String>,
}

impl<'a> Validation<'a> {
    /// Collects for this request.
    pub fn new(request: &'a AdmissionRequest) -> Self {
        Self { request, errors: ErrorList::new(), warnings: Vec::new() }
    }

    /// The admission request: operation, user, subresource, dry run.
    pub fn request(&self) -> &'a AdmissionRequest {
        self.request
    }

    /// `field: Invalid value: 10: detail`.
    pub fn invalid(
        &mut self,
        field: impl Into<Path>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> &mut Self {
        self.error(FieldError::invalid(&field.into(), value, detail))
    }

    /// `field: Required value: detail`. The detail may be empty.
    pub fn required(&mut self, field: impl Into<Path>, detail: impl Into<String>) -> &mut Self {
        self.error(FieldError::required(&field.into(), detail))
    }

    /// `field: Forbidden: detail`, for example for a field that must not change.
    pub fn forbidden(&mut self, field: impl Into<Path>, detail: impl Into<String>) -> &mut Self {
        self.error(FieldError::forbidden(&field.into(), detail))
    }

    /// `field: Duplicate value: "a"`.
    pub fn duplicate(&mut self, field: impl Into<Path>, value: impl Into<Value>) -> &mut Self {
        self.error(FieldError::duplicate(&field.into(), value))
    }

    /// `field: Unsupported value: "c": supported values: "a", "b"`.
    pub fn not_supported(
        &mut self,
        field: impl Into<Path>,
        value: impl Into<Value>,
        supported: &[&str],
    ) -> &mut Self {
        self.error(FieldError::not_supported(&field.into(), value, supported))
    }

    /// Adds any field error.
    pub fn error(&mut self, error: FieldError) -> &mut Self {
        self.errors.push(error);
        self
    }

    /// Adds a warning, which kubectl prints. The object is not rejected.
    pub fn warn(&mut self, warning: impl Into<String>) -> &mut Self {
        self.warnings.push(warning.into());
        self
    }

    /// The field errors so far.
    pub fn errors(&self) -> &ErrorList {
        &self.errors
    }

    fn response(self, outcome: Result<(), Rejection>) -> AdmissionResponse {
        let Self { request, mut errors, warnings } = self;
        let response = match outcome {
            Ok(()) if errors.is_empty() => AdmissionResponse::allowed(),
            Ok(()) => AdmissionResponse::rejected(request, Rejection::Invalid(errors)),
            Err(Rejection::Invalid(more)) => {
                errors.extend(more);
                AdmissionResponse::rejected(request, Rejection::Invalid(errors))
            }
            Err(rejection) => AdmissionResponse::rejected(request, rejection),
        };
        response.warnings(warnings)
    }
}

/// A [`Defaulter`] as a handler.
pub(super) struct Defaulting<D>(pub(super) D);

impl<D: Defaulter> AdmissionHandler for Defaulting<D> {
    async fn handle(&self, request: &AdmissionRequest) -> AdmissionResponse {
        if request.operation == Operation::Delete {
            return AdmissionResponse::allowed();
        }
        let (raw, mut object) = match (request.object::<Value>(), request.object::<D::Object>()) {
            (Ok(raw), Ok(object)) => (raw, object),
            (Err(error), _) | (_, Err(error)) => return undecodable(&error),
        };
        let before = match serde_json::to_value(&object) {
            Ok(before) => before,
            Err(error) => return unencodable(&error),
        };
        if let Err(rejection) = self.0.default(&mut object, request).await {
            return AdmissionResponse::rejected(request, rejection);
        }
        match serde_json::to_value(&object) {
            Ok(after) => AdmissionResponse::patched(diff::patch(&raw, &before, &after)),
            Err(error) => unencodable(&error),
        }
    }
}

impl AdmissionResponse {
    /// Allows the request and changes its object with the JSON patch from `before` to `after`.
    ///
    /// Both have one type: the Rust type of the object, or `serde_json::Value`. Fields of the object that the type does
    /// not have are kept. The response is an error if the request has no object or a value cannot be encoded.
    ///
    /// ```
    /// use kubewright_runtime::webhook::{AdmissionHandler, AdmissionRequest, AdmissionResponse};
    /// use serde_json::Value;
    ///
    /// struct Labeller;
    ///
    /// impl AdmissionHandler for Labeller {
    ///     async fn handle(&self, request: &AdmissionRequest) -> AdmissionResponse {
    ///         let before: Value = match request.object() {
    ///             Ok(object) => object,
    ///             Err(error) => return AdmissionResponse::errored(400, error.to_string()),
    ///         };
    ///         let mut after = before.clone();
    ///         after["metadata"]["labels"]["team"] = "pages".into();
    ///         AdmissionResponse::patched_between(request, &before, &after)
    ///     }
    /// }
    /// ```
    pub fn patched_between<T: Serialize>(request: &AdmissionRequest, before: &T, after: &T) -> Self {
        let raw = match request.object::<Value>() {
            Ok(raw) => raw,
            Err(error) => return undecodable(&error),
        };
        match (serde_json::to_value(before), serde_json::to_value(after)) {
            (Ok(before), Ok(after)) => Self::patched(diff::patch(&raw, &before, &after)),
            (Err(error), _) | (_, Err(error)) => unencodable(&error),
        }
    }
}

/// A [`Validator`] as a handler.
pub(super) struct Validating<V>(pub(super) V);

impl<V: Validator> Validating<V> {
    async fn validate(
        &self,
        request: &AdmissionRequest,
        validation: &mut Validation<'_>,
    ) -> Result<Result<(), Rejection>, DecodeError> {
        Ok(match request.operation {
            Operation::Create => self.0.validate_create(&request.object()?, validation).await,
            Operation::Update => {
                let (old, new) = (request.old_object()?, request.object()?);
                self.0.validate_update(&old, &new, validation).await
            }
            Operation::Delete => self.0.validate_delete(&request.old_object()?, validation).await,
            Operation::Connect => Ok(()),
        })
    }
}

impl<V: Validator> AdmissionHandler for Validating<V> {
    async fn handle(&self, request: &AdmissionRequest) -> AdmissionResponse {
        let mut validation = Validation::new(request);
        match self.validate(request, &mut validation).await {
            Ok(outcome) => validation.response(outcome),
            Err(error) => undecodable(&error),
        }
    }
}

fn undecodable(error: &DecodeError) -> AdmissionResponse {
    AdmissionResponse::errored(400, Chain(error).to_string())
}

fn unencodable(error: &serde_json::Error) -> AdmissionResponse {
    AdmissionResponse::errored(500, format!("failed to encode the object: {error}"))
}
