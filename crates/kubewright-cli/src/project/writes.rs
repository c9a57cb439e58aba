//! Files that are written all or not at all.
//!
//! Each text is first put beside the file that it is for, with everything that can fail because of the disk; only when
//! all of them are there, they take their places. Whoever reads a file sees the old text or the new one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::error::Hint as _;

/// Changes to the files of a project that wait for [`Writes::commit`]. Dropped before that, nothing has changed.
#[derive(Debug)]
pub(crate) struct Writes {
    root: PathBuf,
    staged: Vec<Staged>,
    removed: Vec<PathBuf>,
    /// Folders that were made for staged files, the outermost first.
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

    /// Puts the text of a file beside it.
    pub(crate) fn write(&mut self, path: &str, text: &str) -> Result<()> {
        let place = self.root.join(path);
        // Through a link the file is written, and the link stays.
        let place = fs::canonicalize(&place).unwrap_or(place);
        let mut name = OsString::from(".");
        name.push(place.file_name().unwrap_or_default());
        name.push(".kubewright");
        let beside = place.with_file_name(name);
        self.stage(&place, &beside, text)
            .with_context(|| format!("cannot write {path}"))
            .hint("nothing was changed; see whether the disk is full and the folder writable")
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
                // What replaces something must outlive a power cut; what is new can be made again, and waits for no disk.
                file.sync_all()?;
                fs::set_permissions(beside, old.permissions())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Has a file removed.
    pub(crate) fn remove(&mut self, path: &str) {
        self.removed.push(self.root.join(path));
    }

    /// Puts everything in its place.
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
            // A folder with nothing left in it goes too; one with something cannot.
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

impl Drop for Writes {
    fn drop(&mut self) {
        for staged in &self.staged {
            // What was put in its place is not beside it any more.
            let _ = fs::remove_file(&staged.beside);
        }
        if !self.committed {
            for folder in self.folders.iter().rev() {
                let _ = fs::remove_dir(folder);
            }
        }
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
    fn nothing_changes_before_the_commit() {
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
    fn a_commit_writes_and_removes_and_leaves_nothing_beside() {
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
    fn one_file_that_cannot_be_written_leaves_all_of_them_as_they_were() {
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
