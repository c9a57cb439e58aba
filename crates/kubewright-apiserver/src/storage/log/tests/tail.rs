//! The last frame of the log: damage is not mistaken for a torn write, so no confirmed commit is dropped.

use super::*;
use crate::storage::log::frame::HEADER;
use crate::storage::log::recovery::{Recovery, recover};

/// A log with two objects and one more frame, and the offset of that frame.
fn log(last: impl FnOnce(&Server)) -> (String, Vec<u8>, usize) {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path());
    server.put("pods", "a", 1);
    server.put("pods", "b", 2);
    server.sync().unwrap();
    let name = names(dir.path()).into_iter().find(|name| name.starts_with("log-")).unwrap();
    let path = dir.path().join(&name);
    let offset = fs::read(&path).unwrap().len();
    last(&server);
    server.sync().unwrap();
    server.crash(0);
    (name, fs::read(path).unwrap(), offset)
}

/// A log whose last frame has an object of about this size.
fn log_with_object(size: usize) -> (String, Vec<u8>, usize) {
    log(|server| {
        let object = encoder(json!({"metadata": {"uid": "large"}, "value": "x".repeat(size)}));
        let change = Change::Put { object, attributes: Attributes::default() };
        server.write(Write { resource: "pods".into(), key: "c".into(), expect: Expect::Absent, change });
    })
}

/// Last frames of different content and length: within a sector, and in two.
fn logs() -> Vec<(String, Vec<u8>, usize)> {
    let delete = |server: &Server| assert!(server.delete("pods", "a").is_some());
    vec![log(delete), log(|server| server.store.forget("pods")), log_with_object(0), log_with_object(400)]
}

fn folder_with(name: &str, bytes: &[u8]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(name), bytes).unwrap();
    dir
}

fn recovered(dir: &tempfile::TempDir) -> Result<Recovery, OpenError> {
    recover(&Folder::open(dir.path()).unwrap().0)
}

/// Expects that a directory with this log is rejected and not changed.
#[track_caller]
fn is_damaged(name: &str, bytes: &[u8], offset: usize) {
    let dir = folder_with(name, bytes);
    let error = recovered(&dir).err().expect("the directory is rejected");
    assert!(matches!(error, OpenError::DamagedEnd { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(&format!("{name} is damaged at byte {offset}: ")), "{text}");
    assert!(text.contains("restore the directory from a backup"), "{text}");
    assert!(
        text.ends_with(&format!("truncate the file to {offset} bytes to lose the last commits")),
        "{text}"
    );
    assert_eq!(fs::read(dir.path().join(name)).unwrap(), bytes, "nothing was changed");
}

/// Expects that everything from `offset` is truncated.
#[track_caller]
fn is_torn(name: &str, bytes: &[u8], offset: usize) {
    let dir = folder_with(name, bytes);
    let found = recovered(&dir).unwrap();
    assert_eq!((found.state.objects(), found.truncated), (2, (bytes.len() - offset) as u64));
    assert_eq!(fs::read(dir.path().join(name)).unwrap(), bytes[..offset]);
}

#[test]
fn a_changed_byte_in_the_last_frame_is_damage() {
    for (name, bytes, offset) in logs() {
        for at in offset..bytes.len() {
            for change in [0x01, 0x10, 0x80, 0xFF, bytes[at]] {
                let mut bytes = bytes.clone();
                bytes[at] ^= change;
                // The last change leaves a zero byte unchanged.
                if change != 0 {
                    is_damaged(&name, &bytes, offset);
                }
            }
        }
    }
}

#[test]
fn a_truncated_last_frame_is_a_torn_write() {
    for (name, bytes, offset) in logs() {
        // Truncated before the frame, which is the second fix that the error suggests.
        for length in offset..bytes.len() {
            is_torn(&name, &bytes[..length], offset);
        }
    }
}

#[test]
fn a_last_frame_of_zeros_is_a_torn_write() {
    for (name, bytes, offset) in logs() {
        for length in (offset + 1..bytes.len() + 600).step_by(13) {
            let mut bytes = bytes[..offset].to_vec();
            bytes.resize(length, 0);
            is_torn(&name, &bytes, offset);
        }
    }
}

#[test]
fn a_last_frame_with_an_unwritten_sector_is_a_torn_write() {
    let (name, bytes, offset) = log_with_object(1_500);
    let mut starts: Vec<usize> = (offset..bytes.len()).filter(|at| *at == offset || at % 512 == 0).collect();
    assert!(starts.len() > 3, "the frame spans several sectors");
    starts.push(bytes.len());
    for first in 0..starts.len() - 1 {
        for last in first + 1..starts.len() {
            let mut bytes = bytes.clone();
            bytes[starts[first]..starts[last]].fill(0);
            is_torn(&name, &bytes, offset);
        }
    }
}

#[test]
fn a_changed_byte_in_the_only_frame_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    Server::open(dir.path()).crash(0);
    let name = names(dir.path()).into_iter().find(|name| name.starts_with("log-")).unwrap();
    let bytes = fs::read(dir.path().join(&name)).unwrap();
    for at in HEADER..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x40;
        let error = open_error(folder_with(&name, &bytes).path());
        assert!(matches!(error, OpenError::DamagedEnd { offset, .. } if offset == HEADER as u64), "{error}");
    }
}

#[test]
fn a_full_disk_after_a_snapshot_damages_nothing() {
    for room in 0..40 {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::with(dir.path(), SHORT);
        let mut value = 0;
        // Each commit starts a log, or is the second one in it.
        for _ in 0..3 {
            value += 1;
            server.put("pods", "a", value);
            server.sync().unwrap();
            server.disk.fill_up(room);
            value += 1;
            server.put("pods", "b", value);
            let mut progress = server.log.progress.clone();
            wait(progress.wait_for(|progress| progress.obstacle().is_some())).unwrap();
            server.disk.recover();
            wait(server.log.recovered()).unwrap();
            server.sync().unwrap();
        }
        let objects = server.objects();
        server.crash(0);
        assert_eq!(Server::open(dir.path()).objects(), objects, "with room for {room} bytes");
    }
}
