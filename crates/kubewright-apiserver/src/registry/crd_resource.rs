//! Custom resources: their CRDs, compiled for requests.
//!
//! One [`CrdResource`] is one state of one CRD. A change creates a new value, so a request sees a single state.
//! Expensive parts are compiled lazily: a kind that is never applied needs no merge schema.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use kubewright_apiextensions::crd;
use kubewright_apiextensions::custom;
use kubewright_apiextensions::structural::SchemaError;
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::gvk::split_api_version;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apis::openapi::CustomVersion;
use kubewright_cel::rules::RuleSet;
use kubewright_structured_merge::{self as apply, ConvertError, TypeDef, Versions};
use serde_json::Value;

use super::conversion::Converter;
use super::strategy::Verdict;
use crate::off_worker::off_worker;
use crate::stack::on_large_stack;
use crate::storage::Revision;

/// Rules with a lower cost are evaluated on the worker thread. About a millisecond of CPU time.
const CHEAP: u64 = 20_000;

/// A custom resource in one state of its CRD.
#[derive(Debug)]
pub(crate) struct CrdResource {
    /// Names, versions and columns.
    pub(crate) info: Arc<crd::CrdInfo>,
    /// Decoding and validation of its objects.
    pub(crate) validation: Arc<custom::CrdValidation>,
    /// The last revision of the CRD with this state.
    revision: AtomicU64,
    compiled: Arc<BTreeMap<String, Compiled>>,
    /// Whether validation may match patterns that need much CPU time.
    pub(crate) has_costly_patterns: bool,
    converter: Option<Arc<Converter>>,
    /// The revision at which this state was replaced or its CRD deleted; zero before that. Shared with states
    /// that do not differ for watches.
    retired: Arc<AtomicU64>,
}

/// Parts that are compiled on first use.
#[derive(Debug, Default)]
struct Compiled {
    rules: OnceLock<RuleSet>,
    type_def: OnceLock<TypeDef>,
}

impl CrdResource {
    pub(crate) fn compile(object: &Value, revision: Revision) -> Result<Self, SchemaError> {
        let validation = custom::CrdValidation::compile(object)?;
        let info = crd::CrdInfo::from_object(object);
        let compiled = info.versions.iter().map(|v| (v.name.clone(), Compiled::default())).collect();
        Ok(Self {
            converter: Converter::compile(&info.conversion).map(Arc::new),
            info: info.into(),
            has_costly_patterns: validation
                .versions
                .values()
                .any(|version| version.schema.has_costly_patterns()),
            validation: validation.into(),
            revision: AtomicU64::new(revision),
            compiled: Arc::new(compiled),
            retired: Arc::default(),
        })
    }

    /// A copy for a forked server, with independent state.
    pub(crate) fn fork(&self) -> Self {
        Self {
            info: self.info.clone(),
            validation: self.validation.clone(),
            revision: AtomicU64::new(self.revision.load(Ordering::Relaxed)),
            compiled: self.compiled.clone(),
            has_costly_patterns: self.has_costly_patterns,
            converter: self.converter.clone(),
            retired: Arc::default(),
        }
    }

    /// The conversion webhook, if there is one.
    pub(crate) fn converter(&self) -> Option<&Converter> {
        self.converter.as_deref()
    }

    /// The state to serve: the previous one if no relevant field changed.
    pub(crate) fn in_place_of(mut self, before: Option<&Arc<Self>>) -> Arc<Self> {
        let Some(before) = before else { return Arc::new(self) };
        let is_same_schema = before.validation.versions == self.validation.versions;
        if is_same_schema && before.info == self.info {
            before.revision.store(self.revision.into_inner(), Ordering::Relaxed);
            return before.clone();
        }
        // Watches of a terminating CRD's instances continue, to report their deletion.
        let ends = crd::CrdInfo { terminating: self.info.terminating, ..(*before.info).clone() };
        if is_same_schema && ends == *self.info {
            self.retired = before.retired.clone();
        }
        Arc::new(self)
    }

    /// Whether this was compiled from the given revision of the CRD.
    pub(crate) fn is_at(&self, revision: Revision) -> bool {
        self.revision.load(Ordering::Relaxed) == revision
    }

    /// Whether watches of the other state can continue with this one.
    pub(crate) fn follows(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.retired, &other.retired)
    }

    /// The storage version.
    pub(crate) fn storage_version(&self) -> &str {
        self.info.storage_version().map_or("", |version| &version.name)
    }

    /// The names and columns of a version, for discovery and tables.
    pub(crate) fn version(&self, name: &str) -> Option<&crd::Version> {
        self.info.versions.iter().find(|version| version.name == name)
    }

    /// A stored object in a version. Returned unchanged if it cannot be converted because its stored version
    /// was removed from the CRD.
    pub(crate) fn read(&self, stored: Value, version: &str) -> Value {
        custom::read(&self.validation, stored.clone(), version).unwrap_or_else(|error| {
            let (namespace, name) = (stored.str_at("metadata.namespace"), stored.str_at("metadata.name"));
            let kind = &self.validation.kind;
            tracing::error!(%error, kind, namespace, name, "failed to read stored custom resource");
            stored
        })
    }

    /// Converts an object of any version to the storage version.
    pub(crate) fn to_stored(&self, mut object: Value) -> Value {
        if let Err(error) = custom::convert(&self.validation, &mut object, self.storage_version()) {
            let (namespace, name) = (object.str_at("metadata.namespace"), object.str_at("metadata.name"));
            let kind = &self.validation.kind;
            tracing::error!(%error, kind, namespace, name, "failed to convert custom resource for storage");
        }
        object
    }

    /// Evaluates the CEL validation rules and adds their errors.
    pub(crate) fn check_rules(
        &self,
        version: &str,
        mut errors: ErrorList,
        new: &Value,
        old: Option<&Value>,
    ) -> Verdict {
        let (Some(compiled), Some(rules)) =
            (self.compiled.get(version), self.validation.versions.get(version))
        else {
            return Verdict { errors, warnings: Vec::new() };
        };
        let compile = || off_worker(|| on_large_stack(|| rules.schema.rules()));
        let rules = compiled.rules.get_or_init(compile);
        if rules.is_empty() {
            return Verdict { errors, warnings: Vec::new() };
        }
        if let Some(blocked) = custom::blocks_rules(&errors) {
            errors.push(blocked);
            return Verdict { errors, warnings: Vec::new() };
        }
        let cheap = rules.validate_within(CHEAP, new, old);
        let outcome = cheap.unwrap_or_else(|| off_worker(|| rules.validate(new, old)));
        errors.extend(outcome.errors);
        Verdict { errors, warnings: outcome.warnings }
    }

    /// The served versions for OpenAPI documents.
    pub(crate) fn published_versions(&self) -> impl Iterator<Item = CustomVersion<'_>> {
        let info = &*self.info;
        info.served_versions().map(|version| CustomVersion {
            group: &info.group,
            version: &version.name,
            plural: &info.names.plural,
            kind: &info.names.kind,
            list_kind: &info.names.list_kind,
            namespaced: info.namespaced,
            status: version.status,
            scale: version.scale.is_some(),
            preserve_unknown_fields: info.preserve_unknown_fields,
            schema: self
                .validation
                .versions
                .get(&version.name)
                .filter(|version| version.has_schema)
                .map(|version| version.schema.to_openapi()),
            selectable_fields: version.selectable.iter().map(|field| field.name.as_str()).collect(),
        })
    }

    /// Ends watches of this state: they report no event after this revision.
    pub(crate) fn retire(&self, at: Revision) {
        self.retired.store(at, Ordering::Release);
    }

    pub(crate) fn retired(&self) -> Option<Revision> {
        Some(self.retired.load(Ordering::Acquire)).filter(|at| *at > 0)
    }
}

impl Versions for CrdResource {
    fn schema(&self, api_version: &str) -> Result<apply::Schema<'_>, ConvertError> {
        let (_, version) = split_api_version(api_version);
        let compiled = self.compiled.get(version).ok_or_else(|| unknown(api_version))?;
        let rules = self.validation.versions.get(version).ok_or_else(|| unknown(api_version))?;
        let type_def = || rules.schema.type_def(self.info.preserve_unknown_fields);
        Ok(apply::Schema::custom(compiled.type_def.get_or_init(type_def)))
    }

    /// Without conversion webhooks; [`Recorder`](super::conversion::Recorder) adds them.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let (_, version) = split_api_version(api_version);
        let mut object = object.clone();
        custom::convert(&self.validation, &mut object, version)
            .map_err(|error| ConvertError::Failed(error.to_string()))?;
        Ok(object)
    }
}

fn unknown(api_version: &str) -> ConvertError {
    ConvertError::Failed(format!("request to convert CR to an invalid group/version: {api_version}"))
}
