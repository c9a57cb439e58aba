//! The lock of a project: one command at a time reads and changes its files.
//!
//! The lock is on the directory itself, so no file is left behind. It ends with the process.

use std::fs::{self, File, TryLockError};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::writes::is_staged;
use crate::ui::Ui;

/// Directories without files of the scaffold.
const SKIPPED: [&str; 3] = [".git", "node_modules", "target"];

/// The root directory of a project, locked.
#[derive(Debug)]
pub(crate) struct LockedRoot {
    path: PathBuf,
    _lock: File,
}

impl LockedRoot {
    /// Locks a project. Waits for another command that holds the lock, and removes the staged files of an
    /// interrupted one.
    pub(crate) fn lock(path: &Path, ui: &Ui) -> Result<Self> {
        let locked = Self::wait(path, || {
            ui.note(&format!("waiting for another kubewright command in {}", path.display()));
        })?;
        remove_staged(path);
        Ok(locked)
    }

    /// Locks a project without a note, and keeps staged files.
    pub(crate) fn lock_quietly(path: &Path) -> Result<Self> {
        Self::wait(path, || {})
    }

    /// Calls `waiting` if another command holds the lock.
    fn wait(path: &Path, waiting: impl FnOnce()) -> Result<Self> {
        let failed = || format!("cannot lock {}", path.display());
        let lock = File::open(path).with_context(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waiting();
                lock.lock().with_context(failed)?;
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
        }
        Ok(Self { path: path.to_owned(), _lock: lock })
    }
}

impl Deref for LockedRoot {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

/// Removes staged files. Errors are ignored: a staged file is harmless.
fn remove_staged(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) => {
                remove_staged(&path);
            }
            Ok(kind) if kind.is_file() && is_staged(&name) => {
                let _ = fs::remove_file(path);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ColorChoice;

    use crate::ui::Verbosity;

    #[test]
    fn staged_files_of_an_interrupted_command_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        fs::create_dir(&config).unwrap();
        for name in [".PROJECT.kubewright", "PROJECT", "config/.role.yaml.kubewright", ".kubewright"] {
            fs::write(folder.path().join(name), "text").unwrap();
        }
        drop(LockedRoot::lock(folder.path(), &Ui::new(ColorChoice::Never, Verbosity::Quiet)).unwrap());
        assert!(folder.path().join("PROJECT").exists());
        assert!(folder.path().join(".kubewright").exists());
        assert!(!folder.path().join(".PROJECT.kubewright").exists());
        assert!(!config.join(".role.yaml.kubewright").exists());
    }
}
