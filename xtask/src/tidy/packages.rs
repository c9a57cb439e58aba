//! Checks that every published crate has what a registry shows, and that the minimum Rust version is stated once.
//!
//! A crate without `publish = false` needs a description, a README, keywords and categories. README.md, the scaffold and
//! the workspace must name the same Rust version.

use toml::de::{DeTable, DeValue};

use super::manifests::Manifest;
use super::{Files, Violation, Workspace};

/// The limit of registries.
const MOST: usize = 5;

pub(super) fn check(workspace: &Workspace, files: &Files, violations: &mut Vec<Violation>) {
    for member in &workspace.members {
        let path = member.manifest();
        let manifest = Manifest::parse(files.text(&path).unwrap_or_default());
        let Some(package) = manifest.table(&["package"]) else { continue };
        if package.get("publish").is_some_and(|it| matches!(it.get_ref(), DeValue::Boolean(false))) {
            continue;
        }
        let line = manifest.package_line();
        let mut report =
            |what: String, fix: String| violations.push(Violation { path: path.clone(), line, what, fix });
        for field in ["description", "readme", "repository", "keywords", "categories"] {
            if !package.contains_key(field) {
                report(format!("a published crate has no `{field}`"), "add it, or `publish = false`".into());
            }
        }
        for field in ["keywords", "categories"] {
            let count = list(package, field);
            if count.is_some_and(|count| count == 0 || count > MOST) {
                report(format!("`{field}` has {} entries", count.unwrap_or(0)), format!("use 1 to {MOST}"));
            }
        }
        let readme = format!("{}/README.md", member.folder);
        let title = files.text(&readme).and_then(|text| text.lines().next());
        match title {
            None => report(format!("{readme} is missing"), "describe the crate in 10 to 30 lines".into()),
            Some(title) if title != format!("# {}", member.name) => {
                report(format!("{readme} begins with {title:?}"), format!("write `# {}`", member.name));
            }
            Some(_) => {}
        }
    }
    rust_version(files, violations);
}

fn list(package: &DeTable<'_>, field: &str) -> Option<usize> {
    match package.get(field)?.get_ref() {
        DeValue::Array(entries) => Some(entries.len()),
        _ => None,
    }
}

/// Other files state the Rust version of the workspace.
fn rust_version(files: &Files, violations: &mut Vec<Violation>) {
    let root = Manifest::parse(files.text("Cargo.toml").unwrap_or_default());
    let package = root.table(&["workspace", "package"]);
    let Some(DeValue::String(version)) =
        package.and_then(|it| it.get("rust-version")).map(toml::Spanned::get_ref)
    else {
        return;
    };
    let places = [
        ("README.md", "Rust ", format!("Rust {version} or newer")),
        (
            "crates/kubewright-cli/templates/Cargo.toml.j2",
            "rust-version = ",
            format!("rust-version = \"{version}\""),
        ),
        ("crates/kubewright-cli/templates/Dockerfile.j2", "rust:", format!("rust:{version}")),
    ];
    for (path, marker, expected) in places {
        let states = |line: &str| {
            let rest = line.split(marker).nth(1).unwrap_or_default();
            rest.trim_start_matches('"').starts_with(|c: char| c.is_ascii_digit())
        };
        let lines = files.text(path).unwrap_or_default().lines().enumerate();
        for (index, line) in lines.filter(|(_, line)| states(line) && !line.contains(&expected)) {
            violations.push(Violation {
                path: path.to_owned(),
                line: index + 1,
                what: format!("`{}` differs from the Rust version of the workspace", line.trim()),
                fix: format!("write `{expected}`"),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::workspace::Member;
    use super::*;

    fn violations(files: &[(&str, &str)]) -> Vec<String> {
        let member = Member {
            name: "shop".to_owned(),
            folder: "crates/shop".to_owned(),
            dependencies: Vec::new(),
            closure: std::collections::BTreeSet::default(),
        };
        let mut found = Vec::new();
        check(&Workspace { members: vec![member] }, &Files::planted(files), &mut found);
        found.iter().map(ToString::to_string).collect()
    }

    const WHOLE: &str = "[package]\nname = \"shop\"\ndescription = \"Sells\"\nreadme = \"README.md\"\n\
                         repository.workspace = true\nkeywords = [\"a\"]\ncategories = [\"b\"]\n";

    #[test]
    fn a_published_crate_needs_what_a_registry_shows() {
        let whole = [("crates/shop/Cargo.toml", WHOLE), ("crates/shop/README.md", "# shop\n")];
        assert!(violations(&whole).is_empty());
        assert!(violations(&[("crates/shop/Cargo.toml", "[package]\npublish = false\n")]).is_empty());
        insta::assert_snapshot!(violations(&[("crates/shop/Cargo.toml", "[package]\nkeywords = []\n")]).join("\n"), @r#"
        crates/shop/Cargo.toml:1: a published crate has no `description`; add it, or `publish = false`
        crates/shop/Cargo.toml:1: a published crate has no `readme`; add it, or `publish = false`
        crates/shop/Cargo.toml:1: a published crate has no `repository`; add it, or `publish = false`
        crates/shop/Cargo.toml:1: a published crate has no `categories`; add it, or `publish = false`
        crates/shop/Cargo.toml:1: `keywords` has 0 entries; use 1 to 5
        crates/shop/Cargo.toml:1: crates/shop/README.md is missing; describe the crate in 10 to 30 lines
        "#);
    }

    #[test]
    fn the_rust_version_is_the_same_everywhere() {
        let workspace = "[workspace.package]\nrust-version = \"1.95\"\n";
        let files = |readme: &'static str, template: &'static str| {
            violations(&[
                ("Cargo.toml", workspace),
                ("README.md", readme),
                ("crates/kubewright-cli/templates/Cargo.toml.j2", template),
                ("crates/shop/Cargo.toml", WHOLE),
                ("crates/shop/README.md", "# shop\n"),
            ])
        };
        assert!(files("for Rust:\nneeds Rust 1.95 or newer.\n", "rust-version = \"1.95\"\n").is_empty());
        insta::assert_snapshot!(files("needs Rust 1.90 or newer", "rust-version = \"1.94\"\n").join("\n"), @r#"
        README.md:1: `needs Rust 1.90 or newer` differs from the Rust version of the workspace; write `Rust 1.95 or newer`
        crates/kubewright-cli/templates/Cargo.toml.j2:1: `rust-version = "1.94"` differs from the Rust version of the workspace; write `rust-version = "1.95"`
        "#);
    }
}
