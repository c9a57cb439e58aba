//! The scaffold as it was rendered into the project: the common ancestor of what the user changed and of what a later
//! kubewright renders. docs/adr/0009-scaffold-base.md says why it is kept in the project.
//!
//! Files that `kubewright manifests` generates and files that only the tool writes are not in it: they are not merged.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use kubewright_manifests::yaml;
use serde::{Deserialize, Serialize};

use super::Dependency;
use super::merge::merge;
use super::render::{Options, Rendered, Rendering};

/// Where it is, from the root of the project.
pub(crate) const PATH: &str = ".kubewright/scaffold.yaml";
const HEADER: &str = "\
# The scaffold as `kubewright` rendered it. `kubewright update` merges a newer scaffold with it.
# Commit this file, and do not edit it.
";

/// A rendered scaffold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Base {
    /// The version of kubewright that rendered it.
    pub(crate) kubewright: String,
    /// Files by the identity that they have in a [`Rendering`].
    pub(crate) files: BTreeMap<String, File>,
}

/// A rendered file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Base {
    /// What this version renders. `is_ours` tells whether a file is the scaffold's; a README that was there before is not.
    pub(crate) fn of(rendering: &Rendering, is_ours: impl Fn(&Rendered) -> bool) -> Self {
        // The text of the licence never changes.
        let is_merged = |file: &Rendered| !file.generated && !file.owned && file.path != "LICENSE";
        let ours = rendering.iter().filter(|(_, file)| is_merged(file) && is_ours(file));
        Self {
            kubewright: env!("CARGO_PKG_VERSION").to_owned(),
            files: ours.map(|(id, file)| (id.clone(), File::of(file))).collect(),
        }
    }

    /// A base of a project that keeps none: its Cargo.toml alone, which has the [`Options`].
    pub(crate) fn adopted(manifest: Option<String>) -> Self {
        let file =
            manifest.map(|text| ("Cargo.toml".to_owned(), File { path: "Cargo.toml".to_owned(), text }));
        Self { kubewright: String::new(), files: file.into_iter().collect() }
    }

    /// Reads the text of the file.
    pub(crate) fn read(text: &str) -> Result<Self> {
        serde_saphyr::from_str(text)
            .with_context(|| format!("{PATH} is broken; restore it from version control"))
    }

    /// The text of the file.
    pub(crate) fn to_text(&self) -> String {
        let value = serde_json::to_value(self).expect("a scaffold is data");
        format!("{HEADER}{}", yaml::document(&value).trim_start_matches("---\n"))
    }

    /// The scaffold after a command that changed the project. A kubewright that is newer than the base renders other
    /// texts; only the difference that the command makes is applied.
    pub(crate) fn follow(&self, before: &Rendering, after: &Rendering) -> Self {
        let mut base = self.clone();
        base.files.retain(|id, _| after.contains_key(id) || !before.contains_key(id));
        for (id, new) in after.iter().filter(|(_, file)| !file.generated && !file.owned) {
            match (before.get(id), base.files.get_mut(id)) {
                (Some(old), Some(known)) => {
                    known.text =
                        merge(&old.text, &known.text, &new.text).unwrap_or_else(|_| new.text.clone());
                    if old.path != new.path {
                        known.path.clone_from(&new.path);
                    }
                }
                (None, _) => _ = base.files.insert(id.clone(), File::of(new)),
                (Some(_), None) => {}
            }
        }
        base
    }

    /// What the project was told once and PROJECT does not record, as its Cargo.toml was rendered.
    pub(crate) fn options(&self) -> Options {
        let manifest = self.files.get("Cargo.toml").map(|file| file.text.as_str()).unwrap_or_default();
        let line = manifest.lines().find_map(|line| line.strip_prefix("kubewright = ")).unwrap_or_default();
        let quoted = |key: &str| {
            let value = line.strip_prefix(&format!("{{ {key} = "))?.split(" }").next()?;
            serde_json::from_str::<String>(value).ok()
        };
        let path = quoted("path").and_then(|path| Some(path.strip_suffix("/crates/kubewright")?.to_owned()));
        let dependency = path.map(Dependency::Path).or_else(|| quoted("git").map(Dependency::Git));
        Options {
            dependency: dependency.unwrap_or_default(),
            standalone: manifest.lines().any(|line| line == "[workspace]"),
        }
    }

    /// The file of the scaffold in a rendering.
    pub(crate) fn rendered(&self) -> Rendered {
        Rendered { path: PATH.to_owned(), text: self.to_text(), owned: true, ..Rendered::default() }
    }
}

impl File {
    fn of(file: &Rendered) -> Self {
        Self { path: file.path.clone(), text: file.text.clone() }
    }
}
