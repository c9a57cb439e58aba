//! `serviceaccounts/token`: issues a token for a service account, optionally bound to a Pod, Secret or Node.
//!
//! The checks have kube-apiserver's order, because a request can fail several of them.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path, quote};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apimachinery::types::TypeRef;
use kubewright_apimachinery::{time, types};
use kubewright_structured_merge::{self as apply, OneVersion, Owners, Reset, Schema, Write};
use serde_json::{Value, json};

use super::Subresources;
use crate::admission::{Notes, Operation};
use crate::authn::tokens::{Claims, Reference};
use crate::encoding::body::Body;
use crate::encoding::negotiate::negotiate_without_tables;
use crate::encoding::request_body;
use crate::encoding::response;
use crate::fieldmanager::FieldManager;
use crate::registry::resource::Resource;
use crate::registry::strategy::BuiltIn;
use crate::registry::write::{WriteRequest, Written, check_namespace};
use crate::request::Request;
use crate::request::options::{WriteKind, WriteOptions};
use crate::server::no_resource;
use crate::storage::StoredObject;

const TOKEN_REQUEST: Gvk<'static> =
    Gvk { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" };

const DEFAULT_SECONDS: i64 = 3600;
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;
/// The lifetime that the ServiceAccount admission plugin requests for the tokens in Pods. Such a token is
/// valid for a year; use after the requested lifetime is only reported.
const INJECTED_SECONDS: i64 = 3607;
const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;

/// The objects that a token is bound to.
#[derive(Default)]
struct Bound {
    pod: Option<Reference>,
    secret: Option<Reference>,
    node: Option<Reference>,
}

impl Subresources {
    pub(super) async fn token(
        &self,
        request: &Request,
        resource: &Resource,
        namespace: &str,
        name: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let format = negotiate_without_tables(request, resource, "")?;
        let options = WriteOptions::read(&request.query, WriteKind::Create)?;
        let ty = types::find("authentication.v1.TokenRequest")
            .ok_or_else(|| ApiError::internal("no TokenRequest"))?;
        let decoded = request_body::decode_as(TOKEN_REQUEST, ty.get(), request_body::media(request)?, body)?;
        let warnings = request_body::strict(&decoded.strict, options.field_validation)?;
        let mut asked = decoded.value;
        asked.default_at("spec.expirationSeconds", DEFAULT_SECONDS);
        check_namespace(resource, namespace, &mut asked)?;
        let manager = FieldManager::of(request);
        self.track_token_request(ty, &manager, &mut asked);
        let write = WriteRequest {
            resource,
            namespace,
            name,
            subresource: "token",
            user: &request.user,
            manager: &manager,
            options: &options,
        };
        let mut notes = Notes { warnings, ..Notes::of(request) };
        match self.grant(&write, ty, asked, &mut notes).await {
            Ok(granted) => {
                let written = Written::shown(granted);
                Ok(self.writes.written(resource, format, &written, StatusCode::CREATED, &notes.warnings))
            }
            Err(error) => {
                let mut response = response::failure(&error);
                response::warn(&mut response, &notes.warnings);
                Ok(response)
            }
        }
    }

    fn track_token_request(&self, ty: TypeRef, manager: &FieldManager, asked: &mut Value) {
        let api_version = TOKEN_REQUEST.api_version();
        let write = Write {
            manager: manager.name(),
            api_version: &api_version,
            kind: TOKEN_REQUEST.kind,
            subresource: "token",
            time: &time::format_rfc3339(self.writes.clock().now()),
            versions: &OneVersion { api_version: &api_version, schema: Schema::built_in(ty.get()) },
            reset: &Reset::default(),
            owners: Owners::Packed,
        };
        apply::update(None, asked, &write);
    }

    /// Admits and validates a TokenRequest, and returns it with a token.
    async fn grant(
        &self,
        write: &WriteRequest<'_>,
        ty: TypeRef,
        asked: Value,
        notes: &mut Notes,
    ) -> Result<Value, ApiError> {
        let WriteRequest { resource, namespace, name, .. } = *write;
        let strategy = BuiltIn::of_subresource(TOKEN_REQUEST, ty);
        let mut attributes = write.attributes(Operation::Create, name, asked, None);
        (attributes.kind, attributes.strategy) = (TOKEN_REQUEST, &strategy);
        self.writes.admission.admit(&mut attributes, notes).await?;

        let asked = &mut attributes.object;
        for (field, kind, expected) in [("name", "name", name), ("namespace", "namespace", namespace)] {
            let given = asked.at("metadata").str_at(field);
            if !given.is_empty() && given != expected {
                let at = Path::new("metadata").child(field);
                let why = format!("must match the service account {kind} if specified");
                let errors = vec![FieldError::invalid(&at, given, why)];
                return Err(ApiError::invalid(TOKEN_REQUEST.qualified_kind(), name, &errors));
            }
        }
        let account = Reference::to(&*self.reads.find(resource, namespace, name)?);
        let uid = asked.str_at("metadata.uid");
        if !uid.is_empty() && uid != account.uid {
            let why = format!(
                "the UID in the token request ({uid}) does not match the UID of the service account ({})",
                account.uid
            );
            return Err(ApiError::conflict(TOKEN_REQUEST.qualified_kind(), name, &why));
        }
        if asked.list_at("spec.audiences").is_empty() {
            asked.set_at("spec.audiences", self.authn.tokens.default_audiences());
        }
        let now = self.writes.clock().now();
        asked.set_at("metadata.name", name);
        asked.set_at("metadata.namespace", namespace);
        asked.set_at("metadata.uid", account.uid.as_str());
        asked.set_at("metadata.creationTimestamp", time::format_rfc3339(now));
        asked.set_at("status", json!({"token": "", "expirationTimestamp": null}));
        let errors = validate(asked);
        if !errors.is_empty() {
            return Err(ApiError::invalid(TOKEN_REQUEST.qualified_kind(), "", &errors));
        }
        self.writes.admission.validate(&attributes, notes).await?;

        let mut granted = attributes.object;
        let bound = match granted.at("spec.boundObjectRef") {
            Value::Null => Bound::default(),
            reference => self.bound(namespace, name, reference)?,
        };
        let seconds = granted.int_at("spec.expirationSeconds").unwrap_or(DEFAULT_SECONDS);
        let api_audiences = self.authn.tokens.api_audiences();
        let audiences = granted.list_at("spec.audiences");
        let for_server = audiences.iter().all(|audience| api_audiences.iter().any(|known| known == audience));
        let injected = bound.pod.is_some() && seconds == INJECTED_SECONDS && for_server;
        let claims = Claims {
            id: self.writes.objects.ids.uid(),
            namespace,
            account,
            pod: bound.pod,
            secret: bound.secret,
            node: bound.node,
            audiences,
            issued: now,
            expires: now + if injected { EXTENDED_SECONDS } else { seconds },
            warn_after: injected.then_some(now + seconds),
        };
        let token = self
            .authn
            .tokens
            .sign(&claims)
            .map_err(|error| ApiError::internal(format!("failed to generate token: {error}")))?;
        let expires = time::format_rfc3339(now + seconds);
        granted.set_at("status", json!({"token": token, "expirationTimestamp": expires}));
        Ok(granted)
    }

    /// The object that the token is bound to.
    fn bound(&self, namespace: &str, account: &str, reference: &Value) -> Result<Bound, ApiError> {
        let kind = reference.str_at("kind");
        let name = reference.str_at("name");
        let (group, version) = match reference.str_at("apiVersion").split('/').collect::<Vec<_>>()[..] {
            [version] => ("", version),
            [group, version] => (group, version),
            _ => ("", ""),
        };
        let mut bound = Bound::default();
        let uid = match (group, kind) {
            ("", "Pod") => {
                let version = self.bindable("pods", namespace, name)?;
                let pod = version.object();
                if pod.str_at("spec.serviceAccountName") != account {
                    return Err(ApiError::bad_request(format!(
                        "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                        quote(account)
                    )));
                }
                bound.node = match pod.str_at("spec.nodeName") {
                    "" => None,
                    node => Some(self.bindable("nodes", "", node).map_or_else(
                        |_| Reference { name: node.to_owned(), uid: String::new() },
                        |version| Reference::to(&version),
                    )),
                };
                bound.pod.insert(Reference::to(&version)).uid.clone()
            }
            ("", "Secret") => {
                let secret = self.bindable("secrets", namespace, name)?;
                bound.secret.insert(Reference::to(&secret)).uid.clone()
            }
            ("", "Node") => {
                let node = self.bindable("nodes", "", name)?;
                bound.node.insert(Reference::to(&node)).uid.clone()
            }
            _ => {
                return Err(ApiError::bad_request(format!(
                    "cannot bind token to object of type {group}/{version}, Kind={kind}"
                )));
            }
        };
        let given = reference.str_at("uid");
        if !given.is_empty() && given != uid {
            let why = format!(
                "the UID in the bound object reference ({given}) does not match the UID in record. The object might \
                 have been deleted and then recreated"
            );
            return Err(ApiError::conflict(Qualified { group, name: kind }, name, &why));
        }
        Ok(bound)
    }

    fn bindable(&self, plural: &str, namespace: &str, name: &str) -> Result<Arc<StoredObject>, ApiError> {
        check_path_segment(name)?;
        let registry = self.writes.objects.registry();
        let resource = registry.find("", "v1", plural).ok_or_else(no_resource)?;
        self.reads.find(resource, namespace, name)
    }
}

fn validate(asked: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let seconds = asked.int_at("spec.expirationSeconds").unwrap_or(DEFAULT_SECONDS);
    let at = Path::new("spec").child("expirationSeconds");
    if seconds < MIN_SECONDS {
        errors.push(FieldError::invalid(&at, seconds, "may not specify a duration less than 10 minutes"));
    }
    if seconds > MAX_SECONDS {
        errors.push(FieldError::invalid(&at, seconds, "may not specify a duration larger than 2^32 seconds"));
    }
    errors
}

/// Checks a name for use in a storage path. Errors are those of kube-apiserver's registry.
fn check_path_segment(name: &str) -> Result<(), ApiError> {
    if name.is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }
    let mut problems: Vec<String> = Vec::new();
    if name == "." || name == ".." {
        problems.push(format!("may not be '{name}'"));
    } else {
        let contained = ["/", "%"].into_iter().filter(|illegal| name.contains(illegal));
        problems.extend(contained.map(|illegal| format!("may not contain '{illegal}'")));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("Name parameter invalid: {}: {}", quote(name), problems.join(";"))))
}
