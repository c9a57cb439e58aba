//! Compiled webhook configurations.
//!
//! A [`CompiledCache`] belongs to one server. It compares stored versions by identity, so unchanged
//! configurations are not decoded again.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

use super::conditions::Conditions;
use super::matching::{Criteria, is_exempt_from_webhooks};
use crate::admission::{Attributes, Cluster};
use crate::storage::StoredObject;
use crate::webhook_client::{SharedTarget, Target};

/// One webhook of a configuration.
pub(crate) struct Hook {
    /// Name of the configuration.
    pub(crate) configuration: String,
    pub(crate) name: String,
    /// Unique key: configuration, webhook name and number.
    pub(crate) uid: String,
    pub(crate) criteria: Criteria,
    pub(crate) conditions: Conditions,
    /// `failurePolicy: Ignore`.
    pub(crate) fails_open: bool,
    /// Whether it may be called on dry run; `None` if `sideEffects` is not set.
    pub(crate) supports_dry_run: Option<bool>,
    /// `reinvocationPolicy: IfNeeded`.
    pub(crate) reinvocable: bool,
    pub(crate) timeout_seconds: Option<u64>,
    /// The first of `admissionReviewVersions` that this server supports.
    pub(crate) review_version: Option<&'static str>,
    pub(crate) target: SharedTarget,
}

/// A type that is compiled from stored objects.
pub(crate) trait Compile: Sized {
    /// Compiles the entries of an object, in order.
    fn compile(object: &Value) -> Vec<Self>;

    /// The requests that an entry applies to.
    fn criteria(&self) -> &Criteria;

    /// Whether no entry applies to a request, whatever its criteria.
    fn is_exempt(attributes: &Attributes<'_>) -> bool;
}

impl Compile for Hook {
    fn compile(object: &Value) -> Vec<Self> {
        let configuration = object.str_at("metadata.name");
        let mut seen: HashMap<&str, usize> = HashMap::new();
        let compile = |webhook| {
            let name = Value::str_at(webhook, "name");
            let number = seen.entry(name).or_default();
            let uid = format!("{configuration}/{name}/{number}");
            *number += 1;
            Self::of_webhook(configuration, uid, webhook)
        };
        object.list_at("webhooks").iter().map(compile).collect()
    }

    fn criteria(&self) -> &Criteria {
        &self.criteria
    }

    fn is_exempt(attributes: &Attributes<'_>) -> bool {
        is_exempt_from_webhooks(attributes)
    }
}

impl Hook {
    fn of_webhook(configuration: &str, uid: String, webhook: &Value) -> Self {
        let fails_open = webhook.str_at("failurePolicy") == "Ignore";
        let mut versions = webhook.list_at("admissionReviewVersions").iter().filter_map(Value::as_str);
        Self {
            configuration: configuration.to_owned(),
            name: webhook.str_at("name").to_owned(),
            uid,
            criteria: Criteria::of_webhook(webhook),
            conditions: Conditions::compile(
                webhook.list_at("matchConditions"),
                || kubewright_apis::admission::environment(false),
                fails_open,
            ),
            fails_open,
            supports_dry_run: webhook
                .at("sideEffects")
                .as_str()
                .map(|class| matches!(class, "None" | "NoneOnDryRun")),
            reinvocable: webhook.str_at("reinvocationPolicy") == "IfNeeded",
            timeout_seconds: webhook.int_at("timeoutSeconds").and_then(|seconds| u64::try_from(seconds).ok()),
            review_version: versions
                .find_map(|version| ["v1", "v1beta1"].into_iter().find(|known| *known == version)),
            target: Target::compile(webhook.at("clientConfig")).map(Arc::new),
        }
    }
}

pub(crate) type Entries<T> = Vec<(Arc<StoredObject>, Arc<[T]>)>;

/// The compiled entries of all objects of one resource.
pub(crate) struct CompiledCache<T> {
    storage: &'static str,
    entries: RwLock<Arc<Entries<T>>>,
}

impl<T: Compile> CompiledCache<T> {
    pub(crate) fn new(storage: &'static str) -> Self {
        Self { storage, entries: RwLock::default() }
    }

    /// All compiled objects, or none if no rule can match the request.
    pub(crate) fn relevant(&self, cluster: &Cluster, attributes: &Attributes<'_>) -> Option<Arc<Entries<T>>> {
        let entries = self.get(cluster);
        if entries.is_empty() || T::is_exempt(attributes) {
            return None;
        }
        let concerns = |entry: &T| entry.criteria().may_match(cluster, attributes);
        entries.iter().any(|(_, entries)| entries.iter().any(concerns)).then_some(entries)
    }

    /// The compiled objects, ordered by name.
    pub(crate) fn get(&self, cluster: &Cluster) -> Arc<Entries<T>> {
        let versions = cluster.versions(self.storage, "");
        let known = self.entries.read().unwrap_or_else(PoisonError::into_inner).clone();
        let same = known.len() == versions.len()
            && known.iter().zip(&versions).all(|((known, _), version)| Arc::ptr_eq(known, version));
        if same {
            return known;
        }
        let registry = cluster.registry();
        let Some(resource) = registry.stored(self.storage) else { return Arc::default() };
        let compile = |version: Arc<StoredObject>| {
            let before = known.iter().find(|(known, _)| Arc::ptr_eq(known, &version));
            let compiled = match before {
                // Reuse keeps its connections open.
                Some((_, compiled)) => compiled.clone(),
                None => T::compile(&crate::encoding::response::object(resource, &version)).into(),
            };
            (version, compiled)
        };
        let entries: Arc<Entries<T>> = Arc::new(versions.into_iter().map(compile).collect());
        *self.entries.write().unwrap_or_else(PoisonError::into_inner) = entries.clone();
        entries
    }
}
