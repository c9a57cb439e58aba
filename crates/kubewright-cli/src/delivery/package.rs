//! Package metadata from Cargo.toml, for charts and bundles.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow};
use serde::Deserialize;

use crate::error::Hint as _;
use crate::project::{Project, cargo, not_started};

/// The metadata of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: String,
    pub(crate) homepage: Option<String>,
    pub(crate) repository: Option<String>,
    pub(crate) documentation: Option<String>,
    pub(crate) keywords: Vec<String>,
    pub(crate) maintainers: Vec<Person>,
}

/// An author: `Ada <ada@example.com>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) name: String,
    pub(crate) email: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    packages: Vec<Described>,
}

#[derive(Deserialize)]
struct Described {
    name: String,
    version: String,
    manifest_path: std::path::PathBuf,
    description: Option<String>,
    homepage: Option<String>,
    repository: Option<String>,
    documentation: Option<String>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    authors: Vec<String>,
}

impl Package {
    /// Runs `cargo metadata`, which needs no network.
    pub(crate) fn read(project: &Project) -> Result<Self> {
        let output = Command::new(cargo())
            .current_dir(project.root())
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .stdin(Stdio::null())
            .output()
            .map_err(not_started)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(anyhow!(said))
                .with_context(|| format!("cargo cannot read the project in {}", project.root().display()))
                .hint("fix Cargo.toml");
        }
        let answer: Answer =
            serde_json::from_slice(&output.stdout).context("cannot read the output of cargo")?;
        let found = answer.packages.into_iter().find(|it| it.manifest_path.parent() == Some(project.root()));
        let found = found
            .with_context(|| format!("{} is a workspace, not a package", project.root().display()))
            .hint("pass the directory of the operator")?;
        Ok(Self {
            name: found.name,
            version: found.version,
            description: found.description.unwrap_or_else(|| "A Kubernetes operator".to_owned()),
            homepage: found.homepage,
            repository: found.repository,
            documentation: found.documentation,
            keywords: found.keywords,
            maintainers: found.authors.iter().map(|author| Person::parse(author)).collect(),
        })
    }
}

impl Person {
    fn parse(author: &str) -> Self {
        match author.split_once('<') {
            Some((name, email)) => Self {
                name: name.trim().to_owned(),
                email: Some(email.trim().trim_end_matches('>').to_owned()),
            },
            None => Self { name: author.trim().to_owned(), email: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authors_have_an_optional_address() {
        let ada = Person { name: "Ada Byron".into(), email: Some("ada@example.com".into()) };
        assert_eq!(Person::parse("Ada Byron <ada@example.com>"), ada);
        assert_eq!(Person::parse("Ada Byron"), Person { email: None, ..ada });
    }
}
