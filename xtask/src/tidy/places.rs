//! No file names the machine that it was written on.
//!
//! Owns the lists of folders and hosts. They are put together from pieces, so that this file does not break
//! its own rule.

use super::{Files, Violation};

/// Folders that exist on one machine only.
const FOLDERS: &[&str] = &[
    concat!("/", "work", "/"),
    concat!("/", "root", "/"),
    concat!("/", "farm", "/"),
    concat!("/", "home", "/"),
    concat!("/", "Users", "/"),
];

/// Hosts of package registries and their mirrors. Which one to use is the machine's own setting.
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
            let mut tell = |what: String, fix: &str| {
                violations.push(Violation { path: path.to_owned(), line: number + 1, what, fix: fix.into() });
            };
            for folder in FOLDERS.iter().filter(|folder| names_folder(line, folder)) {
                tell(format!("a path of one machine, `{folder}`"), "write it relative to the checkout");
            }
            for host in HOSTS.iter().filter(|host| line.contains(**host)) {
                tell(format!("the registry host `{host}`"), "use what the machine is set up with");
            }
        }
    }
}

/// Whether `folder` begins a path in `line`, rather than lying inside a longer one.
fn names_folder(line: &str, folder: &str) -> bool {
    let inside =
        |before: char| before.is_alphanumeric() || matches!(before, '_' | '-' | '.' | '~' | '}' | ')' | '*');
    line.match_indices(folder).any(|(at, _)| !line[..at].ends_with(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_from_the_root_names_a_machine() {
        for line in ["cd {}main", "\"{}x\"", "{}", "file://{}x", "(see {}x)"] {
            assert!(names_folder(&line.replace("{}", FOLDERS[0]), FOLDERS[0]), "{line}");
        }
        for line in ["a{}b", "..{}b", "https://example.com{}b", "${HOME}{}b"] {
            assert!(!names_folder(&line.replace("{}", FOLDERS[0]), FOLDERS[0]), "{line}");
        }
    }
}
