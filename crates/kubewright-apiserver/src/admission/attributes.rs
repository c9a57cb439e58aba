//! The request attributes that plugins see, and the warnings and audit annotations that they add.

use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_structured_merge::{ManagedFields, packed};
use serde_json::{Value, json};

use super::webhook::Reinvocation;
use crate::audit::Annotations;
use crate::authn::User;
use crate::registry::resource::Resource;
use crate::registry::strategy::Strategy;
use crate::request::Request;
use crate::request::options::{DeleteOptions, WriteOptions};

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    /// The name in an AdmissionReview.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The options of a request, as AdmissionReview shows them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OperationOptions<'a> {
    /// CreateOptions or UpdateOptions, by the operation.
    Write(&'a WriteOptions),
    /// DeleteOptions.
    Delete(&'a DeleteOptions),
    /// CONNECT has none.
    None,
}

impl OperationOptions<'_> {
    /// The options object for `operation`, with `apiVersion` and `kind`.
    pub(crate) fn to_value(self, operation: Operation) -> Value {
        match (self, operation) {
            (Self::None, _) => Value::Null,
            (Self::Delete(options), _) => options.to_value(),
            (Self::Write(options), Operation::Create) => options.to_value("CreateOptions"),
            (Self::Write(options), _) => options.to_value("UpdateOptions"),
        }
    }
}

/// A request as admission sees it: upstream's `admission.Attributes`.
pub(crate) struct Attributes<'a> {
    pub(crate) operation: Operation,
    /// The resource in the request path: `resource` of an AdmissionReview.
    pub(crate) resource: &'a Resource,
    /// The kind of `object`. For some subresources (`scale`, `binding`, `eviction`) it differs from the
    /// resource's kind.
    pub(crate) kind: Gvk<'a>,
    /// The rules of objects of `kind`.
    pub(crate) strategy: &'a dyn Strategy,
    /// `status`, `scale`, or empty.
    pub(crate) subresource: &'a str,
    /// The namespace; empty for cluster-scoped objects. For a Namespace, its own name.
    pub(crate) namespace: &'a str,
    /// The name in the path or the object; empty in the mutating phase if the name is not generated yet.
    pub(crate) name: &'a str,
    /// The new object in the version of `kind`; null on DELETE. Its managedFields are packed: see
    /// [`Attributes::unpacked`] and [`Attributes::replace`].
    pub(crate) object: Value,
    /// The object before an update or deletion, in the version of `kind`.
    pub(crate) old_object: Option<&'a Value>,
    pub(crate) options: OperationOptions<'a>,
    pub(crate) user: &'a User,
    pub(crate) dry_run: bool,
    /// The managedFields from before the first [`Attributes::replace`].
    pub(crate) managed_fields_before: Option<Value>,
}

impl Attributes<'_> {
    /// Whether the request is for this resource, without a subresource.
    pub(crate) fn is_for(&self, group: &str, plural: &str) -> bool {
        self.subresource.is_empty() && self.resource.plural() == plural && self.resource.group() == group
    }

    /// A 403 error: upstream's `admission.NewForbidden`.
    pub(crate) fn forbidden(&self, why: &str) -> ApiError {
        ApiError::forbidden(self.resource.qualified(), self.name_in_errors(), why)
    }

    /// The name for error messages: `generateName` if the name is not generated yet.
    fn name_in_errors(&self) -> &str {
        let candidates = [
            self.name,
            self.object.str_at("metadata.name"),
            self.object.str_at("metadata.generateName"),
            "Unknown",
        ];
        candidates.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
    }

    /// The resource for error messages.
    pub(crate) fn qualified(&self) -> Qualified<'_> {
        self.resource.qualified()
    }

    /// The object as clients see it, with unpacked managedFields.
    pub(crate) fn unpacked(&self) -> Value {
        let mut object = self.object.clone();
        packed::unpack(&mut object);
        object
    }

    /// The old object as clients see it.
    pub(crate) fn unpacked_old(&self) -> Value {
        let mut object = self.old_object.cloned().unwrap_or_default();
        packed::unpack(&mut object);
        object
    }

    /// Replaces the object with one from outside the server, for example a webhook's patched object. It is
    /// decoded and defaulted like a request body. The chain checks its managedFields afterwards.
    pub(crate) fn replace(&mut self, mut object: Value) -> Result<(), ApiError> {
        self.strategy.decode_value(&mut object).map_err(ApiError::internal)?;
        self.strategy.default(&mut object).map_err(ApiError::internal)?;
        let managed = self.object.at("metadata.managedFields").clone();
        self.managed_fields_before.get_or_insert(managed);
        self.object = object;
        Ok(())
    }

    /// Packs the managedFields of a replaced object. Invalid ones are reset to those before admission, with
    /// upstream's warning.
    pub(super) fn settle_managed_fields(&mut self) -> Option<String> {
        let before = self.managed_fields_before.take()?;
        match ManagedFields::decode(self.object.at("metadata.managedFields")) {
            Ok(managed) => {
                managed.store_packed(&mut self.object);
                None
            }
            Err(error) => {
                match before {
                    Value::Null => drop(self.object.remove_at("metadata.managedFields")),
                    before => self.object.set_at("metadata.managedFields", before),
                }
                Some(format!(
                    ".metadata.managedFields was in an invalid state after admission; this could be caused by an \
                     outdated mutating admission controller; please fix your requests: {error}"
                ))
            }
        }
    }
}

/// Results of plugins for the response and the audit log.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// `Warning` headers, in order.
    pub(crate) warnings: Vec<String>,
    /// Annotations of the audit event of the request.
    pub(crate) audit_annotations: Annotations,
    /// State of the reinvocation of the mutating phase.
    pub(crate) reinvocation: Reinvocation,
}

impl Notes {
    /// The results for a request.
    pub(crate) fn of(request: &Request) -> Self {
        Self { audit_annotations: request.audit_annotations.clone(), ..Self::default() }
    }

    pub(crate) fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }
}

/// The options of a CONNECT request, from its query: the object that admission sees.
pub(crate) fn connect_options(kind: &str, query: &crate::request::Query) -> Value {
    let mut options = json!({"kind": kind, "apiVersion": "v1"});
    for flag in ["stdin", "stdout", "stderr", "tty"] {
        if query.get(flag).is_some() {
            options[flag] = query.flag(flag).into();
        }
    }
    for text in ["container", "path"] {
        if let Some(value) = query.get(text) {
            options[text] = value.into();
        }
    }
    let command: Vec<&str> = query.all("command").collect();
    if !command.is_empty() {
        options["command"] = command.into();
    }
    let ports: Vec<i64> = query.all("ports").filter_map(|port| port.parse().ok()).collect();
    if !ports.is_empty() {
        options["ports"] = ports.into();
    }
    options
}
