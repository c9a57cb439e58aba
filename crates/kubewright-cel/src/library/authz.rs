//! Authorizer library: `authorizer.group('apps').resource('deployments').check('create').allowed()`.
//!
//! The values only collect the attributes of a check. The decision comes from an [`Authorizer`], which the
//! caller binds to the variable `authorizer`.

use std::fmt::Debug;
use std::sync::Arc;

use super::Function;
use crate::error::EvalError;
use crate::value::{Evaluated, Value};
use kubewright_apimachinery::names;

/// Makes authorization decisions for expressions.
pub trait Authorizer: Debug + Send + Sync {
    /// Decides whether the user of the request, or the given service account (namespace and name), is allowed
    /// to perform `check`.
    fn decide(
        &self,
        service_account: Option<(&str, &str)>,
        check: &AuthorizationCheck,
    ) -> AuthorizationDecision;

    /// The resource of the request: `authorizer.requestResource`.
    fn request_resource(&self) -> ResourceCheck;
}

/// The attributes of an authorization check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorizationCheck {
    /// A non-resource request.
    Path {
        /// The path.
        path: String,
        /// The HTTP verb.
        verb: String,
    },
    /// A resource request.
    Resource {
        /// The resource.
        resource: ResourceCheck,
        /// The API verb.
        verb: String,
    },
}

/// The resource of an authorization check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceCheck {
    /// API group; empty for the core group.
    pub group: String,
    /// Plural resource name.
    pub resource: String,
    /// Subresource, or empty.
    pub subresource: String,
    /// Namespace, or empty.
    pub namespace: String,
    /// Name, or empty.
    pub name: String,
}

/// The decision of an [`Authorizer`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorizationDecision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The authorizer's reason.
    pub reason: String,
    /// The error, if the authorizer failed.
    pub error: Option<String>,
}

/// The `authorizer` variable, or a check under construction.
#[derive(Debug, Clone)]
pub struct Authorization<'a> {
    authorizer: &'a dyn Authorizer,
    service_account: Option<Arc<(String, String)>>,
    step: Step,
}

#[derive(Debug, Clone)]
enum Step {
    Authorizer,
    Path(Arc<str>),
    Group(Arc<str>),
    Resource(Arc<ResourceCheck>),
    Decision(Arc<AuthorizationDecision>),
}

impl<'a> Authorization<'a> {
    /// The value of the variable `authorizer`.
    pub fn new(authorizer: &'a dyn Authorizer) -> Self {
        Self { authorizer, service_account: None, step: Step::Authorizer }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self.step {
            Step::Authorizer => "kubernetes.authorization.Authorizer",
            Step::Path(_) => "kubernetes.authorization.PathCheck",
            Step::Group(_) => "kubernetes.authorization.GroupCheck",
            Step::Resource(_) => "kubernetes.authorization.ResourceCheck",
            Step::Decision(_) => "kubernetes.authorization.Decision",
        }
    }

    /// Returns `authorizer.requestResource`, the only field.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        let is_request_resource = name == "requestResource" && matches!(self.step, Step::Authorizer);
        is_request_resource.then(|| self.with(Step::Resource(Arc::new(self.authorizer.request_resource()))))
    }

    fn with(&self, step: Step) -> Self {
        Self { authorizer: self.authorizer, service_account: self.service_account.clone(), step }
    }

    fn decide(&self, check: &AuthorizationCheck) -> Self {
        let account = self.service_account.as_deref();
        let account = account.map(|(namespace, name)| (namespace.as_str(), name.as_str()));
        self.with(Step::Decision(Arc::new(self.authorizer.decide(account, check))))
    }
}

pub(crate) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "path" => path,
        "group" => group,
        "serviceAccount" => service_account,
        "resource" => resource,
        "subresource" => |args| refine(args, |check, text| text.clone_into(&mut check.subresource)),
        "namespace" => |args| refine(args, |check, text| text.clone_into(&mut check.namespace)),
        "name" => |args| refine(args, |check, text| text.clone_into(&mut check.name)),
        // The authorizers of this server ignore selectors.
        "fieldSelector" | "labelSelector" => |args| refine(args, |_, _| {}),
        "check" => check,
        "allowed" => |args| decision(args, |decision| Value::Bool(decision.allowed)),
        "errored" => |args| decision(args, |decision| Value::Bool(decision.error.is_some())),
        "reason" => |args| decision(args, |decision| Value::string(decision.reason.clone())),
        "error" => {
            |args| decision(args, |decision| Value::string(decision.error.clone().unwrap_or_default()))
        }
        _ => return None,
    })
}

fn path<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let [Value::Authorization(target), Value::String(path)] = args else { return None };
    if !matches!(target.step, Step::Authorizer) {
        return None;
    }
    if path.trim().is_empty() {
        return Some(Err(EvalError::new("path must not be empty")));
    }
    Some(Ok(Value::Authorization(target.with(Step::Path(Arc::from(&**path))))))
}

fn group<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let [Value::Authorization(target), Value::String(group)] = args else { return None };
    if !matches!(target.step, Step::Authorizer) {
        return None;
    }
    Some(Ok(Value::Authorization(target.with(Step::Group(Arc::from(&**group))))))
}

fn service_account<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let [Value::Authorization(target), Value::String(namespace), Value::String(name)] = args else {
        return None;
    };
    if !matches!(target.step, Step::Authorizer) {
        return None;
    }
    if !names::dns1123_subdomain(name).is_empty() {
        return Some(Err(EvalError::new("Invalid service account name")));
    }
    if !names::dns1123_label(namespace).is_empty() {
        return Some(Err(EvalError::new("Invalid service account namespace")));
    }
    let account = (namespace.clone().into_owned(), name.clone().into_owned());
    Some(Ok(Value::Authorization(Authorization {
        service_account: Some(Arc::new(account)),
        ..target.clone()
    })))
}

fn resource<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let [Value::Authorization(target), Value::String(resource)] = args else { return None };
    let Step::Group(group) = &target.step else { return None };
    if resource.trim().is_empty() {
        return Some(Err(EvalError::new("resource must not be empty")));
    }
    let (group, resource) = (group.to_string(), resource.clone().into_owned());
    let check = ResourceCheck { group, resource, ..ResourceCheck::default() };
    Some(Ok(Value::Authorization(target.with(Step::Resource(Arc::new(check))))))
}

fn refine<'a>(args: &[Value<'a>], set: fn(&mut ResourceCheck, &str)) -> Option<Evaluated<'a>> {
    let [Value::Authorization(target), Value::String(text)] = args else { return None };
    let Step::Resource(check) = &target.step else { return None };
    let mut check = ResourceCheck::clone(check);
    set(&mut check, text);
    Some(Ok(Value::Authorization(target.with(Step::Resource(Arc::new(check))))))
}

fn check<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let [Value::Authorization(target), Value::String(verb)] = args else { return None };
    let verb = verb.clone().into_owned();
    let check = match &target.step {
        Step::Path(path) => AuthorizationCheck::Path { path: path.to_string(), verb },
        Step::Resource(check) => AuthorizationCheck::Resource { resource: ResourceCheck::clone(check), verb },
        _ => return None,
    };
    Some(Ok(Value::Authorization(target.decide(&check))))
}

fn decision<'a>(
    args: &[Value<'a>],
    read: fn(&AuthorizationDecision) -> Value<'static>,
) -> Option<Evaluated<'a>> {
    let [Value::Authorization(Authorization { step: Step::Decision(decision), .. })] = args else {
        return None;
    };
    Some(Ok(read(decision)))
}
