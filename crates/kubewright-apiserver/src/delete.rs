//! Deletion: at once, after finalizers, or after a grace period.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use kubewright_apimachinery::facts;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apimachinery::{crd, decode, json, time};
use serde_json::{Value, json};

use crate::body::Body;
use crate::input;
use crate::kinds::{self, GarbageCollection};
use crate::options::{DeleteOptions, ListOptions, Propagation};
use crate::output;
use crate::read::Filter;
use crate::request::Request;
use crate::resources::Served;
use crate::server::Inner;
use crate::storage::{Expect, Version};
use crate::write::{MODIFIED, Written};

/// The finalizer that keeps an owner until its dependents have lost their reference to it.
pub(crate) const ORPHAN: &str = "orphan";
/// The finalizer that keeps an owner until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

const TRIES: usize = 32;
/// A hundred years: what is deleted later than that is not deleted.
const MAX_GRACE: i64 = 100 * 365 * 86_400;

/// What a deletion left behind.
pub(crate) enum Deleted {
    /// Gone; this is how it looked last.
    Gone(Value),
    /// Waits for finalizers, or for its grace period to end.
    Waiting(Value),
}

impl Inner {
    /// DELETE of an object.
    pub(crate) fn delete(
        self: &Arc<Self>,
        request: &Request,
        served: &Served,
        namespace: &str,
        name: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let format = output::negotiate(request)?;
        let options = delete_options(request, body)?;
        if served.storage.as_ref() == "namespaces" && is_reserved(name) {
            return Err(ApiError::forbidden(served.qualified(), name, "this namespace may not be deleted"));
        }
        let deleted = self.delete_object(served, namespace, name, &options)?;
        let mut warnings = Vec::new();
        if let ("batch", "Job", Deleted::Waiting(_)) = (served.group(), served.kind(), &deleted)
            && options.propagation.is_none()
            && options.orphan_dependents.is_none()
        {
            warnings.push(JOB_WARNING.to_owned());
        }
        let shown = match deleted {
            Deleted::Waiting(object) => object,
            Deleted::Gone(object) if kinds::returns_deleted(served.gvk()) => object,
            Deleted::Gone(object) => {
                let mut details =
                    json!({"name": name, "kind": served.plural(), "uid": object.at("metadata.uid")});
                if !served.group().is_empty() {
                    details["group"] = served.group().into();
                }
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
                });
                return Ok(output::answer(StatusCode::OK, format, Bytes::from(json::to_vec(&status))));
            }
        };
        Ok(self.written(served, format, &Written::Shown(shown), StatusCode::OK, &warnings))
    }

    /// DELETE of a collection: what it selects goes one by one, as if deleted singly.
    pub(crate) fn delete_collection(
        self: &Arc<Self>,
        request: &Request,
        served: &Served,
        namespace: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let format = output::negotiate(request)?;
        let options = delete_options(request, body)?;
        let list = ListOptions::read(&request.query, false)?;
        let filter = Filter::new(served, namespace, &list)?;
        let page = self.page(served, &filter, &list, "")?;
        for version in &page.items {
            let (namespace, name) = version.namespace_and_name();
            match self.delete_object(served, namespace, name, &options) {
                Ok(_) => {}
                Err(error) if error.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.list_answer(served, format, page))
    }

    /// Deletes an object, as far as it can be deleted now.
    pub(crate) fn delete_object(
        &self,
        served: &Served,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        for _ in 0..TRIES {
            let current = self.find(served, namespace, name)?;
            if let Some(deleted) = self.try_delete(served, &current, name, options)? {
                return Ok(deleted);
            }
        }
        Err(ApiError::conflict(served.qualified(), name, MODIFIED))
    }

    fn try_delete(
        &self,
        served: &Served,
        current: &Arc<Version>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Option<Deleted>, ApiError> {
        let old = output::object(served, current);
        check_preconditions(served, name, &old, options)?;
        let mut new = old.clone();
        let finalizers = finalizers_after(served, &old, options);
        set_finalizers(&mut new, &finalizers);

        let was_deleting = old.has("metadata.deletionTimestamp");
        if served.defines_resources() && !was_deleting {
            return Ok(self.delete_definition(served, current, &old, options));
        }
        let grace = grace_period(served, &old, options);
        let waits = !finalizers.is_empty() || grace > 0 || waits_for_content(served, &old);
        let old_grace = old.int_at("metadata.deletionGracePeriodSeconds");
        if was_deleting {
            // A second deletion can only shorten the wait.
            if options.grace.is_some() && grace < old_grace.unwrap_or_default() {
                self.mark(&mut new, &old, grace);
            }
        } else if waits || marks_before_removal(served) {
            self.mark(&mut new, &old, grace);
            if served.storage.as_ref() == "namespaces" {
                new.set_at("status.phase", "Terminating");
                new.object_mut("metadata").remove("deletionGracePeriodSeconds");
            }
        }
        served.normalise(&mut new)?;
        let still_waits = !finalizers.is_empty()
            || waits_for_content(served, &new)
            || new.int_at("metadata.deletionGracePeriodSeconds").unwrap_or_default() > 0;
        if still_waits {
            if new == old || options.dry_run {
                return Ok(Some(Deleted::Waiting(new)));
            }
            let key = current.key.clone();
            let Ok(version) = self.put(served, &key, Expect::At(current.revision), new) else {
                return Ok(None);
            };
            self.after_write(served, &version);
            return Ok(Some(Deleted::Waiting(output::object(served, &version))));
        }
        if options.dry_run {
            return Ok(Some(Deleted::Gone(new)));
        }
        let key = current.key.clone();
        // A kind with a grace period is marked before it goes, even if it goes at once.
        let mut last = current.clone();
        if marks_before_removal(served) && new != old {
            match self.put(served, &key, Expect::At(current.revision), new) {
                Ok(version) => last = version,
                Err(_) => return Ok(None),
            }
        }
        match self.remove(served, &key, &last) {
            Ok(version) => Ok(Some(Deleted::Gone(output::object(served, &version)))),
            Err(_) => Ok(None),
        }
    }

    /// A definition is marked, and goes once its objects are gone.
    fn delete_definition(
        &self,
        served: &Served,
        current: &Arc<Version>,
        old: &Value,
        options: &DeleteOptions,
    ) -> Option<Deleted> {
        let mut new = old.clone();
        let now = time::format_rfc3339(self.clock.now());
        new.set_at("metadata.deletionTimestamp", now.as_str());
        crd::prepare_delete(&mut new, &now);
        if options.dry_run {
            return Some(Deleted::Waiting(new));
        }
        let version = self.put(served, &current.key, Expect::At(current.revision), new).ok()?;
        let shown = output::object(served, &version);
        self.after_write(served, &version);
        Some(Deleted::Waiting(shown))
    }

    /// The time of deletion is set, and the generation counts it.
    fn mark(&self, object: &mut Value, old: &Value, grace: i64) {
        let now = self.clock.now();
        object.set_at("metadata.deletionTimestamp", time::format_rfc3339(now + grace));
        object.set_at("metadata.deletionGracePeriodSeconds", grace);
        if !old.has("metadata.deletionTimestamp")
            && let Some(generation) = old.int_at("metadata.generation").filter(|generation| *generation > 0)
        {
            object.set_at("metadata.generation", generation.saturating_add(1));
        }
    }
}

/// The finalizers that an object has once garbage collection has its say.
fn finalizers_after(served: &Served, old: &Value, options: &DeleteOptions) -> Vec<String> {
    let mut finalizers: Vec<String> =
        old.list_at("metadata.finalizers").iter().filter_map(|f| f.as_str().map(str::to_owned)).collect();
    let policy = kinds::garbage_collection(served.gvk());
    if policy == GarbageCollection::Unsupported {
        return finalizers;
    }
    let has =
        |name: &str| finalizers.iter().find(|f| *f == ORPHAN || *f == FOREGROUND).is_some_and(|f| f == name);
    let (orphan, foreground) = match (options.orphan_dependents, options.propagation) {
        (Some(orphan), _) => (orphan, false),
        (None, Some(propagation)) => {
            (propagation == Propagation::Orphan, propagation == Propagation::Foreground)
        }
        (None, None) if has(ORPHAN) => (true, false),
        (None, None) if has(FOREGROUND) => (false, true),
        (None, None) => (policy == GarbageCollection::Orphan, false),
    };
    finalizers.retain(|f| f != ORPHAN && f != FOREGROUND);
    if orphan {
        finalizers.push(ORPHAN.to_owned());
    }
    if foreground {
        finalizers.push(FOREGROUND.to_owned());
    }
    finalizers
}

/// A namespace goes when its own finalizers are done.
fn waits_for_content(served: &Served, object: &Value) -> bool {
    served.storage.as_ref() == "namespaces" && !object.list_at("spec.finalizers").is_empty()
}

const JOB_WARNING: &str = "child pods are preserved by default when jobs are deleted; set \
                           propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress \
                           this warning";

fn is_reserved(namespace: &str) -> bool {
    matches!(namespace, "default" | "kube-system" | "kube-public")
}

/// Kinds with a grace period carry the time of their deletion even when they go at once.
fn marks_before_removal(served: &Served) -> bool {
    served.storage.as_ref() == "pods"
}

/// Seconds that an object is given to end.
fn grace_period(served: &Served, object: &Value, options: &DeleteOptions) -> i64 {
    if served.storage.as_ref() != "pods" {
        return 0;
    }
    let own = object.int_at("spec.terminationGracePeriodSeconds").unwrap_or(30);
    let grace = options.grace.unwrap_or(own);
    let ended = matches!(object.str_at("status.phase"), "Succeeded" | "Failed");
    if object.str_at("spec.nodeName").is_empty() || ended {
        return 0;
    }
    // As upstream: a negative period means one second. A time that cannot be written is none.
    if grace < 0 { 1 } else { grace.min(MAX_GRACE) }
}

fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    if finalizers.is_empty() {
        object.object_mut("metadata").remove("finalizers");
    } else {
        object.set_at("metadata.finalizers", finalizers.to_vec());
    }
}

fn check_preconditions(
    served: &Served,
    name: &str,
    object: &Value,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    // Graceful kinds check before anything else, and name the kind instead of the resource.
    let what = Qualified { group: served.group(), name: served.kind() };
    let uid = object.str_at("metadata.uid");
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have \
             been deleted and then recreated"
        );
        return Err(ApiError::conflict(what, name, &why));
    }
    let revision = object.str_at("metadata.resourceVersion");
    if let Some(wanted) = options.resource_version.as_deref().filter(|wanted| *wanted != revision) {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({revision}). The object might have been modified"
        );
        return Err(ApiError::conflict(what, name, &why));
    }
    Ok(())
}

/// Options of a deletion: from the body if there is one, else from the query.
fn delete_options(request: &Request, body: &Bytes) -> Result<DeleteOptions, ApiError> {
    if body.is_empty() {
        return DeleteOptions::from_query(&request.query);
    }
    let (bytes, _) = input::to_json(input::media(request)?, body)?;
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
        facts::type_named("meta.v1.DeleteOptions").ok_or_else(|| ApiError::internal("no DeleteOptions"))?;
    if value.is_null() {
        value = json!({});
    }
    decode::normalise(ty, &mut value).map_err(|error| ApiError::bad_request(error.to_string()))?;
    DeleteOptions::from_body(&value)
}
