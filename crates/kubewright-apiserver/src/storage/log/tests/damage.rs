//! Truncated, corrupted, torn and missing files.

use super::*;
use crate::storage::log::recovery::{Recovery, recover};
use crate::storage::log::state::State;

const LOG: &str = "log-00000000000000000000";

/// The bytes of the only log after some commits, one per frame, and the objects after each commit.
fn history(end: impl FnOnce(Server)) -> (Vec<u8>, Vec<(usize, Vec<String>)>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(LOG);
    let server = Server::open(dir.path());
    let mut known = vec![(24, Vec::new())];
    let mut note = |server: &Server| {
        server.sync().unwrap();
        known.push((usize::try_from(fs::metadata(&path).unwrap().len()).unwrap(), server.objects()));
    };
    note(&server);
    server.put("pods", "a", 1);
    note(&server);
    server.put("pods", "b", 2);
    note(&server);
    server.delete("pods", "a");
    note(&server);
    server.store.forget("pods");
    note(&server);
    server.put("nodes", "n", 3);
    note(&server);
    end(server);
    (fs::read(path).unwrap(), known)
}

fn recover_from(files: &[(&str, &[u8])]) -> Result<Recovery, OpenError> {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    recover(&Folder::open(dir.path()).unwrap().0)
}

fn rows(found: &Recovery) -> Vec<String> {
    found.state.iter().map(|(resource, key, entry)| row(resource, key, entry.revision, &entry.json)).collect()
}

#[test]
fn a_log_cut_anywhere_holds_the_commits_before_the_cut() {
    let (bytes, known) = history(|server| server.crash(0));
    for cut in 0..=bytes.len() {
        let found = recover_from(&[(LOG, &bytes[..cut])]);
        let Some((end, objects)) = known.iter().rfind(|(end, _)| *end <= cut) else {
            // The header was synced before the file got its name, so this is damage and not a crash.
            let error = found.err().expect("the header is truncated").to_string();
            assert!(error.contains(LOG) && error.contains("the header is truncated"), "{error}");
            continue;
        };
        let found = found.unwrap();
        assert_eq!((&rows(&found), found.truncated), (objects, (cut - end) as u64), "cut at {cut}");
        assert_eq!(found.log.metadata().unwrap().len(), *end as u64, "the rest is truncated");
    }
}

#[test]
fn a_flipped_bit_in_a_log_is_detected() {
    let (bytes, known) = history(drop);
    let last = known.last().unwrap().0;
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        match recover_from(&[(LOG, &bytes)]).err().expect("damage is detected") {
            OpenError::Damaged { path, offset, .. } => {
                assert!(path.ends_with(LOG));
                let frame = known.iter().rfind(|(end, _)| *end <= at).map_or(0, |(end, _)| *end);
                assert_eq!(offset, frame as u64, "byte {at}: the offset is that of the frame");
            }
            OpenError::DamagedEnd { path, offset, .. } => {
                assert!(path.ends_with(LOG) && at >= last && offset == last as u64, "byte {at} and {offset}");
            }
            error => {
                assert!(matches!(error, OpenError::Newer { .. }) && (8..12).contains(&at), "{error}");
            }
        }
    }
}

#[test]
fn a_flipped_bit_in_a_snapshot_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::with(dir.path(), SHORT);
    for value in 0..3 {
        server.put("pods", &value.to_string(), value);
        server.sync().unwrap();
    }
    drop(server);
    let names: Vec<_> = names(dir.path()).into_iter().filter(|name| name != "lock").collect();
    let contents: Vec<_> = names.iter().map(|name| fs::read(dir.path().join(name)).unwrap()).collect();
    let snapshot = names.iter().position(|name| name.starts_with("snapshot-")).unwrap();
    for at in 0..contents[snapshot].len() {
        let mut contents = contents.clone();
        contents[snapshot][at] ^= 1 << (at % 8);
        let files: Vec<_> =
            names.iter().map(String::as_str).zip(contents.iter().map(Vec::as_slice)).collect();
        let error = recover_from(&files).err().expect("damage is detected").to_string();
        assert!(error.contains(&names[snapshot]), "the error names the damaged snapshot: {error}");
    }
}

#[test]
fn a_snapshot_without_one_of_its_frames_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, _lock) = Folder::open(dir.path()).unwrap();
    let mut state = State::new();
    for revision in 1..4 {
        let json = format!("\"{}\"", "x".repeat(1 << 20)).into();
        let (resource, key) = ("pods".into(), revision.to_string().into());
        state.apply(Record::Put { resource, key, revision, json }).unwrap();
    }
    snapshot::write(&folder, &state).unwrap();
    let found = snapshot::read(&folder, 3).unwrap();
    assert!(found.iter().eq(state.iter()) && found.revision == 3 && found.bytes == state.bytes);

    let path = folder.path(Kind::Snapshot, 3);
    let bytes = fs::read(&path).unwrap();
    let marker = |at: &usize| bytes[*at..].starts_with(&[0xFF, b'k', b'w', 0xFE]);
    let frames: Vec<usize> = (0..bytes.len()).filter(marker).collect();
    assert_eq!(frames.len(), 4);
    for cut in frames {
        fs::write(&path, &bytes[..cut]).unwrap();
        let error = snapshot::read(&folder, 3).expect_err("the snapshot is incomplete");
        assert!(matches!(error, OpenError::Damaged { offset, .. } if offset == cut as u64), "{error}");
    }
}

#[test]
fn a_crash_at_any_point_of_a_snapshot_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, _lock) = Folder::open(dir.path()).unwrap();
    let (mut writer, _progress) = Writer::new(folder.clone(), recover(&folder).unwrap(), Options::default());
    let put = |revision: Revision| Record::Put {
        resource: "pods".into(),
        key: format!("{}", revision % 3).into(),
        revision,
        json: format!("{{\"v\":{revision}}}").into(),
    };
    let mut moments = Vec::new();
    let mut note = |when: &'static str, revision: u64| moments.push((when, revision, copy(dir.path())));

    writer.commit(vec![put(1), put(2)], &Queue::closed()).unwrap();
    note("before", 2);
    let state = writer.state().clone();
    writer.rotate().unwrap();
    note("a new log", 2);
    writer.commit(vec![put(3)], &Queue::closed()).unwrap();
    note("a commit in the new log", 3);
    fs::write(folder.path(Kind::Snapshot, 2).with_extension("tmp"), b"kwrt-sn").unwrap();
    note("an unfinished snapshot", 3);
    snapshot::write(&folder, &state).unwrap();
    note("a snapshot", 3);
    writer.commit(vec![put(4)], &Queue::closed()).unwrap();
    let whole = copy(dir.path());
    folder.prune(2).unwrap();
    note("the old log is gone", 4);

    let state = writer.state().clone();
    writer.rotate().unwrap();
    snapshot::write(&folder, &state).unwrap();
    note("a second snapshot beside the first", 4);
    // As after a crash between the removal of two files, in either order.
    fs::remove_file(folder.path(Kind::Log, 2)).unwrap();
    note("the log of the first is gone", 4);
    let torn = copy(dir.path());
    fs::copy(whole.path().join("log-00000000000000000002"), dir.path().join("log-00000000000000000002"))
        .unwrap();
    fs::remove_file(folder.path(Kind::Snapshot, 2)).unwrap();
    note("the first is gone, its log is not", 4);

    for (when, revision, dir) in moments {
        let found = recover(&Folder::open(dir.path()).unwrap().0).unwrap();
        let wanted = (1.max(revision - 2)..=revision).map(put).fold(State::new(), |mut state, record| {
            state.apply(record).unwrap();
            state
        });
        assert!(found.state.iter().eq(wanted.iter()), "{when}");
        assert_eq!((found.state.revision, found.truncated), (revision, 0), "{when}");
        assert!(
            names(dir.path()).iter().all(|name| !name.contains("tmp")),
            "{when}: unfinished files are removed"
        );
    }

    // If the newest snapshot is damaged, the previous one is used, provided that its logs exist.
    let path = torn.path().join("snapshot-00000000000000000004");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = open_error(torn.path());
    assert!(matches!(&error, OpenError::Damaged { path: of, .. } if *of == path), "{error}");
    fs::copy(whole.path().join("log-00000000000000000002"), torn.path().join("log-00000000000000000002"))
        .unwrap();
    let found = recover(&Folder::open(torn.path()).unwrap().0).unwrap();
    assert_eq!((found.state.revision, found.state.objects()), (4, 3));
}

#[test]
fn a_log_that_is_missing_or_short_before_another_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, lock) = Folder::open(dir.path()).unwrap();
    let (mut writer, _progress) = Writer::new(folder.clone(), recover(&folder).unwrap(), Options::default());
    for revision in 1..4 {
        let (resource, key) = ("pods".into(), "a".into());
        writer
            .commit(vec![Record::Put { resource, key, revision, json: "{}".into() }], &Queue::closed())
            .unwrap();
        writer.rotate().unwrap();
    }
    drop((writer, lock));
    let second = folder.path(Kind::Log, 1);
    let bytes = fs::read(&second).unwrap();

    fs::write(&second, &bytes[..bytes.len() - 1]).unwrap();
    let error = open_error(dir.path());
    assert!(matches!(&error, OpenError::Damaged { path, offset: 24, .. } if *path == second), "{error}");
    assert_eq!(fs::metadata(&second).unwrap().len(), bytes.len() as u64 - 1, "nothing was truncated");

    fs::remove_file(&second).unwrap();
    let error = open_error(dir.path());
    assert!(matches!(&error, OpenError::Missing { path, from: 1 } if *path == second), "{error}");
    fs::remove_file(folder.path(Kind::Log, 0)).unwrap();
    assert!(matches!(open_error(dir.path()), OpenError::Missing { from: 0, .. }));
}

#[test]
fn a_newer_format_is_rejected_with_its_number() {
    for kind in [Kind::Log, Kind::Snapshot] {
        let dir = tempfile::tempdir().unwrap();
        drop(Server::open(dir.path()));
        let path = Folder::open(dir.path()).unwrap().0.path(kind, 0);
        let mut bytes = frame::header(kind, 0);
        bytes[8] = 2;
        fs::write(&path, bytes).unwrap();
        let error = open_error(dir.path());
        assert!(matches!(error, OpenError::Newer { found: 2, known: 1, .. }), "{error}");
        assert!(error.to_string().contains("has format 2; this release reads up to 1"), "{error}");
    }
}

#[test]
fn a_record_of_an_unknown_kind_is_damage_even_at_the_end() {
    let (mut bytes, _) = history(|server| server.crash(0));
    let end = bytes.len() as u64;
    let payload = [9u8];
    bytes.extend([0xFF, b'k', b'w', 0xFE, 1, 0, 0, 0]);
    bytes.extend(crc32fast::hash(&[1, 0, 0, 0, payload[0]]).to_le_bytes());
    bytes.extend(payload);
    let error = recover_from(&[(LOG, &bytes)]).err().expect("the record kind is unknown");
    assert!(matches!(error, OpenError::Damaged { offset, .. } if offset == end), "{error}");
}
