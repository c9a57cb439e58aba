//! Writes several files atomically.
//!
//! Each text is first staged beside its target, where disk errors surface. Only when all are staged are they
//! renamed into place. Readers see the old or the new text.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};

use crate::error::Hint as _;

/// The suffix of staged files.
const SUFFIX: &str = ".kubewright";

/// Pending file changes until [`Writes::commit`]. Dropping it discards them.
#[derive(Debug)]
pub(crate) struct Writes {
    root: PathBuf,
    staged: Vec<Staged>,
    removed: Vec<PathBuf>,
    /// Directories created for staged files, outermost first.
    folders: Vec<PathBuf>,
    committed: bool,
}

#[derive(Debug)]
struct Staged {
    beside: PathBuf,
    place: PathBuf,
}

impl Writes {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            staged: Vec::new(),
            removed: Vec::new(),
            folders: Vec::new(),
            committed: false,
        }
    }

    /// Stages the new text of a file.
    pub(crate) fn write(&mut self, path: &str, text: &str) -> Result<()> {
        let place = self.root.join(path);
        // Write through a symlink and keep the link.
        let place = fs::canonicalize(&place).unwrap_or(place);
        let beside = place.with_file_name(staged_name(place.file_name().unwrap_or_default()));
        self.stage(&place, &beside, text)
            .with_context(|| format!("cannot write {path}"))
            .hint("nothing was changed; check free disk space and permissions")
    }

    fn stage(&mut self, place: &Path, beside: &Path, text: &str) -> std::io::Result<()> {
        let missing: Vec<PathBuf> = place
            .ancestors()
            .skip(1)
            .take_while(|folder| folder.starts_with(&self.root) && !folder.exists())
            .map(Path::to_owned)
            .collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(&folder)?;
            self.folders.push(folder);
        }
        self.staged.push(Staged { beside: beside.to_owned(), place: place.to_owned() });
        let mut file = File::create(beside)?;
        file.write_all(text.as_bytes())?;
        match fs::metadata(place) {
            Ok(old) => {
                // A replacement must survive a power failure; a new file can be written again.
                file.sync_all()?;
                fs::set_permissions(beside, old.permissions())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Schedules the removal of a file.
    pub(crate) fn remove(&mut self, path: &str) {
        self.removed.push(self.root.join(path));
    }

    /// Applies all changes.
    pub(crate) fn commit(mut self) -> Result<()> {
        self.committed = true;
        for Staged { beside, place } in &self.staged {
            fs::rename(beside, place).with_context(|| format!("cannot replace {}", place.display()))?;
        }
        for path in &self.removed {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", path.display()));
                }
                _ => {}
            }
            // Remove directories that are empty now; others fail to be removed.
            let above = path.ancestors().skip(1).take_while(|folder| **folder != self.root);
            for folder in above {
                if fs::remove_dir(folder).is_err() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// The name under which a file is staged.
fn staged_name(name: &OsStr) -> OsString {
    let mut staged = OsString::from(".");
    staged.push(name);
    staged.push(SUFFIX);
    staged
}

/// Whether a file is staged, by its name.
pub(super) fn is_staged(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.len() > SUFFIX.len() && name.starts_with(b".") && name.ends_with(SUFFIX.as_bytes())
}

impl Drop for Writes {
    fn drop(&mut self) {
        for staged in &self.staged {
            // Already renamed files are no longer staged.
            let _ = fs::remove_file(&staged.beside);
        }
        if !self.committed {
            for folder in self.folders.iter().rev() {
                let _ = fs::remove_dir(folder);
            }
        }
    }
}

/// Writes or removes files: all or none.
pub(crate) fn write(root: &Path, steps: &[(String, Option<String>)]) -> Result<()> {
    let mut writes = Writes::new(root);
    for (path, text) in steps {
        match text {
            Some(text) => writes.write(path, text)?,
            None => writes.remove(path),
        }
    }
    writes.commit()
}

/// Reads a project file, if it exists.
pub(crate) fn read(root: &Path, path: &str) -> Result<Option<String>> {
    let place = root.join(path);
    // A FIFO would block.
    if fs::metadata(&place).is_ok_and(|found| !found.is_file()) {
        return Err(anyhow!("{path} is not a regular file")).hint("move or delete it");
    }
    match fs::read(place) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {path}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_changes_before_commit() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("PROJECT"), "old").unwrap();
        let mut writes = Writes::new(folder.path());
        writes.write("PROJECT", "new").unwrap();
        writes.write("config/rbac/role.yaml", "role").unwrap();
        writes.remove("PROJECT");
        drop(writes);
        assert_eq!(names(folder.path()), ["PROJECT"]);
        assert_eq!(fs::read_to_string(folder.path().join("PROJECT")).unwrap(), "old");
    }

    #[test]
    fn a_commit_leaves_no_staged_files() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("stale.yaml"), "old").unwrap();
        let mut writes = Writes::new(folder.path());
        writes.write("config/rbac/role.yaml", "role").unwrap();
        writes.remove("stale.yaml");
        writes.commit().unwrap();
        assert_eq!(names(folder.path()), ["config"]);
        assert_eq!(names(&folder.path().join("config/rbac")), ["role.yaml"]);
    }

    #[test]
    fn a_failed_write_leaves_all_files_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config"), "in the way").unwrap();
        let mut writes = Writes::new(folder.path());
        writes.write("Makefile", "all:").unwrap();
        let error = writes.write("config/rbac/role.yaml", "role").unwrap_err();
        assert_eq!(error.to_string(), "cannot write config/rbac/role.yaml");
        drop(writes);
        assert_eq!(names(folder.path()), ["config"]);
    }
}
