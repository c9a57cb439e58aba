//! Subresources: `status` and similar views, and actions (binding, eviction, token, exec).

mod connect;
mod eviction;
mod logs;
pub(crate) mod scale;
mod token;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apimachinery::{time, types};
use serde_json::{Value, json};

use crate::admission::{Notes, Operation};
use crate::authn::Authn;
use crate::encoding::body::Body;
use crate::encoding::negotiate::negotiate_without_tables;
use crate::encoding::request_body;
use crate::encoding::response;
use crate::endpoints::patch::patch;
use crate::endpoints::read::ReadPath;
use crate::fieldmanager::FieldManager;
use crate::registry::resource::{Resource, SubresourceHandler};
use crate::registry::strategy::{BuiltIn, Strategy as _};
use crate::registry::write::change::{Candidate, Change, precondition_failed};
use crate::registry::write::{WritePath, WriteRequest};
use crate::request::options::{WriteKind, WriteOptions};
use crate::request::{Request, ResourcePath};
use crate::server::no_resource;

const BINDING: Gvk<'static> = Gvk { group: "", version: "v1", kind: "Binding" };

/// Answers requests for subresources.
pub(crate) struct Subresources {
    pub(crate) reads: Arc<ReadPath>,
    pub(crate) writes: Arc<WritePath>,
    /// Signs service account tokens.
    pub(crate) authn: Arc<Authn>,
}

impl Subresources {
    pub(crate) async fn answer(
        &self,
        request: &Request,
        resource: &Arc<Resource>,
        path: &ResourcePath,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let Some(sub) = resource.subresource(&path.subresource) else {
            return Err(if resource.is_routed() {
                no_resource()
            } else {
                ApiError::not_found(resource.qualified(), &path.name)
            });
        };
        if !sub.verbs.contains(&request.verb()) {
            return Err(if resource.is_routed() {
                ApiError::method_not_allowed()
            } else {
                ApiError::method_not_supported(resource.qualified(), request.verb())
            });
        }
        let namespace = if resource.namespaced() { path.namespace.as_str() } else { "" };
        let name = path.name.as_str();
        match (sub.handler, &request.method) {
            (SubresourceHandler::Scale, &Method::GET) => {
                self.get_scale(request, resource, namespace, name).await
            }
            (SubresourceHandler::Scale, _) => {
                self.write_scale(request, resource, namespace, name, body).await
            }
            (SubresourceHandler::Binding, _) => self.writes.bind(request, namespace, Some(name), body).await,
            (SubresourceHandler::Eviction, _) => self.evict(request, resource, namespace, name, body).await,
            (SubresourceHandler::Token, _) => self.token(request, resource, namespace, name, body).await,
            (SubresourceHandler::Log, _) => self.logs(request, resource, namespace, name),
            (SubresourceHandler::Connect, _) => {
                self.connect(request, resource, namespace, name, &sub.name, &sub.kind).await
            }
            (SubresourceHandler::Object, &Method::GET | &Method::HEAD) => {
                self.reads.get(request, resource, namespace, name).await
            }
            (SubresourceHandler::Object, &Method::PUT) => {
                self.writes.update(request, resource, namespace, name, &sub.name, body).await
            }
            (SubresourceHandler::Object, &Method::PATCH) => {
                patch(&self.writes, request, resource, namespace, name, &sub.name, body).await
            }
            (SubresourceHandler::Object, _) => Err(ApiError::method_not_allowed()),
        }
    }
}

impl WritePath {
    /// Creates a subresource object that is not stored: a Binding or Eviction. Returns the object after
    /// admission.
    pub(crate) async fn admit_subresource(
        &self,
        write: &WriteRequest<'_>,
        strategy: &BuiltIn,
        object: Value,
        notes: &mut Notes,
    ) -> Result<Value, ApiError> {
        let mut attributes = write.attributes(Operation::Create, write.name, object, None);
        (attributes.kind, attributes.strategy) = (strategy.gvk(), strategy);
        self.admission.admit_and_validate(&mut attributes, notes).await?;
        Ok(attributes.object)
    }

    /// Binds a pod to a node.
    pub(crate) async fn bind(
        &self,
        request: &Request,
        namespace: &str,
        name: Option<&str>,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let registry = self.objects.registry();
        let pods = registry.find("", "v1", "pods").ok_or_else(no_resource)?;
        let format = negotiate_without_tables(request, pods, "")?;
        let options = WriteOptions::read(&request.query, WriteKind::Create)?;
        let ty = types::find("core.v1.Binding").ok_or_else(|| ApiError::internal("no Binding"))?;
        let decoded = request_body::decode_as(BINDING, ty.get(), request_body::media(request)?, body)?;
        let binding = decoded.value;
        let name = name.unwrap_or(binding.str_at("metadata.name")).to_owned();
        if !binding.str_at("metadata.name").is_empty() && binding.str_at("metadata.name") != name {
            return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
        }
        let manager = FieldManager::of(request);
        let write = WriteRequest {
            resource: pods,
            namespace,
            name: &name,
            subresource: "binding",
            user: &request.user,
            manager: &manager,
            options: &options,
        };
        let mut notes = Notes::of(request);
        let binding = self
            .admit_subresource(&write, &BuiltIn::of_subresource(BINDING, ty), binding, &mut notes)
            .await?;
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
        let now = time::format_rfc3339(self.clock().now());
        let mut change = Change::Bind(Bind { binding: &binding, name: &name, now });
        self.update_object(&write, &mut change, &mut notes).await?;
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        let mut response = response::answer_value(StatusCode::CREATED, format.encoding, &status);
        response::warn(&mut response, &notes.warnings);
        Ok(response)
    }
}

/// The binding of a pod to a node.
pub(crate) struct Bind<'a> {
    binding: &'a Value,
    name: &'a str,
    /// The transition time of the PodScheduled condition.
    now: String,
}

impl Bind<'_> {
    /// The pod with its node. As upstream, no field manager owns the fields that a binding sets.
    pub(crate) fn resolve(
        &self,
        write: &WriteRequest<'_>,
        live: Option<&Value>,
    ) -> Result<Candidate, ApiError> {
        let Self { binding, name, now } = self;
        let refuse =
            |why: String| Err(ApiError::conflict(Qualified { group: "", name: "pods/binding" }, name, &why));
        let mut pod = live.cloned().unwrap_or_default();
        for (what, path) in [("UID", "metadata.uid"), ("ResourceVersion", "metadata.resourceVersion")] {
            let (given, current) = (binding.str_at(path), pod.str_at(path));
            if !given.is_empty() && given != current {
                return Err(precondition_failed(write, what, given, current));
            }
        }
        if pod.has("metadata.deletionTimestamp") {
            return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
        }
        let assigned = pod.str_at("spec.nodeName");
        if !assigned.is_empty() {
            return refuse(format!("pod {name} is already assigned to node {assigned:?}"));
        }
        if !pod.list_at("spec.schedulingGates").is_empty() {
            return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
        }
        pod.set_at("spec.nodeName", binding.str_at("target.name"));
        pod.remove_at("status.nominatedNodeName");
        let annotations = binding.map_at("metadata.annotations").clone();
        if !annotations.is_empty() {
            pod.object_mut("metadata.annotations").extend(annotations);
        }
        let labels = binding.map_at("metadata.labels").clone();
        if !labels.is_empty() {
            pod.object_mut("metadata.labels").extend(labels);
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
        Ok(Candidate::new(pod, Vec::new()))
    }
}
