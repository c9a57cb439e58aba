//! Fixtures of webhooks: objects in a folder, and the expected responses of the API server.
//!
//! Every object is sent as a dry run, so that a folder can be checked any number of times and nothing is stored. All
//! mismatches are reported at once. With `UPDATE_FIXTURES=1` the expected files are written instead of compared.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};

use kube::api::DynamicObject;
use kubewright_manifests::yaml;
use kubewright_runtime::client::{self, FieldValidation};
use kubewright_runtime::{Gvk, Scope};
use serde_json::Value;

use crate::environment::Environment;
use crate::yaml::{FixtureError, load};

/// The variable that has expected files written.
const UPDATE: &str = "UPDATE_FIXTURES";
/// The end of the names of expected objects.
const EXPECTED: &str = ".expected.yaml";
/// Metadata that the API server sets.
const SET_BY_SERVER: [&str; 5] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"];

/// Fixtures that do not match, or that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FixturesError {
    /// The folder has no fixtures.
    #[error(
        "no fixtures in {}: add default/NAME.yaml, valid/NAME.yaml or invalid/NAME.yaml",
        folder.display()
    )]
    Empty {
        /// The folder.
        folder: PathBuf,
    },
    /// A file or folder that is not part of a fixture.
    #[error("{} is not part of a fixture: {why}", path.display())]
    Unexpected {
        /// The file or folder.
        path: PathBuf,
        /// What is expected there.
        why: &'static str,
    },
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// An expected file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is not an object.
    #[error(transparent)]
    Object(#[from] FixtureError),
    /// A file has several objects, or none.
    #[error("{} contains {count} objects; a fixture must be one object", path.display())]
    Count {
        /// The file.
        path: PathBuf,
        /// How many.
        count: usize,
    },
    /// The API server did not respond.
    #[error("no response from the API server for {}", path.display())]
    Call {
        /// The fixture.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<client::Error>,
    },
    /// Fixtures whose responses are not the expected ones.
    #[error(transparent)]
    Mismatch(#[from] FixtureMismatches),
}

/// All fixtures of a folder whose responses are not the expected ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixtureMismatches {
    folder: PathBuf,
    checked: usize,
    mismatches: Vec<FixtureMismatch>,
}

/// A fixture whose response is not the expected one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixtureMismatch {
    /// Path in the folder: `default/minimal.yaml`.
    pub fixture: String,
    /// What is wrong: one sentence.
    pub what: String,
    /// Expected lines with `-`, and those of the response with `+`.
    pub diff: Vec<String>,
}

impl FixtureMismatches {
    /// The fixtures that do not match.
    pub fn mismatches(&self) -> &[FixtureMismatch] {
        &self.mismatches
    }
}

impl std::error::Error for FixtureMismatches {}

impl fmt::Display for FixtureMismatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folder, checked, mismatches } = self;
        write!(f, "{} of {checked} fixtures in {} do not match:", mismatches.len(), folder.display())?;
        for FixtureMismatch { fixture, what, diff } in mismatches {
            write!(f, "\n{fixture}: {what}")?;
            for line in diff {
                write!(f, "\n  {line}")?;
            }
        }
        write!(f, "\nIf the responses are right, {UPDATE}=1 writes them to the expected files.")
    }
}

impl Environment {
    /// Checks the fixtures of a folder against the API server, webhooks included. Each object is sent as a dry run.
    ///
    /// | file | the API server |
    /// |---|---|
    /// | `default/NAME.yaml` | accepts it; the response equals `default/NAME.expected.yaml` |
    /// | `valid/NAME.yaml` | accepts it |
    /// | `invalid/NAME.yaml` | rejects it; the message equals `invalid/NAME.txt` |
    ///
    /// Metadata that the server sets is not compared, and neither is the namespace of an object that names none: it is
    /// sent to `default`, or to a new namespace on an existing cluster with webhooks. Unknown fields are rejected. The error names every fixture that does not match, with a diff.
    /// `UPDATE_FIXTURES=1` writes the expected files. A folder without fixtures is an error.
    ///
    /// A manager whose webhooks are tested must run, and its webhooks must be installed:
    ///
    /// ```no_run
    /// # async fn test() -> Result<(), Box<dyn std::error::Error>> {
    /// # let env = kubewright_envtest::Environment::start().await?;
    /// env.fixtures("tests/fixtures/webhooks/v1/order").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fixtures(&self, folder: impl AsRef<Path>) -> Result<(), FixturesError> {
        let update = std::env::var_os(UPDATE).is_some_and(|value| !value.is_empty() && value != "0");
        check(self, folder.as_ref(), update).await
    }
}

/// What is expected of a fixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Default,
    Valid,
    Invalid,
}

impl Sort {
    fn of(folder: &str) -> Option<Self> {
        Some(match folder {
            "default" => Self::Default,
            "valid" => Self::Valid,
            "invalid" => Self::Invalid,
            _ => return None,
        })
    }

    /// The expected file of a fixture, if it has one.
    fn expected(self, stem: &str) -> Option<String> {
        match self {
            Self::Default => Some(format!("{stem}{EXPECTED}")),
            Self::Valid => None,
            Self::Invalid => Some(format!("{stem}.txt")),
        }
    }
}

/// An object in a folder.
#[derive(Debug)]
struct Fixture {
    sort: Sort,
    /// Path in the folder.
    name: String,
    path: PathBuf,
    expected: Option<PathBuf>,
}

async fn check(env: &Environment, folder: &Path, update: bool) -> Result<(), FixturesError> {
    let fixtures = find(folder)?;
    let mut mismatches = Vec::new();
    for fixture in &fixtures {
        let mismatch = fixture.check(env, update).await?;
        mismatches.extend(mismatch.map(|(what, diff)| FixtureMismatch {
            fixture: fixture.name.clone(),
            what,
            diff,
        }));
    }
    if mismatches.is_empty() {
        return Ok(());
    }
    let (folder, checked) = (folder.to_owned(), fixtures.len());
    Err(FixtureMismatches { folder, checked, mismatches }.into())
}

/// All fixtures of a folder, in the order of their names.
fn find(folder: &Path) -> Result<Vec<Fixture>, FixturesError> {
    let mut found = Vec::new();
    for (name, path) in entries(folder)? {
        let Some(sort) = Sort::of(&name).filter(|_| path.is_dir()) else {
            return Err(FixturesError::Unexpected {
                path,
                why: "there are the folders default, valid and invalid",
            });
        };
        let files = entries(&path)?;
        let names: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let before = found.len();
        for (file, path) in &files {
            let input = file.strip_suffix(".yaml").filter(|_| !file.ends_with(EXPECTED));
            if let Some(stem) = input {
                let expected = sort.expected(stem).map(|name| path.with_file_name(name));
                found.push(Fixture { sort, name: format!("{name}/{file}"), path: path.clone(), expected });
                continue;
            }
            let stem = file.strip_suffix(EXPECTED).or_else(|| file.strip_suffix(".txt"));
            let is_expected = stem.is_some_and(|stem| {
                sort.expected(stem).as_deref() == Some(file.as_str())
                    && names.contains(format!("{stem}.yaml").as_str())
            });
            if !is_expected {
                return Err(FixturesError::Unexpected {
                    path: path.clone(),
                    why: "there are NAME.yaml, default/NAME.expected.yaml and invalid/NAME.txt for the same NAME",
                });
            }
        }
        if found.len() == before {
            return Err(FixturesError::Empty { folder: path });
        }
    }
    if found.is_empty() {
        return Err(FixturesError::Empty { folder: folder.to_owned() });
    }
    Ok(found)
}

/// What is in a folder, by name. Hidden files are skipped.
fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, FixturesError> {
    let failed = |source| FixturesError::Read { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

type Mismatch = (String, Vec<String>);

impl Fixture {
    async fn check(&self, env: &Environment, update: bool) -> Result<Option<Mismatch>, FixturesError> {
        let object = single(&self.path)?;
        let answer = match send(env, object).await {
            Ok(answer) => Ok(answer),
            Err(error) => match error.status() {
                Some(status) => Err(status.message.clone()),
                None => {
                    return Err(FixturesError::Call { path: self.path.clone(), source: Box::new(error) });
                }
            },
        };
        match (self.sort, answer) {
            (Sort::Valid, Ok(_)) => Ok(None),
            (Sort::Default, Ok(answer)) => self.compare_object(&answer, update),
            (Sort::Invalid, Err(message)) => self.compare_message(&message, update),
            (Sort::Invalid, Ok(_)) => Ok(Some(("the API server accepted it".to_owned(), Vec::new()))),
            (Sort::Default | Sort::Valid, Err(message)) => {
                let lines = message.lines().map(|line| format!("+ {line}")).collect();
                Ok(Some(("the API server rejected it".to_owned(), lines)))
            }
        }
    }

    fn compare_object(&self, answer: &Value, update: bool) -> Result<Option<Mismatch>, FixturesError> {
        let expected = match self.read_expected()? {
            // What cannot be read is written again.
            Some((path, _)) if update => single(&path).ok(),
            Some((path, _)) => Some(single(&path)?),
            None => None,
        };
        let expected = expected.map(|object| serde_json::to_value(object).unwrap_or_default());
        if expected.as_ref() == Some(answer) {
            return Ok(None);
        }
        if update {
            let text = yaml::document(answer);
            self.write_expected(text.trim_start_matches("---\n"))?;
            return Ok(None);
        }
        let Some(expected) = expected else { return Ok(Some(self.missing())) };
        let mut diff = Vec::new();
        differences(&expected, answer, "", &mut diff);
        Ok(Some((format!("the response differs from {}", self.expected_name()), diff)))
    }

    fn compare_message(&self, message: &str, update: bool) -> Result<Option<Mismatch>, FixturesError> {
        let expected = self.read_expected()?.map(|(_, text)| text);
        if expected.as_deref().map(str::trim_end) == Some(message.trim_end()) {
            return Ok(None);
        }
        if update {
            self.write_expected(&format!("{}\n", message.trim_end()))?;
            return Ok(None);
        }
        let Some(expected) = expected else { return Ok(Some(self.missing())) };
        let removed = expected.trim_end().lines().map(|line| format!("- {line}"));
        let added = message.trim_end().lines().map(|line| format!("+ {line}"));
        let what = format!("the message is not that of {}", self.expected_name());
        Ok(Some((what, removed.chain(added).collect())))
    }

    fn missing(&self) -> Mismatch {
        (format!("there is no {}; {UPDATE}=1 writes it", self.expected_name()), Vec::new())
    }

    /// The name of the expected file, beside the fixture.
    fn expected_name(&self) -> String {
        let name = self.expected.as_deref().and_then(Path::file_name).unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn read_expected(&self) -> Result<Option<(PathBuf, String)>, FixturesError> {
        let Some(path) = self.expected.clone() else { return Ok(None) };
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some((path, text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(FixturesError::Read { path, source }),
        }
    }

    fn write_expected(&self, text: &str) -> Result<(), FixturesError> {
        let Some(path) = &self.expected else { return Ok(()) };
        fs::write(path, text).map_err(|source| FixturesError::Write { path: path.clone(), source })
    }
}

/// The one object of a file.
fn single(path: &Path) -> Result<DynamicObject, FixturesError> {
    let mut objects = load(path)?;
    match (objects.len(), objects.pop()) {
        (1, Some(object)) => Ok(object),
        (count, _) => Err(FixturesError::Count { path: path.to_owned(), count }),
    }
}

/// The response to a dry run, without the fields that the server sets.
async fn send(env: &Environment, mut object: DynamicObject) -> Result<Value, client::Error> {
    let client = env.runtime_client();
    let types = object.types.clone().unwrap_or_default();
    let kind = client.kind(&Gvk::of(&types.api_version, &types.kind)).await?;
    let is_placed = kind.scope() == Scope::Namespaced && object.metadata.namespace.is_none();
    if is_placed {
        object.metadata.namespace = Some(env.fixtures_namespace().await?.to_owned());
    }
    let client = client.dry_run().field_validation(FieldValidation::Strict);
    let answer = client.create(&object).await?;
    let mut answer = serde_json::to_value(answer).unwrap_or_default();
    if let Some(metadata) = answer.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in SET_BY_SERVER {
            metadata.remove(field);
        }
        if is_placed {
            metadata.remove("namespace");
        }
    }
    Ok(answer)
}

/// Fields that differ: expected ones with `-`, those of the response with `+`.
fn differences(expected: &Value, answer: &Value, path: &str, lines: &mut Vec<String>) {
    match (expected, answer) {
        _ if expected == answer => {}
        (Value::Object(expected), Value::Object(answer)) => {
            let names: BTreeSet<&String> = expected.keys().chain(answer.keys()).collect();
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                one(expected.get(name), answer.get(name), &path, lines);
            }
        }
        (Value::Array(expected), Value::Array(answer)) => {
            for at in 0..expected.len().max(answer.len()) {
                let mut path = path.to_owned();
                let _ = write!(path, "[{at}]");
                one(expected.get(at), answer.get(at), &path, lines);
            }
        }
        _ => {
            lines.push(format!("- {path}: {expected}"));
            lines.push(format!("+ {path}: {answer}"));
        }
    }
}

fn one(expected: Option<&Value>, answer: Option<&Value>, path: &str, lines: &mut Vec<String>) {
    match (expected, answer) {
        (Some(expected), Some(answer)) => differences(expected, answer, path, lines),
        (Some(expected), None) => lines.push(format!("- {path}: {expected}")),
        (None, Some(answer)) => lines.push(format!("+ {path}: {answer}")),
        (None, None) => {}
    }
}

#[cfg(test)]
mod tests;
