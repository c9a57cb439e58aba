//! DELETE of objects and collections. [`crate::registry::delete`] decides how an object is deleted.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use kubewright_apimachinery::types;
use kubewright_apimachinery::{decode, json};
use serde_json::{Value, json};

use crate::admission::{Attributes, Notes, Operation, OperationOptions};
use crate::after_commit::AfterCommit;
use crate::authn::User;
use crate::encoding::body::Body;
use crate::encoding::negotiate::negotiate;
use crate::encoding::request_body;
use crate::encoding::response;
use crate::endpoints::read::{Filter, ReadPath};
use crate::registry::delete::{Deleted, Plan, TRIES};
use crate::registry::resource::Resource;
use crate::registry::write::{MODIFIED, WritePath, Written};
use crate::request::Request;
use crate::request::options::{DeleteOptions, ListOptions};

/// DELETE of an object.
pub(crate) async fn delete(
    writes: &WritePath,
    request: &Request,
    resource: &Resource,
    namespace: &str,
    name: &str,
    body: &Bytes,
) -> Result<Response<Body>, ApiError> {
    let format = negotiate(request, resource)?;
    let options = delete_options(request, body)?;
    let mut notes = Notes::of(request);
    let deletion = Deletion { resource, namespace, name, user: &request.user, options: &options };
    let deleted = match delete_admitted(writes, &deletion, name, &mut notes).await {
        Ok(deleted) => deleted,
        Err(error) => {
            let mut response = response::failure(&error);
            response::warn(&mut response, &notes.warnings);
            return Ok(response);
        }
    };
    if let (Some(warning), Deleted::Waiting(_)) = (resource.rules().deletion_warning, &deleted)
        && options.propagation.is_none()
        && options.orphan_dependents.is_none()
    {
        notes.warn(warning);
    }
    let shown = match deleted {
        Deleted::Waiting(object) => object,
        Deleted::Removed(object) if resource.rules().returns_deleted => object,
        Deleted::Removed(object) => {
            let mut details =
                json!({"name": name, "kind": resource.plural(), "uid": object.at("metadata.uid")});
            if !resource.group().is_empty() {
                details["group"] = resource.group().into();
            }
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
            });
            let mut response = response::answer(StatusCode::OK, format, Bytes::from(json::to_vec(&status)));
            response::warn(&mut response, &notes.warnings);
            return Ok(response);
        }
    };
    Ok(writes.written(resource, format, &Written::Shown(shown), StatusCode::OK, &notes.warnings))
}

/// DELETE of a collection: each selected object is deleted like a single one.
pub(crate) async fn delete_collection(
    writes: &WritePath,
    reads: &ReadPath,
    request: &Request,
    resource: &Arc<Resource>,
    namespace: &str,
    body: &Bytes,
) -> Result<Response<Body>, ApiError> {
    let format = negotiate(request, resource)?;
    let options = delete_options(request, body)?;
    let list = ListOptions::read(&request.query, false)?;
    let filter = Filter::new(resource, namespace, &list)?;
    reads.convert_for(resource, &filter).await?;
    let page = reads.page(resource, &filter, &list, "")?;
    writes.conversion.convert_versions(resource, &page.items).await?;
    let mut notes = Notes::of(request);
    for version in &page.items {
        let (namespace, name) = version.namespace_and_name();
        // As upstream, admission gets no name.
        let deletion = Deletion { resource, namespace, name: "", user: &request.user, options: &options };
        match delete_admitted(writes, &deletion, name, &mut notes).await {
            Ok(_) => {}
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    let mut response = reads.list_answer(resource, format, page);
    response::warn(&mut response, &notes.warnings);
    Ok(response)
}

/// Deletes an object, as far as that is possible now, after admission.
async fn delete_admitted(
    writes: &WritePath,
    deletion: &Deletion<'_>,
    name: &str,
    notes: &mut Notes,
) -> Result<Deleted, ApiError> {
    let Deletion { resource, namespace, options, .. } = *deletion;
    for _ in 0..TRIES {
        let current = writes.objects.latest(resource, namespace, name)?;
        writes.conversion.convert_versions(resource, std::slice::from_ref(&current)).await?;
        // With a conversion webhook, delete in the storage version.
        let storage = writes.conversion.storage_resource(resource);
        let acting = storage.as_deref().unwrap_or(resource);
        let old = response::object(acting, &current);
        let plan = writes.objects.plan_delete(acting, &current, &old, name, options)?;
        if !matches!(&plan, Plan::Keep(new) if *new == old) {
            let shown = storage.as_ref().map(|_| response::object(resource, &current));
            let mut attributes = deletion.attributes(shown.as_ref().unwrap_or(&old));
            writes.admission.admit_and_validate(&mut attributes, notes).await?;
        }
        let mut after = AfterCommit::default();
        let deleted = writes.objects.carry_out(acting, &current, &old, plan, options, &mut after);
        writes.steps.run(after);
        match deleted {
            Some(Deleted::Waiting(object)) => {
                return Ok(Deleted::Waiting(writes.conversion.in_served_version(resource, object).await?));
            }
            Some(removed) => return Ok(removed),
            None => {}
        }
    }
    Err(ApiError::conflict(resource.qualified(), name, MODIFIED))
}

/// A request to delete an object or a collection.
struct Deletion<'a> {
    resource: &'a Resource,
    namespace: &'a str,
    /// The name in the path; empty for a collection.
    name: &'a str,
    user: &'a User,
    options: &'a DeleteOptions,
}

impl<'a> Deletion<'a> {
    fn attributes<'b>(&self, old: &'b Value) -> Attributes<'b>
    where
        'a: 'b,
    {
        let namespaces = self.resource.is_namespaces();
        Attributes {
            operation: Operation::Delete,
            resource: self.resource,
            kind: self.resource.gvk(),
            strategy: &*self.resource.strategy,
            subresource: "",
            namespace: if namespaces { self.name } else { self.namespace },
            name: self.name,
            object: Value::Null,
            old_object: Some(old),
            options: OperationOptions::Delete(self.options),
            user: self.user,
            dry_run: self.options.dry_run,
            managed_fields_before: None,
        }
    }
}

/// The DeleteOptions from the body if there is one, otherwise from the query.
fn delete_options(request: &Request, body: &Bytes) -> Result<DeleteOptions, ApiError> {
    if body.is_empty() {
        return DeleteOptions::from_query(&request.query);
    }
    let (bytes, _) = request_body::to_json(request_body::media(request)?, body)?;
    let parsed = json::parse(&bytes, json::ParseOptions::default()).map_err(|error| {
        ApiError::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    })?;
    let mut value = parsed.value;
    let kind = value.str_at("kind");
    if !kind.is_empty() && kind != "DeleteOptions" {
        let version = value.str_at("apiVersion");
        return Err(ApiError::bad_request(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \
             \"pkg/apis/meta/internalversion/scheme/register.go:27\""
        )));
    }
    let ty =
        types::type_named("meta.v1.DeleteOptions").ok_or_else(|| ApiError::internal("no DeleteOptions"))?;
    if value.is_null() {
        value = json!({});
    }
    decode::normalise(ty, &mut value).map_err(|error| ApiError::bad_request(error.to_string()))?;
    DeleteOptions::from_body(&value)
}
