//! Subresources: `status` and its like, and the verbs in disguise (binding, eviction, token).

mod eviction;
mod logs;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apimachinery::{facts, time};
use serde_json::json;

use crate::auth::User;
use crate::body::Body;
use crate::input;
use crate::options::{WriteKind, WriteOptions};
use crate::output;
use crate::request::{Request, ResourcePath};
use crate::resources::Served;
use crate::server::{Inner, no_page, no_resource};
use crate::write::{Update, Written};

const TOKEN_REQUEST: Gvk<'static> =
    Gvk { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" };
const BINDING: Gvk<'static> = Gvk { group: "", version: "v1", kind: "Binding" };

impl Inner {
    pub(crate) fn subresource(
        self: &Arc<Self>,
        request: &Request,
        served: &Arc<Served>,
        path: &ResourcePath,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let Some(sub) = served.subresource(&path.subresource) else {
            return Err(match served.custom() {
                Some(_) => ApiError::not_found(served.qualified(), &path.name),
                None => no_resource(),
            });
        };
        if !sub.verbs.contains(&request.verb()) {
            return Err(match served.custom() {
                Some(_) => ApiError::method_not_supported(served.qualified(), request.verb()),
                None => ApiError::method_not_allowed(),
            });
        }
        let namespace = if served.namespaced() { path.namespace.as_str() } else { "" };
        let name = path.name.as_str();
        match (&*sub.name, &request.method) {
            ("scale", &Method::GET) => self.get_scale(request, served, namespace, name),
            ("scale", _) => self.write_scale(request, served, namespace, name, body),
            ("binding", _) => self.bind(request, namespace, Some(name), body),
            ("eviction", _) => self.evict(request, served, namespace, name, body),
            ("token", _) => self.token(request, served, namespace, name, body),
            ("log", _) => self.logs(request, served, namespace, name),
            ("exec" | "attach" | "portforward" | "proxy", _) => {
                self.find(served, namespace, name)?;
                Ok(no_page())
            }
            (_, &Method::GET | &Method::HEAD) => self.get(request, served, namespace, name),
            (_, &Method::PUT) => self.update(request, served, namespace, name, &sub.name, body),
            (_, &Method::PATCH) => self.patch(request, served, namespace, name, &sub.name, body),
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    /// Puts a pod on a node.
    pub(crate) fn bind(
        &self,
        request: &Request,
        namespace: &str,
        name: Option<&str>,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let options = WriteOptions::read(&request.query, WriteKind::Create)?;
        let ty = facts::type_named("core.v1.Binding").ok_or_else(|| ApiError::internal("no Binding"))?;
        let decoded = input::decode_as(BINDING, ty, input::media(request)?, body)?;
        let binding = decoded.value;
        let name = name.unwrap_or(binding.str_at("metadata.name")).to_owned();
        if !binding.str_at("metadata.name").is_empty() && binding.str_at("metadata.name") != name {
            return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
        }
        let mut errors = ErrorList::new();
        let target = Path::new("target");
        let kind = binding.str_at("target.kind");
        if !kind.is_empty() && kind != "Node" {
            errors.push(FieldError::not_supported(&target.child("kind"), kind, &["Node", "<empty>"]));
        }
        if binding.str_at("target.name").is_empty() {
            errors.push(FieldError::required(&target.child("name"), ""));
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid(BINDING.qualified_kind(), &name, &errors));
        }
        let registry = self.registry();
        let pods = registry.find("", "v1", "pods").ok_or_else(no_resource)?;
        let node = binding.str_at("target.name").to_owned();
        let now = time::format_rfc3339(self.clock.now());
        let update = Update {
            served: pods,
            namespace,
            name: &name,
            subresource: "binding",
            dry_run: options.dry_run,
            create: false,
            replaces: false,
            // As upstream: nobody is noted as the owner of what a binding sets.
            author: None,
        };
        self.update_object(&update, &mut Vec::new(), |old| {
            let refuse = |why: String| {
                Err(ApiError::conflict(Qualified { group: "", name: "pods/binding" }, &name, &why))
            };
            if old.has("metadata.deletionTimestamp") {
                return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
            }
            let assigned = old.str_at("spec.nodeName");
            if !assigned.is_empty() {
                return refuse(format!("pod {name} is already assigned to node {assigned:?}"));
            }
            let mut pod = old.clone();
            pod.set_at("spec.nodeName", node.as_str());
            let annotations = binding.map_at("metadata.annotations").clone();
            if !annotations.is_empty() {
                pod.object_mut("metadata.annotations").extend(annotations);
            }
            let condition = json!({
                "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
            });
            let mut conditions = pod.list_at("status.conditions").to_vec();
            match conditions.iter_mut().find(|condition| condition.str_at("type") == "PodScheduled") {
                Some(existing) => *existing = condition,
                None => conditions.push(condition),
            }
            pod.set_at("status.conditions", conditions);
            Ok(pod)
        })?;
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        Ok(output::respond_json(StatusCode::CREATED, &status))
    }

    /// A token for a service account.
    fn token(
        &self,
        request: &Request,
        served: &Served,
        namespace: &str,
        name: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let options = WriteOptions::read(&request.query, WriteKind::Create)?;
        let ty = facts::type_named("authentication.v1.TokenRequest")
            .ok_or_else(|| ApiError::internal("no TokenRequest"))?;
        let mut asked = input::decode_as(TOKEN_REQUEST, ty, input::media(request)?, body)?.value;
        let account = self.find(served, namespace, name)?;
        let seconds = asked.int_at("spec.expirationSeconds").unwrap_or(3600);
        if seconds < 600 {
            let at = Path::new("spec").child("expirationSeconds");
            let errors =
                vec![FieldError::invalid(&at, seconds, "may not specify a duration less than 10 minutes")];
            return Err(ApiError::invalid(TOKEN_REQUEST.qualified_kind(), "", &errors));
        }
        let expires = self.clock.now() + seconds;
        let mut user = User::authenticated(
            format!("system:serviceaccount:{namespace}:{name}"),
            ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
        );
        user.uid = account.attributes.uid.to_string();
        let token = if options.dry_run { String::new() } else { self.tokens.issue(&self.ids, user, expires) };
        asked.default_at("spec.expirationSeconds", seconds);
        if asked.list_at("spec.audiences").is_empty() {
            asked.set_at("spec.audiences", json!(["https://kubernetes.default.svc"]));
        }
        asked.set_at("metadata.name", name);
        asked.set_at("metadata.namespace", namespace);
        asked.set_at("metadata.creationTimestamp", time::format_rfc3339(self.clock.now()));
        asked.set_at("status", json!({"token": token, "expirationTimestamp": time::format_rfc3339(expires)}));
        let format = output::negotiate(request)?;
        Ok(self.written(served, format, &Written::Shown(asked), StatusCode::CREATED, &[]))
    }
}
