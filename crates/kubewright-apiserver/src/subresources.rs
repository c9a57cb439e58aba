//! Subresources: `status` and its like, `scale`, and the verbs in disguise (binding, eviction, token).

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;
use kubewright_apimachinery::status::{ApiError, Cause, Qualified};
use kubewright_apimachinery::{facts, json, table, time};
use serde_json::{Value, json};

use crate::auth::User;
use crate::body::Body;
use crate::input;
use crate::options::{DeleteOptions, WriteKind, WriteOptions};
use crate::output::{self, Format, Include, View};
use crate::patch::Patch;
use crate::request::{Request, ResourcePath};
use crate::resources::Served;
use crate::server::{Inner, no_page, no_resource};
use crate::write::{Update, Written, check_name};

const SCALE: Gvk<'static> = Gvk { group: "autoscaling", version: "v1", kind: "Scale" };
const TOKEN_REQUEST: Gvk<'static> =
    Gvk { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" };
const BINDING: Gvk<'static> = Gvk { group: "", version: "v1", kind: "Binding" };
const EVICTION: Gvk<'static> = Gvk { group: "policy", version: "v1", kind: "Eviction" };

impl Inner {
    pub(crate) fn subresource(
        self: &Arc<Self>,
        request: &Request,
        served: &Arc<Served>,
        path: &ResourcePath,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let Some(sub) = served.subresource(&path.subresource) else {
            return Err(no_resource());
        };
        if !sub.verbs.contains(&request.verb()) {
            return Err(ApiError::method_not_allowed());
        }
        let namespace = if served.namespaced() { path.namespace.as_str() } else { "" };
        let name = path.name.as_str();
        match (&*sub.name, &request.method) {
            ("scale", &Method::GET) => self.get_scale(request, served, namespace, name),
            ("scale", _) => self.write_scale(request, served, namespace, name, body),
            ("binding", _) => self.bind(request, namespace, Some(name), body),
            ("eviction", _) => self.evict(request, served, namespace, name, body),
            ("token", _) => self.token(request, served, namespace, name, body),
            ("log" | "exec" | "attach" | "portforward" | "proxy", _) => {
                self.find(served, namespace, name)?;
                Ok(no_page())
            }
            (_, &Method::GET | &Method::HEAD) => self.get(request, served, namespace, name),
            (_, &Method::PUT) => self.update(request, served, namespace, name, &sub.name, body),
            (_, &Method::PATCH) => self.patch(request, served, namespace, name, &sub.name, body),
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn get_scale(
        &self,
        request: &Request,
        served: &Served,
        namespace: &str,
        name: &str,
    ) -> Result<Response<Body>, ApiError> {
        let format = output::negotiate(request)?;
        let version = self.find(served, namespace, name)?;
        let scale = scale_of(&output::object(served, &version));
        Ok(self.show_scale(format, &scale))
    }

    fn show_scale(&self, format: Format, scale: &Value) -> Response<Body> {
        let value = match format.view {
            View::Whole => scale.clone(),
            View::Metadata(version) => output::metadata_of(scale, version),
            View::Table(version, include) => {
                let object = match include {
                    Include::Nothing => Value::Null,
                    Include::Metadata => output::metadata_of(scale, version),
                    Include::Object => scale.clone(),
                };
                json!({
                    "kind": "Table",
                    "apiVersion": format!("meta.k8s.io/{version}"),
                    "metadata": {"resourceVersion": scale.at("metadata.resourceVersion")},
                    "columnDefinitions": table::scale_column_definitions(),
                    "rows": [{"cells": table::cells(SCALE, scale, self.clock.now()), "object": object}],
                })
            }
        };
        output::answer(StatusCode::OK, format, Bytes::from(json::to_vec(&value)))
    }

    fn write_scale(
        &self,
        request: &Request,
        served: &Served,
        namespace: &str,
        name: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let format = output::negotiate(request)?;
        let ty = facts::type_named("autoscaling.v1.Scale").ok_or_else(|| ApiError::internal("no Scale"))?;
        let (options, wanted, mut warnings) = if request.method == Method::PUT {
            let options = WriteOptions::read(&request.query, WriteKind::Update)?;
            let decoded = input::decode_as(SCALE, ty, input::media(request)?, body)?;
            let warnings = input::strict(&decoded.strict, options.field_validation)?;
            check_name(&decoded.value, name)?;
            (options, Wanted::Scale(decoded.value), warnings)
        } else {
            let options = WriteOptions::read(&request.query, WriteKind::Patch)?;
            let (patch, strict) = Patch::read(request, body, options.field_validation)?;
            let warnings = input::strict(&strict, options.field_validation)?;
            (options, Wanted::Patch(patch), warnings)
        };
        let update = Update {
            served,
            namespace,
            name,
            subresource: "scale",
            dry_run: options.dry_run,
            create: false,
            replaces: matches!(wanted, Wanted::Scale(_)),
        };
        let outcome = self.update_object(&update, &mut warnings, |old| {
            let scale = match &wanted {
                Wanted::Scale(scale) => scale.clone(),
                Wanted::Patch(patch) => {
                    let patched = patch.apply(ty, &scale_of(old))?;
                    let (scale, _) = patch.decode(SCALE, ty, &patched)?;
                    check_name(&scale, name)?;
                    scale
                }
            };
            let replicas = scale.int_at("spec.replicas").unwrap_or_default();
            if replicas < 0 {
                let at = Path::new("spec").child("replicas");
                let errors = vec![FieldError::invalid(&at, replicas, "must be greater than or equal to 0")];
                return Err(ApiError::invalid(SCALE.qualified_kind(), name, &errors));
            }
            let mut new = old.clone();
            new.set_at("spec.replicas", replicas);
            // What the scale says of its version and uid holds for the object.
            for field in ["metadata.resourceVersion", "metadata.uid"] {
                match scale.at(field) {
                    Value::Null => drop(new.remove_at(field)),
                    value => new.set_at(field, value.clone()),
                }
            }
            Ok(new)
        })?;
        let mut response = self.show_scale(format, &scale_of(&outcome.written.object(served)));
        output::warn(&mut response, &warnings);
        Ok(response)
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
        let pods = self.registry.find("", "v1", "pods").ok_or_else(no_resource)?;
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

    /// Deletes a pod, if the disruption budgets that cover it allow.
    fn evict(
        self: &Arc<Self>,
        request: &Request,
        served: &Served,
        namespace: &str,
        name: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let options = WriteOptions::read(&request.query, WriteKind::Create)?;
        let ty = facts::type_named("policy.v1.Eviction").ok_or_else(|| ApiError::internal("no Eviction"))?;
        let decoded = input::decode_as(EVICTION, ty, input::media(request)?, body)?;
        let eviction = decoded.value;
        if eviction.str_at("metadata.name") != name && !eviction.str_at("metadata.name").is_empty() {
            return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
        }
        let version = self.find(served, namespace, name)?;
        let pod = version.object();
        let ended = matches!(pod.str_at("status.phase"), "Succeeded" | "Failed" | "Pending");
        if !ended && !pod.has("metadata.deletionTimestamp") {
            self.use_budget(namespace, &pod, options.dry_run)?;
        }
        let mut delete = DeleteOptions::from_body(eviction.at("deleteOptions"))?;
        delete.dry_run |= options.dry_run;
        self.delete_object(served, namespace, name, &delete)?;
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        Ok(output::respond_json(StatusCode::CREATED, &status))
    }

    /// Takes one disruption off the budget that covers a pod, if it has one to spare.
    fn use_budget(&self, namespace: &str, pod: &Value, dry_run: bool) -> Result<(), ApiError> {
        let listing = self.store.list("policy/poddisruptionbudgets", &format!("{namespace}/"), None);
        let budgets: Vec<Value> = listing
            .into_iter()
            .flat_map(|listing| listing.items)
            .map(|version| version.object())
            .filter(|budget| {
                LabelSelector::from_object(budget.at("spec.selector")).is_ok_and(|selector| {
                    budget.has("spec.selector") && selector.matches(pod.at("metadata.labels"))
                })
            })
            .collect();
        if budgets.len() > 1 {
            return Err(ApiError::internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
        let Some(budget) = budgets.first() else { return Ok(()) };
        let name = budget.str_at("metadata.name");
        let allowed = budget.int_at("status.disruptionsAllowed").unwrap_or_default();
        let outdated = budget.int_at("status.observedGeneration") < budget.int_at("metadata.generation");
        if allowed > 0 && !outdated {
            let budgets = self.registry.find("policy", "v1", "poddisruptionbudgets");
            if let Some(budgets) = budgets.filter(|_| !dry_run) {
                let now = time::format_rfc3339(self.clock.now());
                self.edit(budgets, &budgets.key(namespace, name), |budget| {
                    budget.set_at("status.disruptionsAllowed", allowed - 1);
                    let disrupted = budget.object_mut("status.disruptedPods");
                    disrupted.insert(pod.str_at("metadata.name").to_owned(), now.as_str().into());
                });
            }
            return Ok(());
        }
        let why = if outdated {
            format!("The disruption budget {name} is still being processed by the server.")
        } else {
            let healthy = budget.int_at("status.currentHealthy").unwrap_or_default();
            let desired = budget.int_at("status.desiredHealthy").unwrap_or_default();
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        };
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let error = ApiError::new(429, "TooManyRequests", message).with_causes(vec![Cause {
            reason: "DisruptionBudget".to_owned(),
            message: why,
            field: String::new(),
        }]);
        let error = if outdated { error.with_retry_after(10) } else { error };
        Err(error)
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

enum Wanted {
    Scale(Value),
    Patch(Patch),
}

/// The scale of a workload.
fn scale_of(object: &Value) -> Value {
    let mut metadata = serde_json::Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.map_at("metadata").get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let selector = match object.str_at("kind") {
        "ReplicationController" => {
            let labels = object.map_at("spec.selector").iter();
            LabelSelector::from_labels(
                labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())),
            )
            .to_string()
        }
        _ => {
            LabelSelector::from_object(object.at("spec.selector")).map(|s| s.to_string()).unwrap_or_default()
        }
    };
    let mut spec = serde_json::Map::new();
    let replicas = object.int_at("spec.replicas").unwrap_or_default();
    if replicas != 0 {
        spec.insert("replicas".to_owned(), replicas.into());
    }
    let mut status = json!({"replicas": object.int_at("status.replicas").unwrap_or_default()});
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}
