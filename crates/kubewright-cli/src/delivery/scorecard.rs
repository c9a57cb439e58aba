//! The scorecard: Operator SDK's checks of a bundle, run against an API server in this process.
//!
//! A test reads the bundle ([`contents`]) and, where it can, asks the API server whether it accepts the CRDs,
//! the custom resources and the objects of the bundle ([`server`]). Names, states and the JSON output are those
//! of `operator-sdk scorecard`.

mod checks;
mod contents;
mod server;
mod validation;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::Hint as _;

pub(crate) use contents::Contents;
pub(crate) use server::Server;

/// The API version of configuration and results.
const API_VERSION: &str = "scorecard.operatorframework.io/v1alpha3";

/// A test in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Test {
    #[serde(default)]
    pub(crate) image: String,
    #[serde(default)]
    pub(crate) entrypoint: Vec<String>,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

/// The state of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    #[default]
    Pass,
    Fail,
    /// The test could not run.
    Error,
}

/// The result of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) log: String,
    pub(crate) state: State,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) errors: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) suggestions: Vec<String>,
}

impl Outcome {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    fn fail(&mut self, error: impl Into<String>) {
        self.state = State::Fail;
        self.errors.push(error.into());
    }

    fn suggest(&mut self, suggestion: impl Into<String>) {
        let suggestion = suggestion.into();
        if !self.suggestions.contains(&suggestion) {
            self.suggestions.push(suggestion);
        }
    }
}

impl Test {
    /// The name of the test: the last word of the entry point.
    pub(crate) fn name(&self) -> &str {
        self.entrypoint.last().map(String::as_str).unwrap_or_default()
    }
}

/// Reads the tests of a configuration. Without one, all tests are selected.
pub(crate) fn tests(path: &Path, is_required: bool) -> Result<Vec<Test>> {
    #[derive(Deserialize)]
    struct Configuration {
        #[serde(default)]
        stages: Vec<Stage>,
    }
    #[derive(Deserialize)]
    struct Stage {
        #[serde(default)]
        tests: Vec<Test>,
    }
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_required => {
            let test = |(suite, name): &(&str, &str)| Test {
                entrypoint: vec!["scorecard-test".to_owned(), (*name).to_owned()],
                labels: BTreeMap::from([
                    ("suite".to_owned(), (*suite).to_owned()),
                    ("test".to_owned(), format!("{name}-test")),
                ]),
                ..Test::default()
            };
            return Ok(super::bundle::TESTS.iter().map(test).collect());
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let configuration: Configuration = serde_saphyr::from_str(&text)
        .with_context(|| format!("{} is not a scorecard configuration", path.display()))
        .hint("`kubewright bundle` generates tests/scorecard/config.yaml")?;
    Ok(configuration.stages.into_iter().flat_map(|stage| stage.tests).collect())
}

/// Runs a test.
pub(crate) async fn run(test: &Test, bundle: &Contents, server: &Server) -> Outcome {
    let mut outcome = Outcome::new(test.name());
    match test.name() {
        "basic-check-spec" => checks::spec(bundle, server, &mut outcome).await,
        "olm-bundle-validation" => validation::bundle(bundle, server, &mut outcome).await,
        "olm-crds-have-validation" => checks::crds_have_validation(bundle, server, &mut outcome).await,
        "olm-crds-have-resources" => checks::crds_have_resources(bundle, &mut outcome),
        "olm-spec-descriptors" => checks::spec_descriptors(bundle, &mut outcome),
        "olm-status-descriptors" => checks::status_descriptors(bundle, &mut outcome),
        other => {
            outcome.state = State::Error;
            let names: Vec<&str> = super::bundle::TESTS.iter().map(|(_, name)| *name).collect();
            outcome.errors.push(format!(
                "{other} needs its image {}; `operator-sdk scorecard` runs it in a cluster",
                test.image
            ));
            outcome
                .suggest(format!("select other tests with --selector; built-in tests: {}", names.join(", ")));
        }
    }
    outcome
}

/// The results as operator-sdk prints them with `--output json`.
pub(crate) fn json(results: &[(Test, Outcome)]) -> Value {
    let item = |(test, outcome): &(Test, Outcome)| {
        json!({
            "kind": "Test",
            "apiVersion": API_VERSION,
            "spec": test,
            "status": { "results": [outcome] },
        })
    };
    json!({
        "kind": "TestList",
        "apiVersion": API_VERSION,
        "items": results.iter().map(item).collect::<Vec<_>>(),
    })
}
