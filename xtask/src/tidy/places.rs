//! Checks that no file contains paths or package hosts of the machine that it was written on.
//!
//! The forbidden names are concatenated from parts, so that this file does not violate its own rule.

use super::{Files, Violation};

/// Directories of a single machine.
const FOLDERS: &[&str] = &[
    concat!("/", "work", "/"),
    concat!("/", "root", "/"),
    concat!("/", "farm", "/"),
    concat!("/", "home", "/"),
    concat!("/", "Users", "/"),
];

/// Hosts of package registries and mirrors. They belong in the machine's configuration.
const HOSTS: &[&str] = &[
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("deb.", "debian.org"),
    concat!("security.", "debian.org"),
    concat!("snapshot.", "debian.org"),
    concat!("proxy.", "golang.org"),
    concat!("registry.", "npmjs.org"),
    concat!(".pkg", ".dev"),
];

pub(super) fn check(files: &Files, violations: &mut Vec<Violation>) {
    for (path, text) in files.texts() {
        for (number, line) in text.lines().enumerate() {
            let mut report = |what: String, fix: &str| {
                violations.push(Violation { path: path.to_owned(), line: number + 1, what, fix: fix.into() });
            };
            for folder in FOLDERS.iter().filter(|folder| names_folder(line, folder)) {
                report(format!("the machine-specific path `{folder}`"), "make it relative to the checkout");
            }
            for host in HOSTS.iter().filter(|host| line.contains(**host)) {
                report(format!("the registry host `{host}`"), "use the machine's configuration");
            }
        }
    }
}

/// Whether an absolute path in `line` starts with `folder`.
fn names_folder(line: &str, folder: &str) -> bool {
    let inside =
        |before: char| before.is_alphanumeric() || matches!(before, '_' | '-' | '.' | '~' | '}' | ')' | '*');
    line.match_indices(folder).any(|(at, _)| !line[..at].ends_with(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_paths_are_machine_specific() {
        for line in ["cd {}main", "\"{}x\"", "{}", "file://{}x", "(see {}x)"] {
            assert!(names_folder(&line.replace("{}", FOLDERS[0]), FOLDERS[0]), "{line}");
        }
        for line in ["a{}b", "..{}b", "https://example.com{}b", "${HOME}{}b"] {
            assert!(!names_folder(&line.replace("{}", FOLDERS[0]), FOLDERS[0]), "{line}");
        }
    }
}
