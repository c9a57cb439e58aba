//! The folder in which a project's cluster is kept between runs, under the target folder of its build.
//!
//! Whoever holds a [`Folder`] is the only one: a second loop on the same folder is refused before it touches anything.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};

use crate::error::Hint as _;

/// Says by being there that the samples were applied to this cluster.
const SAMPLED: &str = "samples-applied";
const LOCK: &str = "lock";

#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Has the lock for as long as it is open.
    lock: File,
}

impl Folder {
    /// The folder of a project that builds into a target folder; a new one if it is to be fresh.
    pub(crate) fn open(target: &Path, project: &str, fresh: bool) -> Result<Self> {
        let path = target.join("kubewright/dev").join(project);
        let unusable = || format!("cannot use the folder {}", path.display());
        let advice =
            "make it writable and see whether its disk is full, or set CARGO_TARGET_DIR to another folder";
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
                    "another `kubewright dev` runs for this project (process {}), in {}",
                    holder.trim(),
                    path.display()
                ))
                .hint("end it first, or build into another folder with CARGO_TARGET_DIR");
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(unusable).hint(advice),
        }
        let folder = Self { path, lock };
        folder
            .prepare(fresh)
            .with_context(|| format!("cannot use the folder {}", folder.path.display()))
            .hint(advice)?;
        Ok(folder)
    }

    /// Says who holds it, and clears it where that is wanted.
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

    /// Where the API server keeps its objects.
    pub(crate) fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path.join("kubeconfig")
    }

    /// Whether the samples have been applied to this cluster.
    pub(crate) fn is_sampled(&self) -> bool {
        self.path.join(SAMPLED).exists()
    }

    /// Remembers that they have.
    pub(crate) fn sampled(&self) -> Result<()> {
        let path = self.path.join(SAMPLED);
        File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(())
    }
}

/// What was not there is gone.
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
    fn a_folder_is_held_by_one_at_a_time() {
        let target = tempfile::tempdir().unwrap();
        let held = Folder::open(target.path(), "shop", false).unwrap();
        let refused = Folder::open(target.path(), "shop", true).unwrap_err().to_string();
        let expected = format!(
            "another `kubewright dev` runs for this project (process {}), in {}",
            std::process::id(),
            target.path().join("kubewright/dev/shop").display()
        );
        assert_eq!(refused, expected);
        drop(held);
        Folder::open(target.path(), "shop", false).unwrap();
    }

    #[test]
    fn a_fresh_one_has_nothing_of_the_last_run() {
        let target = tempfile::tempdir().unwrap();
        let folder = Folder::open(target.path(), "shop", false).unwrap();
        fs::create_dir(folder.objects()).unwrap();
        folder.sampled().unwrap();
        drop(folder);
        assert!(Folder::open(target.path(), "shop", false).unwrap().is_sampled());
        let fresh = Folder::open(target.path(), "shop", true).unwrap();
        assert!(!fresh.is_sampled() && !fresh.objects().exists());
    }
}
