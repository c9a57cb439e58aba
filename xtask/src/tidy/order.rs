//! Forbids `tokio::sync::watch` in the API server and the runtime.
//!
//! It wakes its receivers in random order, and tests with a fixed seed compare whole traces. Tests may use
//! it.

use super::rust::Tokens;
use super::{Files, Violation};

/// Crates that run in seeded tests.
const ORDERED: &[&str] = &[
    "kubewright-apiserver",
    "kubewright-runtime",
    "kubewright-cluster",
    "kubewright-envtest",
    "kubewright-sync",
];

pub(super) fn check(files: &Files, violations: &mut Vec<Violation>) {
    let is_ordered = |path: &str| ORDERED.iter().any(|name| path.starts_with(&format!("crates/{name}/src/")));
    for (path, text) in files.written("rs").filter(|(path, _)| is_ordered(path)) {
        let tokens = Tokens::of(text).unwrap_or_default().before_tests();
        let watches = tokens.paths_below("sync").filter(|(module, _)| *module == "watch");
        violations.extend(watches.map(|(_, line)| Violation {
            path: path.to_owned(),
            line,
            what: "`tokio::sync::watch` wakes its receivers in random order".into(),
            fix: "use `kubewright_sync::ordered_watch`".into(),
        }));
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
    fn tokio_watch_is_found_in_every_form_of_path() {
        let text = "//! X\nuse tokio::sync::watch;\nuse tokio::sync::{mpsc, watch::Sender};\n\
                    fn a(_: tokio::sync::watch::Receiver<u8>) {}\nuse std::sync::Arc;\nuse crate::watch;\n";
        assert_eq!(lines("crates/kubewright-runtime/src/a.rs", text), [2, 3, 4]);
    }

    #[test]
    fn tests_and_other_crates_may_use_it() {
        let text = "//! X\nuse tokio::sync::watch;\n";
        assert_eq!(lines("crates/kubewright-cli/src/a.rs", text), [0; 0]);
        assert_eq!(lines("crates/kubewright-runtime/tests/it/a.rs", text), [0; 0]);
    }
}
