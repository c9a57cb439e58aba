//! Checks that the storage of the API server does not know what it stores.
//!
//! It has keys, revisions, bytes and the attributes that it was given. Field managers are the registry's.

use super::rust::Tokens;
use super::{Files, Violation};

const STORAGE: &str = "crates/kubewright-apiserver/src/storage";
const MERGE: &str = "kubewright_structured_merge";

pub(super) fn check(files: &Files, violations: &mut Vec<Violation>) {
    for (path, text) in files.written("rs") {
        let Some(rest) = path.strip_prefix(STORAGE) else { continue };
        if rest != ".rs" && !rest.starts_with('/') {
            continue;
        }
        violations.extend(Tokens::of(text).unwrap_or_default().find(&[MERGE]).map(|line| Violation {
            path: path.to_owned(),
            line,
            what: format!("`{MERGE}` in the storage"),
            fix: "encode the object in `registry::store`".into(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str) -> Vec<usize> {
        let text = "//! X\nuse kubewright_structured_merge::packed;\n";
        let mut violations = Vec::new();
        check(&Files::planted(&[(path, text)]), &mut violations);
        violations.into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn the_storage_does_not_name_structured_merge() {
        assert_eq!(lines("crates/kubewright-apiserver/src/storage.rs"), [2]);
        assert_eq!(lines("crates/kubewright-apiserver/src/storage/memory.rs"), [2]);
        assert_eq!(lines("crates/kubewright-apiserver/src/registry/store.rs"), [0; 0]);
    }
}
