//! The running binary, to detect whether a new build is identical.
//!
//! The file is held open, so it can be compared after cargo replaced it. A file that was overwritten in place
//! counts as different.

use std::fs::{File, Metadata};
use std::io::{self, Seek as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    file: File,
    /// Identity of the file and the time of its last change.
    version: Version,
}

type Version = (u64, u64, u64, i64, i64);

impl Program {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let version = version(&file.metadata()?);
        Ok(Self { path: path.to_owned(), file, version })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether another binary has the same content.
    pub(crate) fn is(&self, other: &Path) -> io::Result<bool> {
        let mut other = File::open(other)?;
        let (ours, theirs) = (version(&self.file.metadata()?), version(&other.metadata()?));
        if ours != self.version || ours.2 != theirs.2 {
            return Ok(false);
        }
        if ours == theirs {
            return Ok(true);
        }
        let mut file = &self.file;
        file.rewind()?;
        let (mut left, mut right) = (vec![0; CHUNK], vec![0; CHUNK]);
        loop {
            let (ours, theirs) = (fill(&mut file, &mut left)?, fill(&mut other, &mut right)?);
            if left[..ours] != right[..theirs] {
                return Ok(false);
            }
            if ours < CHUNK {
                return Ok(true);
            }
        }
    }
}

const CHUNK: usize = 1 << 20;

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut impl io::Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}

fn version(metadata: &Metadata) -> Version {
    (metadata.dev(), metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn binaries_are_compared_by_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("operator");
        let replace = |bytes: &[u8]| {
            let new = folder.path().join("new");
            fs::write(&new, bytes).unwrap();
            fs::rename(new, &path).unwrap();
        };
        let long = vec![7; CHUNK + 3];
        replace(&long);
        let program = Program::open(&path).unwrap();
        assert!(program.is(&path).unwrap());
        replace(&long);
        assert!(program.is(&path).unwrap());
        let mut other = long.clone();
        other[CHUNK + 2] = 8;
        replace(&other);
        assert!(!program.is(&path).unwrap());
        replace(&long[1..]);
        assert!(!program.is(&path).unwrap());
    }

    #[test]
    fn an_overwritten_binary_is_different() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("operator");
        fs::write(&path, "one").unwrap();
        let program = Program::open(&path).unwrap();
        fs::write(&path, "another").unwrap();
        assert!(!program.is(&path).unwrap());
    }
}
