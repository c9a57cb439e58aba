//! Checks that every crate inherits package fields, lints and dependency versions from the workspace.
//!
//! Parses `Cargo.toml` with line numbers. cargo itself validates the values.

use toml::de::{DeTable, DeValue};

use super::{Files, Violation, Workspace};

/// Fields of `[package]` that must be inherited.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license"];

pub(super) fn check(workspace: &Workspace, files: &Files, violations: &mut Vec<Violation>) {
    for member in &workspace.members {
        let path = member.manifest();
        let manifest = Manifest::parse(files.text(&path).unwrap_or_default());
        let mut report = |line, what, fix| violations.push(Violation { path: path.clone(), line, what, fix });
        for field in INHERITED {
            if !manifest.inherits("package", field) {
                let line = manifest.line(&["package", field]).unwrap_or(manifest.package_line());
                let what = format!("`{field}` is not inherited from the workspace");
                report(line, what, format!("write `{field}.workspace = true`"));
            }
        }
        if manifest.table(&["lints"]).is_none_or(|lints| !is_true(lints, "workspace")) {
            let line = manifest.line(&["lints"]).unwrap_or(manifest.package_line());
            report(
                line,
                "the lints are not inherited from the workspace".into(),
                "add `[lints] workspace = true`".into(),
            );
        }
        for dependency in &manifest.dependencies {
            let looks_up = dependency.for_tests && dependency.path_alone;
            if !dependency.inherits && !looks_up {
                report(
                    dependency.line,
                    format!("`{}` is not inherited from the workspace", dependency.key),
                    format!(
                        "add it to [workspace.dependencies] of the root and write `{}.workspace = true`",
                        dependency.key
                    ),
                );
            }
        }
    }
}

/// A manifest with line numbers.
pub(super) struct Manifest<'a> {
    text: &'a str,
    root: DeTable<'a>,
    dependencies: Vec<Entry>,
}

struct Entry {
    key: String,
    line: usize,
    for_tests: bool,
    inherits: bool,
    path_alone: bool,
}

impl<'a> Manifest<'a> {
    /// Parses a manifest. Invalid TOML gives an empty one, because cargo has already reported it.
    pub(super) fn parse(text: &'a str) -> Self {
        let root = DeTable::parse(text).map(toml::Spanned::into_inner).unwrap_or_default();
        let mut manifest = Self { text, root, dependencies: Vec::new() };
        let mut entries = manifest.entries(&manifest.root);
        for (_, platform) in manifest.table(&["target"]).into_iter().flatten() {
            entries
                .extend(platform.get_ref().as_table().into_iter().flat_map(|table| manifest.entries(table)));
        }
        manifest.dependencies = entries;
        manifest
    }

    /// The line of `[package]`.
    pub(super) fn package_line(&self) -> usize {
        self.line(&["package"]).unwrap_or(1)
    }

    /// The line of a dependency by its key in the manifest, or of `[package]` if there is none.
    pub(super) fn dependency_line(&self, key: &str) -> usize {
        self.dependencies
            .iter()
            .find(|entry| entry.key == key)
            .map_or(self.package_line(), |entry| entry.line)
    }

    fn entries(&self, parent: &DeTable<'_>) -> Vec<Entry> {
        let mut entries = Vec::new();
        for name in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (key, value) in
                parent.get(name).and_then(|found| found.get_ref().as_table()).into_iter().flatten()
            {
                let table = value.get_ref().as_table();
                let has = |field| table.is_some_and(|table| table.contains_key(field));
                entries.push(Entry {
                    key: key.get_ref().to_string(),
                    line: self.line_at(key.span().start),
                    for_tests: name == "dev-dependencies",
                    inherits: table.is_some_and(|table| is_true(table, "workspace")),
                    path_alone: has("path") && !has("version"),
                });
            }
        }
        entries
    }

    fn inherits(&self, table: &str, field: &str) -> bool {
        self.table(&[table, field]).is_some_and(|value| is_true(value, "workspace"))
    }

    pub(super) fn table(&self, path: &[&str]) -> Option<&DeTable<'a>> {
        path.iter().try_fold(&self.root, |table, key| table.get(*key)?.get_ref().as_table())
    }

    fn line(&self, path: &[&str]) -> Option<usize> {
        let (last, parents) = path.split_last()?;
        let (key, _) = self.table(parents)?.get_key_value(*last)?;
        Some(self.line_at(key.span().start))
    }

    fn line_at(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }
}

fn is_true(table: &DeTable<'_>, key: &str) -> bool {
    table.get(key).is_some_and(|value| matches!(value.get_ref(), DeValue::Boolean(true)))
}
