//! Resources that are computed and not stored: access reviews, bindings, component statuses.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apimachinery::{json, time};
use kubewright_apis::validation;
use serde_json::{Value, json};

use crate::admission::{Notes, Operation};
use crate::authn::tokens::{Authenticated, Bearer};
use crate::authn::{Authn, User};
use crate::authz::{Action, ActionOn, Authz, Decision};
use crate::encoding::body::Body;
use crate::encoding::negotiate::negotiate;
use crate::encoding::request_body;
use crate::encoding::response;
use crate::fieldmanager::FieldManager;
use crate::registry::conversion::Recorder;
use crate::registry::resource::Resource;
use crate::registry::write::{WritePath, WriteRequest, Written, check_namespace};
use crate::request::options::{WriteKind, WriteOptions};
use crate::request::{Request, ResourcePath};

/// Answers requests for resources that are not stored.
pub(crate) struct Reviews {
    pub(crate) authn: Arc<Authn>,
    pub(crate) authz: Arc<Authz>,
    pub(crate) writes: Arc<WritePath>,
}

impl Reviews {
    pub(crate) async fn answer(
        &self,
        request: &Request,
        resource: &Arc<Resource>,
        path: &ResourcePath,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        if resource.is_component_statuses() {
            return self.component_statuses(request, resource, &path.name);
        }
        if resource.group().is_empty() && resource.plural() == "bindings" {
            return self.writes.bind(request, &path.namespace, None, body).await;
        }
        let format = negotiate(request, resource)?;
        let options = WriteOptions::read(&request.query, WriteKind::Create)?;
        let media = request_body::media(request)?;
        let (mut review, warnings) = resource.strategy.decode(media, body, options.field_validation)?;
        check_namespace(resource, &path.namespace, &mut review)?;
        let manager = FieldManager::of(request);
        manager.track(&Recorder::new(self.writes.clock(), resource), "", None, &mut review);
        let write = WriteRequest {
            resource,
            namespace: &path.namespace,
            name: "",
            subresource: "",
            user: &request.user,
            manager: &manager,
            options: &options,
        };
        let mut notes = Notes { warnings, ..Notes::of(request) };
        let name = review.str_at("metadata.name").to_owned();
        let mut attributes = write.attributes(Operation::Create, &name, review, None);
        self.writes.admission.admit_and_validate(&mut attributes, &mut notes).await?;
        let mut review = attributes.object;
        let errors = validation::review(resource.gvk(), &review);
        if !errors.is_empty() {
            return Err(match resource.group() {
                // Upstream has lost the kind at this point and reports no name.
                group @ "authorization.k8s.io" => {
                    ApiError::invalid(Qualified { group, name: "" }, "", &errors)
                }
                _ => ApiError::invalid(
                    resource.gvk().qualified_kind(),
                    review.str_at("metadata.name"),
                    &errors,
                ),
            });
        }
        let rules = resource.kind() == "SelfSubjectRulesReview";
        if rules && review.str_at("spec.namespace").is_empty() {
            return Err(ApiError::bad_request("no namespace on request"));
        }
        let status = self.review(request, resource, &review);
        review.set_at("status", status);
        if rules {
            // The response is a new review, without the request's spec.
            review.set_at("metadata", json!({}));
            review.set_at("spec", json!({}));
        }
        if resource.kind() == "SelfSubjectReview" {
            review.set_at("metadata.creationTimestamp", time::format_rfc3339(self.writes.clock().now()));
        }
        resource.strategy.canonicalize(&mut review)?;
        Ok(self.writes.written(
            resource,
            format,
            &Written::shown(review),
            StatusCode::CREATED,
            &notes.warnings,
        ))
    }

    /// All components are reported as healthy.
    fn component_statuses(
        &self,
        request: &Request,
        resource: &Resource,
        name: &str,
    ) -> Result<Response<Body>, ApiError> {
        let format = negotiate(request, resource)?;
        let status = |name: &str| {
            json!({
                "apiVersion": "v1",
                "kind": "ComponentStatus",
                "metadata": {"name": name},
                "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
            })
        };
        let names = ["scheduler", "controller-manager", "etcd-0"];
        let value = if name.is_empty() {
            let items: Vec<Value> = names.into_iter().map(status).collect();
            response::list_of(resource, format.view, items, &json!({}), self.writes.clock().now())
        } else if names.contains(&name) {
            response::transformed(resource, format.view, &status(name), self.writes.clock().now())
        } else {
            return Err(ApiError::not_found(resource.qualified(), name));
        };
        Ok(response::answer(StatusCode::OK, format, Bytes::from(json::to_vec(&value))))
    }

    fn review(&self, request: &Request, resource: &Resource, review: &Value) -> Value {
        match resource.kind() {
            "SelfSubjectReview" => json!({"userInfo": user_info(&request.user)}),
            "SelfSubjectAccessReview" => self.access(&request.user, review),
            "SubjectAccessReview" | "LocalSubjectAccessReview" => {
                let groups =
                    review.list_at("spec.groups").iter().filter_map(|g| g.as_str().map(str::to_owned));
                let user = User {
                    name: review.str_at("spec.user").to_owned(),
                    uid: review.str_at("spec.uid").to_owned(),
                    groups: groups.collect(),
                    extra: std::collections::BTreeMap::new(),
                };
                self.access(&user, review)
            }
            "SelfSubjectRulesReview" => self.authz.rules_of(&request.user, review.str_at("spec.namespace")),
            "TokenReview" => self.token_review(review),
            _ => json!({}),
        }
    }

    /// The status of a TokenReview. The token is parsed like a header, up to the first space.
    fn token_review(&self, review: &Value) -> Value {
        let header = format!("Bearer {}", review.str_at("spec.token"));
        let audiences = match review.list_at("spec.audiences") {
            [] => self.authn.tokens.api_audiences(),
            given => given.iter().filter_map(|audience| audience.as_str().map(str::to_owned)).collect(),
        };
        match Bearer::read(&header) {
            Bearer::Token(token) => match self.authn.authenticate_token(token, &audiences) {
                Ok(Authenticated { user, audiences }) => {
                    json!({"authenticated": true, "user": user_info(&user), "audiences": audiences})
                }
                Err(error) => json!({"user": {}, "error": error.in_review()}),
            },
            Bearer::Absent | Bearer::ExtraSpace => json!({"user": {}}),
        }
    }

    fn access(&self, user: &User, review: &Value) -> Value {
        let spec = review.at("spec");
        let resource;
        let action = if spec.has("resourceAttributes") {
            let asked = spec.at("resourceAttributes");
            resource = match asked.str_at("subresource") {
                "" => asked.str_at("resource").to_owned(),
                sub => format!("{}/{sub}", asked.str_at("resource")),
            };
            let on = ActionOn::Resource {
                group: asked.str_at("group"),
                resource: &resource,
                namespace: asked.str_at("namespace"),
                name: asked.str_at("name"),
            };
            Action { verb: asked.str_at("verb"), on }
        } else {
            let asked = spec.at("nonResourceAttributes");
            Action { verb: asked.str_at("verb"), on: ActionOn::Path(asked.str_at("path")) }
        };
        let Decision { allowed, reason } = self.authz.decide(user, action);
        let mut status = json!({"allowed": allowed});
        if !reason.is_empty() {
            status["reason"] = reason.into();
        }
        status
    }
}

fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name});
    if !user.uid.is_empty() {
        info["uid"] = user.uid.as_str().into();
    }
    if !user.groups.is_empty() {
        info["groups"] = user.groups.clone().into();
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}
