//! Custom resources: what their definitions say, compiled for requests.
//!
//! One [`Custom`] stands for one state of one definition; a new state is a new value, so that a request sees
//! one of them. Compiling is lazy where it is dear: a kind that nobody applies needs no merge schema.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use kubewright_apiextensions::crd;
use kubewright_apiextensions::custom::{self, ScalePaths, SchemaError};
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::gvk::split_api_version;
use kubewright_apimachinery::object::Fields as _;
use kubewright_cel::rules::RuleSet;
use kubewright_structured_merge::{self as apply, ConvertError, Structural, Versions};
use serde_json::Value;

use crate::conversion::Converter;
use crate::stack::on_large_stack;
use crate::storage::Revision;

/// A kind that users defined, in one state of its definition.
#[derive(Debug)]
pub(crate) struct Custom {
    /// Names, versions and columns.
    pub(crate) definition: Arc<crd::Definition>,
    /// How its objects are read and checked.
    pub(crate) rules: Arc<custom::Definition>,
    /// The last revision of the definition at which this was its state.
    revision: AtomicU64,
    compiled: Arc<BTreeMap<String, Compiled>>,
    converter: Option<Arc<Converter>>,
    /// The revision at which another state took the place of this one, or the definition went; none, as zero,
    /// before that. Shared with states that differ in nothing that a watch can see.
    retired: Arc<AtomicU64>,
}

/// What is compiled when it is first needed.
#[derive(Debug, Default)]
struct Compiled {
    rules: OnceLock<RuleSet>,
    structure: OnceLock<Structural>,
}

/// What validation found.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) errors: ErrorList,
    pub(crate) warnings: Vec<String>,
}

impl Custom {
    pub(crate) fn compile(object: &Value, revision: Revision) -> Result<Self, SchemaError> {
        let rules = custom::Definition::compile(object)?;
        let definition = crd::Definition::from_object(object);
        let compiled = definition.versions.iter().map(|v| (v.name.clone(), Compiled::default())).collect();
        Ok(Self {
            converter: Converter::compile(&definition.conversion).map(Arc::new),
            definition: definition.into(),
            rules: rules.into(),
            revision: AtomicU64::new(revision),
            compiled: Arc::new(compiled),
            retired: Arc::default(),
        })
    }

    /// The same for another server: what becomes of the one is nothing to the other.
    pub(crate) fn fork(&self) -> Self {
        Self {
            definition: self.definition.clone(),
            rules: self.rules.clone(),
            revision: AtomicU64::new(self.revision.load(Ordering::Relaxed)),
            compiled: self.compiled.clone(),
            converter: self.converter.clone(),
            retired: Arc::default(),
        }
    }

    /// The webhook that converts objects, if there is one.
    pub(crate) fn converter(&self) -> Option<&Converter> {
        self.converter.as_deref()
    }

    /// The state that is to be served: the one before where nothing that matters changed.
    pub(crate) fn in_place_of(mut self, before: Option<&Arc<Self>>) -> Arc<Self> {
        let Some(before) = before else { return Arc::new(self) };
        if before.definition == self.definition {
            before.revision.store(self.revision.into_inner(), Ordering::Relaxed);
            return before.clone();
        }
        // Whoever watches objects of a definition that is being deleted sees them go.
        let ends =
            crd::Definition { terminating: self.definition.terminating, ..(*before.definition).clone() };
        if ends == *self.definition {
            self.retired = before.retired.clone();
        }
        Arc::new(self)
    }

    /// Nothing was written since this was compiled.
    pub(crate) fn is_at(&self, revision: Revision) -> bool {
        self.revision.load(Ordering::Relaxed) == revision
    }

    /// Who watches by the other state may go on.
    pub(crate) fn follows(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.retired, &other.retired)
    }

    /// The version in which objects are stored.
    pub(crate) fn storage_version(&self) -> &str {
        self.definition.storage_version().map_or("", |version| &version.name)
    }

    /// What a version looks like to discovery and tables.
    pub(crate) fn version(&self, name: &str) -> Option<&crd::Version> {
        self.definition.versions.iter().find(|version| version.name == name)
    }

    /// Where a version keeps what its scale shows.
    pub(crate) fn scale(&self, version: &str) -> Option<&ScalePaths> {
        self.rules.versions.get(version)?.scale.as_ref()
    }

    /// An object from storage in a version. One that cannot be read, since somebody took its version off the
    /// definition, is shown as it is.
    pub(crate) fn read(&self, stored: Value, version: &str) -> Value {
        custom::read(&self.rules, stored.clone(), version).unwrap_or_else(|error| {
            tracing::error!(%error, kind = self.rules.kind, "an object could not be read");
            stored
        })
    }

    /// An object of any version as it is stored.
    pub(crate) fn to_stored(&self, mut object: Value) -> Value {
        if let Err(error) = custom::convert(&self.rules, &mut object, self.storage_version()) {
            tracing::error!(%error, kind = self.rules.kind, "an object could not be converted");
        }
        object
    }

    /// Adds what the rules in CEL say to what was found already.
    pub(crate) fn check_rules(
        &self,
        version: &str,
        mut errors: ErrorList,
        new: &Value,
        old: Option<&Value>,
    ) -> Verdict {
        let Some(compiled) = self.compiled.get(version) else {
            return Verdict { errors, warnings: Vec::new() };
        };
        let compile = || on_large_stack(|| RuleSet::compile(self.schema(version)));
        let rules = compiled.rules.get_or_init(compile);
        if rules.is_empty() {
            return Verdict { errors, warnings: Vec::new() };
        }
        if let Some(blocked) = custom::blocks_rules(&errors) {
            errors.push(blocked);
            return Verdict { errors, warnings: Vec::new() };
        }
        let outcome = rules.validate(new, old);
        errors.extend(outcome.errors);
        Verdict { errors, warnings: outcome.warnings }
    }

    fn schema(&self, version: &str) -> &Value {
        self.version(version).map_or(&Value::Null, |version| &version.schema)
    }

    /// Nothing that is written after this revision is told to whoever watches this state.
    pub(crate) fn retire(&self, at: Revision) {
        self.retired.store(at, Ordering::Release);
    }

    pub(crate) fn retired(&self) -> Option<Revision> {
        Some(self.retired.load(Ordering::Acquire)).filter(|at| *at > 0)
    }
}

impl Versions for Custom {
    fn schema(&self, api_version: &str) -> Result<apply::Schema<'_>, ConvertError> {
        let (_, version) = split_api_version(api_version);
        let compiled = self.compiled.get(version).ok_or_else(|| unknown(api_version))?;
        let compile =
            || Structural::compile(Custom::schema(self, version), self.definition.preserve_unknown_fields);
        Ok(apply::Schema::custom(compiled.structure.get_or_init(compile)))
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let (_, version) = split_api_version(api_version);
        if let Some(converter) = self.converter()
            && object.str_at("apiVersion") != api_version
            && self.rules.versions.contains_key(version)
            && let Some(converted) = converter.memo.get(object, api_version)
        {
            return Ok(converted);
        }
        let mut object = object.clone();
        custom::convert(&self.rules, &mut object, version)
            .map_err(|error| ConvertError::Failed(error.to_string()))?;
        Ok(object)
    }
}

fn unknown(api_version: &str) -> ConvertError {
    ConvertError::Failed(format!("request to convert CR to an invalid group/version: {api_version}"))
}
