//! The state directory of a project's cluster, under the target directory.
//!
//! It is locked: a second loop on the same directory fails before it changes anything.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};

use crate::error::Hint as _;

/// Marker file: the samples were applied to this cluster.
const SAMPLED: &str = "samples-applied";
const LOCK: &str = "lock";

#[derive(Debug)]
pub(crate) struct StateDir {
    path: PathBuf,
    /// Holds the lock while open.
    lock: File,
}

impl StateDir {
    /// Opens the state directory of a project; with `fresh`, without old state.
    pub(crate) fn open(target: &Path, project: &str, fresh: bool) -> Result<Self> {
        let path = path(target, project);
        let unusable = || format!("cannot use the directory {}", path.display());
        let advice = "check permissions and free disk space, or set CARGO_TARGET_DIR to another directory";
        fs::create_dir_all(&path).with_context(unusable).hint(advice)?;
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join(LOCK))
            .with_context(unusable)
            .hint(advice)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = lock.read_to_string(&mut holder);
                return Err(anyhow!(
                    "another `kubewright dev` (process {}) uses {}",
                    holder.trim(),
                    path.display()
                ))
                .hint("stop it first, or set CARGO_TARGET_DIR to another directory");
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(unusable).hint(advice),
        }
        let folder = Self { path, lock };
        folder
            .prepare(fresh)
            .with_context(|| format!("cannot use the directory {}", folder.path.display()))
            .hint(advice)?;
        Ok(folder)
    }

    /// Writes the process ID, and clears the directory if `fresh`.
    fn prepare(&self, fresh: bool) -> std::io::Result<()> {
        let mut lock = &self.lock;
        lock.set_len(0)?;
        lock.rewind()?;
        write!(lock, "{}", std::process::id())?;
        if fresh {
            remove(fs::remove_dir_all(self.objects()))?;
            remove(fs::remove_file(self.path.join(SAMPLED)))?;
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The API server's data directory.
    pub(crate) fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path.join("kubeconfig")
    }

    /// Whether the samples were applied to this cluster.
    pub(crate) fn is_sampled(&self) -> bool {
        self.path.join(SAMPLED).exists()
    }

    /// Records that the samples were applied.
    pub(crate) fn sampled(&self) -> Result<()> {
        let path = self.path.join(SAMPLED);
        File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(())
    }
}

/// The state directory of a project.
pub(crate) fn path(target: &Path, project: &str) -> PathBuf {
    target.join("kubewright/dev").join(project)
}

/// Ignores files that do not exist.
fn remove(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_directory_is_locked() {
        let target = tempfile::tempdir().unwrap();
        let held = StateDir::open(target.path(), "shop", false).unwrap();
        let refused = StateDir::open(target.path(), "shop", true).unwrap_err().to_string();
        let expected = format!(
            "another `kubewright dev` (process {}) uses {}",
            std::process::id(),
            target.path().join("kubewright/dev/shop").display()
        );
        assert_eq!(refused, expected);
        drop(held);
        StateDir::open(target.path(), "shop", false).unwrap();
    }

    #[test]
    fn fresh_removes_the_state_of_the_last_run() {
        let target = tempfile::tempdir().unwrap();
        let folder = StateDir::open(target.path(), "shop", false).unwrap();
        fs::create_dir(folder.objects()).unwrap();
        folder.sampled().unwrap();
        drop(folder);
        assert!(StateDir::open(target.path(), "shop", false).unwrap().is_sampled());
        let fresh = StateDir::open(target.path(), "shop", true).unwrap();
        assert!(!fresh.is_sampled() && !fresh.objects().exists());
    }
}
