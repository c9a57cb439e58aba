//! Checks that only the registry of the API server commits to the storage, and that authorization does not write.
//!
//! The compiler ensures that a store has one write handle. This rule ensures that the wiring gives it to the registry.

use super::rust::Tokens;
use super::{Files, Violation};

const SERVER: &str = "crates/kubewright-apiserver/src/";
/// The type that commits.
const HANDLE: &str = "WriteHandle";
/// Files that may name it: the storage, the object store, and the wiring.
const HOLDERS: &[&str] = &["storage.rs", "storage/", "registry/store.rs", "server/stages.rs"];
/// The types that write objects.
const WRITERS: &[&str] = &["ObjectStore", "WritePath"];

pub(super) fn check(files: &Files, violations: &mut Vec<Violation>) {
    for (path, text) in files.written("rs") {
        let Some(file) = path.strip_prefix(SERVER) else { continue };
        let tokens = Tokens::of(text).unwrap_or_default().before_tests();
        let mut report = |word: &str, fix: &str| {
            violations.extend(tokens.find(&[word]).map(|line| Violation {
                path: path.to_owned(),
                line,
                what: format!("`{word}` is not available here"),
                fix: fix.into(),
            }));
        };
        if !HOLDERS.iter().any(|holder| file.starts_with(holder)) {
            report(HANDLE, "write through `registry::store::ObjectStore`");
        }
        if file == "authz.rs" || file.starts_with("authz/") {
            for writer in WRITERS {
                report(writer, "authorization only reads the store");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let mut violations = Vec::new();
        check(&Files::planted(&[(path, text)]), &mut violations);
        violations.into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn only_the_registry_and_the_wiring_name_the_write_handle() {
        let text = "//! X\nuse crate::storage::WriteHandle;\n";
        assert_eq!(lines("crates/kubewright-apiserver/src/after_commit/gc.rs", text), [2]);
        assert_eq!(lines("crates/kubewright-apiserver/src/registry/store.rs", text), [0; 0]);
        assert_eq!(lines("crates/kubewright-apiserver/src/storage/store.rs", text), [0; 0]);
    }

    #[test]
    fn authorization_does_not_name_the_types_that_write() {
        let text = "//! X\nuse crate::registry::store::ObjectStore;\n";
        assert_eq!(lines("crates/kubewright-apiserver/src/authz/rbac.rs", text), [2]);
        assert_eq!(lines("crates/kubewright-apiserver/src/after_commit/gc.rs", text), [0; 0]);
    }
}
