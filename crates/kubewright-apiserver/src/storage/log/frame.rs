//! Headers and frames, with their checksums. Independent of the meaning of records.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use super::OpenError;
use super::folder::{Folder, Kind};
use super::record::Record;
use crate::storage::Revision;

/// The format version that this release writes, and the newest that it reads.
const FORMAT: u32 = 1;

/// Length of a header.
pub(super) const HEADER: usize = 24;
const PREFIX: usize = 12;
/// The smallest unit that a disk writes.
const SECTOR: usize = 512;
/// More zeros than a frame has in a row.
const ZEROS: usize = 16;
const MARKER: [u8; 4] = [0xFF, b'k', b'w', 0xFE];

/// The header of a file.
pub(super) fn header(kind: Kind, revision: Revision) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(kind.magic());
    header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    header[12..20].copy_from_slice(&revision.to_le_bytes());
    let crc = crc32fast::hash(&header[..20]);
    header[20..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// Encodes these records as a frame, replacing the content of `out`.
pub(super) fn encode<'a>(out: &mut Vec<u8>, records: impl IntoIterator<Item = &'a Record>) -> io::Result<()> {
    out.clear();
    out.resize(PREFIX, 0);
    for record in records {
        record.encode(out);
    }
    let length = u32::try_from(out.len() - PREFIX)
        .map_err(|_| io::Error::new(io::ErrorKind::FileTooLarge, "more than 4 GiB to write at once"))?;
    let crc = checksum(length, &out[PREFIX..]);
    out[..4].copy_from_slice(&MARKER);
    out[4..8].copy_from_slice(&length.to_le_bytes());
    out[8..PREFIX].copy_from_slice(&crc.to_le_bytes());
    Ok(())
}

/// Reads a file frame by frame. Holds at most one frame.
pub(super) struct Reader {
    file: BufReader<File>,
    path: PathBuf,
    /// Offset of the next frame.
    offset: u64,
    length: u64,
}

/// The content at the reader's offset.
pub(super) enum Next {
    Records(Vec<Record>),
    End,
    /// An invalid or incomplete frame.
    Bad,
}

/// A bad frame at the end of a log.
pub(super) enum Tail {
    /// The write was not completed, so it was not confirmed.
    Torn,
    /// The frame was complete, and has changed since then.
    Damaged(&'static str),
    /// Good frames follow.
    Followed,
}

impl Reader {
    /// Opens a file and checks its header.
    pub(super) fn open(folder: &Folder, kind: Kind, revision: Revision) -> Result<Self, OpenError> {
        let path = folder.path(kind, revision);
        let file = File::open(&path).map_err(OpenError::io(&path))?;
        let length = file.metadata().map_err(OpenError::io(&path))?.len();
        let mut reader = Self { file: BufReader::new(file), path, offset: 0, length };
        if length < HEADER as u64 {
            return Err(reader.damaged("the header is truncated"));
        }
        let mut found = [0; HEADER];
        reader.file.read_exact(&mut found).map_err(OpenError::io(&reader.path))?;
        if found[..8] != *kind.magic() {
            return Err(reader.damaged("the file has a different header"));
        }
        // Check the version before the checksum: later formats may have a different header.
        let format = u32_at(&found, 8);
        if format > FORMAT {
            return Err(OpenError::Newer { path: reader.path, found: format, known: FORMAT });
        }
        if found != header(kind, revision) {
            return Err(reader.damaged("the header does not match its checksum or the file's name"));
        }
        reader.offset = HEADER as u64;
        Ok(reader)
    }

    /// Reads the next frame. If it is bad, `offset` stays at its start.
    pub(super) fn next(&mut self) -> Result<Next, OpenError> {
        let rest = self.length - self.offset;
        if rest == 0 {
            return Ok(Next::End);
        }
        if rest < PREFIX as u64 {
            return Ok(Next::Bad);
        }
        let mut prefix = [0; PREFIX];
        self.file.read_exact(&mut prefix).map_err(OpenError::io(&self.path))?;
        let length = u32_at(&prefix, 4);
        if prefix[..4] != MARKER || u64::from(length) > rest - PREFIX as u64 {
            return Ok(Next::Bad);
        }
        let mut payload = vec![0; length as usize];
        self.file.read_exact(&mut payload).map_err(OpenError::io(&self.path))?;
        if checksum(length, &payload) != u32_at(&prefix, 8) {
            return Ok(Next::Bad);
        }
        let (mut input, mut records) = (payload.as_slice(), Vec::new());
        while !input.is_empty() {
            let record = Record::decode(&mut input);
            records.push(record.ok_or_else(|| self.damaged("a record has an unknown format"))?);
        }
        self.offset += PREFIX as u64 + u64::from(length);
        Ok(Next::Records(records))
    }

    /// Classifies the bad frame at `offset`. See the [module](super) for the rules.
    pub(super) fn tail(&mut self) -> Result<Tail, OpenError> {
        let mut rest = Vec::new();
        self.file
            .seek(SeekFrom::Start(self.offset))
            .and_then(|_| self.file.read_to_end(&mut rest))
            .map_err(OpenError::io(&self.path))?;
        if has_good_frame(rest.get(1..).unwrap_or_default()) {
            return Ok(Tail::Followed);
        }
        let Some((prefix, payload)) = rest.split_first_chunk::<PREFIX>() else { return Ok(Tail::Torn) };
        let (length, crc) = (u32_at(prefix, 4), u32_at(prefix, 8));
        if u32::try_from(payload.len()).is_ok_and(|length| checksum(length, payload) == crc) {
            return Ok(Tail::Damaged("the last frame has a wrong marker or length"));
        }
        if has_unwritten_sector(self.offset, &rest) {
            return Ok(Tail::Torn);
        }
        if prefix[..4] != MARKER {
            return Ok(Tail::Damaged("the last frame has a wrong marker"));
        }
        if u64::from(length) > payload.len() as u64 {
            return Ok(Tail::Torn);
        }
        Ok(Tail::Damaged("the last frame is complete, but its checksum does not match"))
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn damaged(&self, reason: &'static str) -> OpenError {
        self.damaged_at(self.offset, reason)
    }

    /// Damage at the end of the log.
    pub(super) fn damaged_end(&self, reason: &'static str) -> OpenError {
        OpenError::DamagedEnd { path: self.path.clone(), offset: self.offset, reason }
    }

    pub(super) fn damaged_at(&self, offset: u64, reason: &'static str) -> OpenError {
        OpenError::Damaged { path: self.path.clone(), offset, reason }
    }
}

/// Searches for a good frame. The length of the bad frame before it may be wrong, so every marker is tried.
fn has_good_frame(bytes: &[u8]) -> bool {
    let mut starts = bytes.windows(MARKER.len()).enumerate().filter(|(_, window)| *window == MARKER);
    starts.any(|(start, _)| {
        let Some((prefix, payload)) = bytes[start..].split_first_chunk::<PREFIX>() else { return false };
        let length = u32_at(prefix, 4);
        payload.get(..length as usize).is_some_and(|payload| checksum(length, payload) == u32_at(prefix, 8))
    })
}

/// Whether the bytes at `offset` of the file include a sector that was never written. If the power fails, the file
/// system may have stored the new length of the file and not all of its content; the rest is zeros.
fn has_unwritten_sector(offset: u64, bytes: &[u8]) -> bool {
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    let in_sector = usize::try_from(offset % SECTOR as u64).unwrap_or_default();
    let (first, others) = bytes.split_at(bytes.len().min(SECTOR - in_sector));
    is_zero(bytes)
        || std::iter::once(first)
            .chain(others.chunks(SECTOR))
            .any(|part| part.len() >= ZEROS && is_zero(part))
}

fn checksum(length: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
