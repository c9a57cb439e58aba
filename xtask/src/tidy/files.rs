//! The files of a checkout that git tracks or would track.
//!
//! Ignored files are not included, so a link to one counts as dead.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

/// Files by path relative to the root, with `/`. The content is `None` for binary files.
#[derive(Debug, Default)]
pub struct Files(BTreeMap<String, Option<String>>);

impl Files {
    /// Reads the files below `root` that git lists. Without git, reads everything except build output.
    pub fn read(root: &Path) -> Result<Self> {
        let paths = match from_git(root) {
            Some(paths) => paths,
            None => from_disk(root)?,
        };
        let mut files = BTreeMap::new();
        for path in paths {
            let full = root.join(&path);
            // Git also lists deleted files and symlinks to directories.
            if full.is_file() {
                let bytes = fs::read(&full).with_context(|| format!("read {}", full.display()))?;
                files.insert(path, String::from_utf8(bytes).ok());
            }
        }
        Ok(Self(files))
    }

    /// Paths and texts of all text files.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// Paths and texts of files with this extension, without test data and templates.
    pub fn written(&self, extension: &str) -> impl Iterator<Item = (&str, &str)> {
        let generated = |part: &str| matches!(part, "testdata" | "templates");
        self.texts().filter(move |(path, _)| {
            Path::new(path).extension().is_some_and(|found| found == extension)
                && !path.split('/').any(generated)
        })
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.0.get(path)?.as_deref()
    }

    /// Whether a file or directory exists. The empty path is the root.
    pub fn has(&self, path: &str) -> bool {
        let below = format!("{path}/");
        path.is_empty()
            || self.0.contains_key(path)
            || self.0.range(below.clone()..).next().is_some_and(|(found, _)| found.starts_with(&below))
    }
}

fn from_git(root: &Path) -> Option<Vec<String>> {
    // A directory inside another checkout must not use that repository's list, which may ignore it.
    if !root.join(".git").exists() {
        return None;
    }
    let list = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
    let output = Command::new("git").args(list).current_dir(root).output().ok()?;
    let paths = output.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    output.status.success().then(|| paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
}

fn from_disk(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let full = root.join(&folder);
        for entry in fs::read_dir(&full).with_context(|| format!("list {}", full.display()))? {
            let entry = entry.with_context(|| format!("list {}", full.display()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type().with_context(|| format!("get the file type of {path}"))?;
            if !kind.is_dir() {
                found.push(path);
            } else if name != "target" && name != ".git" {
                folders.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
impl Files {
    /// In-memory files for tests.
    pub(crate) fn planted(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned()))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_exists_if_it_contains_a_file() {
        let files = Files::planted(&[("docs/adr/0001.md", ""), ("docs-old.md", "")]);
        assert!(files.has("docs") && files.has("docs/adr") && files.has("docs/adr/0001.md") && files.has(""));
        assert!(!files.has("doc") && !files.has("docs/adr/0001") && !files.has("docs-old"));
    }

    #[test]
    fn ignored_files_are_not_listed_and_untracked_files_are() {
        let checkout = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| fs::write(checkout.path().join(path), text).unwrap();
        write(".gitignore", "ignored.rs\n");
        write("ignored.rs", "");
        write("new.rs", "//! New.");
        let git = Command::new("git").args(["init", "--quiet"]).current_dir(checkout.path()).status();
        assert!(git.unwrap().success());
        let files = Files::read(checkout.path()).unwrap();
        assert_eq!(files.texts().map(|(path, _)| path).collect::<Vec<_>>(), [".gitignore", "new.rs"]);
    }

    #[test]
    fn without_git_all_files_but_build_output_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("target/debug")).unwrap();
        fs::create_dir_all(folder.path().join("src")).unwrap();
        fs::write(folder.path().join("target/debug/built.rs"), "").unwrap();
        fs::write(folder.path().join("src/lib.rs"), "").unwrap();
        fs::write(folder.path().join("logo.png"), [0xff, 0xfe]).unwrap();
        let files = Files::read(folder.path()).unwrap();
        assert_eq!(files.texts().map(|(path, _)| path).collect::<Vec<_>>(), ["src/lib.rs"]);
        assert!(files.has("logo.png"), "links to images are valid");
    }
}
