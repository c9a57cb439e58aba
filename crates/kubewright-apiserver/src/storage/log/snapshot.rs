//! Snapshots: all live objects, and a final record with their number to detect truncation.

use std::io::{self, Write as _};

use super::folder::{Folder, Kind};
use super::frame::{self, Next, Reader};
use super::record::Record;
use super::state::State;
use super::{OpenError, Revision};

/// Maximum frame length, which bounds the memory of writer and reader.
const PIECE: usize = 1 << 20;

/// Writes a snapshot of `state`. After `Ok`, older files are obsolete.
pub(super) fn write(folder: &Folder, state: &State) -> io::Result<()> {
    folder.create(Kind::Snapshot, state.revision, |file| {
        let (mut records, mut length, mut buffer) = (Vec::new(), 0, Vec::new());
        for (resource, key, entry) in state.iter() {
            let (resource, key, json) = (resource.clone(), key.clone(), entry.json.clone());
            length += json.len();
            records.push(Record::Put { resource, key, revision: entry.revision, json });
            if length >= PIECE {
                frame::encode(&mut buffer, &records)?;
                file.write_all(&buffer)?;
                (records, length) = (Vec::new(), 0);
            }
        }
        records.push(Record::End { objects: state.objects() as u64 });
        frame::encode(&mut buffer, &records)?;
        file.write_all(&buffer)
    })?;
    Ok(())
}

/// Reads a complete snapshot; an incomplete one is an error.
pub(super) fn read(folder: &Folder, revision: Revision) -> Result<State, OpenError> {
    let mut reader = Reader::open(folder, Kind::Snapshot, revision)?;
    let mut objects = Vec::new();
    let mut counted = None;
    loop {
        match reader.next()? {
            Next::Records(_) if counted.is_some() => {
                return Err(reader.damaged("data follows the end record"));
            }
            Next::Records(mut records) => {
                if let Some(Record::End { objects }) = records.last() {
                    counted = Some(*objects);
                    records.pop();
                }
                objects.append(&mut records);
            }
            Next::Bad => return Err(reader.damaged("the checksum does not match")),
            Next::End => break,
        }
    }
    if counted != Some(objects.len() as u64) {
        return Err(reader.damaged("the end record or some objects are missing"));
    }
    Ok(State::from_snapshot(revision, objects))
}
