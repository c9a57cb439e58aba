//! Recovers the state from the files of a directory. Changes nothing unless all files can be read.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom};

use super::folder::{Files, Folder, Kind};
use super::frame::{Next, Reader, Tail};
use super::state::State;
use super::{OpenError, Revision, snapshot};

/// The recovered state, and where the log continues.
pub(super) struct Recovery {
    pub(super) state: State,
    /// The last log, positioned at its end.
    pub(super) log: File,
    /// The revision in its name.
    pub(super) start: Revision,
    /// Total length of the logs since the snapshot.
    pub(super) bytes: u64,
    /// Length of the torn frame that was truncated.
    pub(super) truncated: u64,
}

/// Reads the newest good snapshot and the logs after it, truncates a torn write, and removes obsolete files.
pub(super) fn recover(folder: &Folder) -> Result<Recovery, OpenError> {
    let files = folder.files().map_err(OpenError::io(folder.dir()))?;
    if files.logs.is_empty() && files.snapshots.is_empty() {
        folder.sweep().map_err(OpenError::io(folder.dir()))?;
        let path = folder.path(Kind::Log, 0);
        let log = folder.create(Kind::Log, 0, |_| Ok(())).map_err(OpenError::io(&path))?;
        return Ok(Recovery { state: State::new(), log, start: 0, bytes: 0, truncated: 0 });
    }

    let (mut state, damage) = newest_snapshot(folder, &files)?;
    let base = state.revision;
    let mut chain = Chain { start: base, end: 0, bytes: 0, truncated: 0 };
    // If a damaged snapshot was skipped, report that damage rather than the log missing after it.
    chain.follow(folder, &files, &mut state).map_err(|error| damage.unwrap_or(error))?;

    let path = folder.path(Kind::Log, chain.start);
    let mut log = OpenOptions::new().write(true).open(&path).map_err(OpenError::io(&path))?;
    if chain.truncated > 0 {
        tracing::warn!(
            path = %path.display(),
            offset = chain.end,
            bytes = chain.truncated,
            "truncating an incomplete write at the end of the log"
        );
        log.set_len(chain.end).and_then(|()| log.sync_all()).map_err(OpenError::io(&path))?;
    }
    log.seek(SeekFrom::Start(chain.end)).map_err(OpenError::io(&path))?;
    folder.sweep().and_then(|()| folder.prune(base)).map_err(OpenError::io(folder.dir()))?;
    Ok(Recovery { state, log, start: chain.start, bytes: chain.bytes, truncated: chain.truncated })
}

/// The initial state, and the error of the newest snapshot if it was skipped.
fn newest_snapshot(folder: &Folder, files: &Files) -> Result<(State, Option<OpenError>), OpenError> {
    let mut damage = None;
    for revision in files.snapshots.iter().rev() {
        match snapshot::read(folder, *revision) {
            Ok(state) => return Ok((state, damage)),
            Err(error @ OpenError::Damaged { .. }) => {
                let path = folder.path(Kind::Snapshot, *revision);
                tracing::warn!(%error, path = %path.display(), "skipping damaged snapshot");
                damage.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok((State::new(), damage))
}

/// The sequence of logs; each continues where the previous one ends.
struct Chain {
    start: Revision,
    end: u64,
    bytes: u64,
    truncated: u64,
}

impl Chain {
    fn follow(&mut self, folder: &Folder, files: &Files, state: &mut State) -> Result<(), OpenError> {
        let base = state.revision;
        let missing = |from| OpenError::Missing { path: folder.path(Kind::Log, from), from };
        if !files.logs.contains(&base) {
            return Err(missing(base));
        }
        let last = files.logs.last();
        for start in files.logs.iter().filter(|start| **start >= base) {
            if *start != state.revision {
                return Err(missing(state.revision));
            }
            let mut reader = Reader::open(folder, Kind::Log, *start)?;
            if replay(&mut reader, state)? {
                let tail = if Some(start) == last { reader.tail()? } else { Tail::Followed };
                match tail {
                    Tail::Torn => {}
                    Tail::Damaged(reason) => return Err(reader.damaged_end(reason)),
                    Tail::Followed => {
                        return Err(reader.damaged("the checksum does not match, and later frames exist"));
                    }
                }
            }
            self.start = *start;
            self.end = reader.offset();
            self.bytes += reader.offset();
            self.truncated = reader.length() - reader.offset();
        }
        Ok(())
    }
}

/// Applies the frames of a log. Returns whether it stopped at a bad frame.
fn replay(reader: &mut Reader, state: &mut State) -> Result<bool, OpenError> {
    loop {
        let offset = reader.offset();
        match reader.next()? {
            Next::End => return Ok(false),
            Next::Bad => return Ok(true),
            Next::Records(records) => {
                for record in records {
                    state.apply(record).map_err(|reason| reader.damaged_at(offset, reason))?;
                }
            }
        }
    }
}
