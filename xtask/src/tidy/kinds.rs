//! Checks that the rules of a kind are in its folder of `kubewright-apis`, not in the registry and the endpoints.

use std::collections::BTreeSet;

use super::rust::Tokens;
use super::{Files, Violation};

const SERVER: &str = "crates/kubewright-apiserver/src/";
const FOLDERS: &[&str] = &["registry/", "endpoints/"];
/// The table of built-in resources; the third column is the kind.
const RESOURCES: &str = "crates/kubewright-apis/facts/resources.txt";
/// Files that implement an endpoint of single kinds. ADR 15 has the reasons.
const EXCEPTIONS: &[&str] = &[
    // The handlers of subresources, by kind, and the handlers themselves.
    "registry/resource.rs",
    "registry/subresources.rs",
    "registry/subresources/",
    // IPAddress objects follow from Services.
    "registry/service_ips.rs",
    // Reviews are computed.
    "endpoints/reviews.rs",
];

pub(super) fn check(files: &Files, violations: &mut Vec<Violation>) {
    let Some(resources) = files.text(RESOURCES) else { return };
    let rows = resources.lines().filter(|line| !line.starts_with('#'));
    let kinds: BTreeSet<&str> = rows.filter_map(|row| row.split_whitespace().nth(2)).collect();
    for (path, text) in files.written("rs") {
        let Some(file) = path.strip_prefix(SERVER) else { continue };
        let is_checked = FOLDERS.iter().any(|folder| file.starts_with(folder));
        if !is_checked || EXCEPTIONS.iter().any(|exception| file.starts_with(exception)) {
            continue;
        }
        let tokens = Tokens::of(text).unwrap_or_default().before_tests();
        violations.extend(tokens.texts().filter(|(text, _)| kinds.contains(text)).map(|(kind, line)| {
            Violation {
                path: path.to_owned(),
                line,
                what: format!("a rule of the kind {kind}"),
                fix: "add it to `RegistryRules` in the folder of the kind".into(),
            }
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str) -> Vec<usize> {
        let text = "//! \"Pod\"\nconst A: &str = \"Status\";\nconst B: &str = \"Pod\";\n";
        let resources = "# group/version plural kind\n/v1 pods Pod namespaced\n";
        let mut violations = Vec::new();
        check(&Files::planted(&[(RESOURCES, resources), (path, text)]), &mut violations);
        violations.into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn the_registry_and_the_endpoints_name_no_kinds() {
        assert_eq!(lines("crates/kubewright-apiserver/src/registry/delete.rs"), [3]);
        assert_eq!(lines("crates/kubewright-apiserver/src/endpoints/read.rs"), [3]);
        assert_eq!(lines("crates/kubewright-apiserver/src/registry/subresources/token.rs"), [0; 0]);
        assert_eq!(lines("crates/kubewright-apiserver/src/after_commit/gc.rs"), [0; 0]);
    }
}
