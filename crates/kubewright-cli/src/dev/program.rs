//! The program that runs, to tell whether another is the same.
//!
//! The file is held open, so that it can be compared after cargo has put another in its place. A file that was written
//! over instead is never the same.

use std::fs::{File, Metadata};
use std::io::{self, Seek as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    file: File,
    /// Which file it was, and when it was written.
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

    /// Whether another program has the same bytes.
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

/// Reads until the buffer is full or the file has ended.
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
    fn a_program_is_the_same_by_its_bytes() {
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
    fn a_program_that_was_written_over_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("operator");
        fs::write(&path, "one").unwrap();
        let program = Program::open(&path).unwrap();
        fs::write(&path, "another").unwrap();
        assert!(!program.is(&path).unwrap());
    }
}
