//! Every crate inherits from the workspace: one version, one edition, one set of lints, one place for versions.
//!
//! Owns the reading of a `Cargo.toml` with line numbers. What the values mean is cargo's business.

use toml::de::{DeTable, DeValue};

use super::{Files, Violation, Workspace};

/// The fields of `[package]` that stand in the workspace.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license"];

pub(super) fn check(workspace: &Workspace, files: &Files, violations: &mut Vec<Violation>) {
    for member in &workspace.members {
        let path = member.manifest();
        let manifest = Manifest::parse(files.text(&path).unwrap_or_default());
        let mut tell = |line, what, fix| violations.push(Violation { path: path.clone(), line, what, fix });
        for field in INHERITED {
            if !manifest.inherits("package", field) {
                let line = manifest.line(&["package", field]).unwrap_or(manifest.package_line());
                let what = format!("`{field}` does not come from the workspace");
                tell(line, what, format!("write `{field}.workspace = true`"));
            }
        }
        if manifest.table(&["lints"]).is_none_or(|lints| !is_true(lints, "workspace")) {
            let line = manifest.line(&["lints"]).unwrap_or(manifest.package_line());
            tell(
                line,
                "the lints do not come from the workspace".into(),
                "add `[lints] workspace = true`".into(),
            );
        }
        for dependency in &manifest.dependencies {
            let looks_up = dependency.for_tests && dependency.path_alone;
            if !dependency.inherits && !looks_up {
                tell(
                    dependency.line,
                    format!("`{}` does not come from the workspace", dependency.key),
                    format!(
                        "name it in the root's [workspace.dependencies] and write `{}.workspace = true`",
                        dependency.key
                    ),
                );
            }
        }
    }
}

/// A manifest with the lines of what it says.
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
    /// Reads what cargo has read before: a text that is not TOML is taken for an empty manifest.
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

    /// The line of a dependency by the name that the manifest gives it, or of `[package]` if it is not named.
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

    fn table(&self, path: &[&str]) -> Option<&DeTable<'a>> {
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
