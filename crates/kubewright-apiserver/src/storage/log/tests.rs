//! Tests of the log. A crash is simulated by a disk that fails during a write: earlier bytes stay and
//! `closed` is missing.

mod damage;
mod disk;
mod model;
mod tail;

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::folder::Kind;
use super::*;
use crate::storage::conformance::encoder;
use crate::storage::{Change, Expect, Store, Write};
use disk::Disk;

/// A limit so low that every second commit writes a snapshot.
const SHORT: u64 = 100;

struct Server {
    store: Store,
    log: Arc<Log>,
    disk: Disk,
    recovered: Recovered,
}

impl Server {
    fn open(dir: &Path) -> Self {
        Self::with(dir, u64::MAX)
    }

    fn with(dir: &Path, log_bytes: u64) -> Self {
        let disk = Disk::default();
        let Opened { engine, log, recovered } =
            open_with(dir, Limits::default(), disk.options(log_bytes), attributes).unwrap();
        Self { store: Store::with(engine, Some(log.clone())), log, disk, recovered }
    }

    fn put(&self, resource: &str, key: &str, value: u64) -> Revision {
        let found = self.store.get(resource, key);
        self.write(Write {
            resource: resource.into(),
            key: key.into(),
            expect: found.map_or(Expect::Absent, |version| Expect::At(version.revision)),
            change: Change::Put {
                object: encoder(json!({"metadata": {"uid": key}, "value": value})),
                attributes: Attributes::default(),
            },
        })
    }

    fn delete(&self, resource: &str, key: &str) -> Option<Revision> {
        let found = self.store.get(resource, key)?;
        Some(self.write(Write {
            resource: resource.into(),
            key: key.into(),
            expect: Expect::At(found.revision),
            change: Change::Delete { object: encoder(found.object()), attributes: Attributes::default() },
        }))
    }

    fn write(&self, write: Write) -> Revision {
        self.store.commit(vec![write]).unwrap()[0].revision
    }

    fn sync(&self) -> io::Result<()> {
        wait(self.store.synced(self.store.revision()))
    }

    /// Every object, by resource and key.
    fn objects(&self) -> Vec<String> {
        let resources = self.store.resources().into_iter();
        let rows = resources.flat_map(|resource| {
            let items = self.store.list(&resource, "", None).unwrap().items.into_iter();
            items.map(move |version| row(&resource, &version.key, version.revision, &version.json))
        });
        rows.collect()
    }

    /// Crashes as if by `kill -9`, after `torn` more bytes.
    fn crash(self, torn: usize) {
        self.disk.tear(torn);
    }
}

fn row(resource: &str, key: &str, revision: Revision, json: &[u8]) -> String {
    format!("{resource} {key} {revision} {}", str::from_utf8(json).unwrap())
}

fn attributes(_: &str, object: &Value) -> Attributes {
    Attributes::of(None, object)
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A copy of the directory as a crash at this moment would leave it. No snapshot may be running.
fn copy(dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn open_error(dir: &Path) -> OpenError {
    open(dir, Limits::default(), attributes).err().expect("the directory is rejected")
}

#[test]
fn objects_are_restored_with_their_attributes_and_revisions() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("made/on/demand");
    let server = Server::open(&dir);
    assert_eq!(server.recovered, Recovered { objects: 0, truncated_bytes: 0, clean: true });
    server.put("pods", "default/a", 1);
    server.put("pods", "default/b", 2);
    server.delete("pods", "default/a");
    server.put("nodes", "n", 3);
    server.put("widgets", "w", 4);
    server.store.forget("widgets");
    let (objects, revision) = (server.objects(), server.store.revision());
    drop(server);

    let server = Server::open(&dir);
    assert_eq!(server.recovered, Recovered { objects: 2, truncated_bytes: 0, clean: true });
    assert_eq!(
        (server.objects(), server.store.revision()),
        (objects, revision),
        "a clean shutdown leaves no gap"
    );
    assert_eq!(server.store.get("pods", "default/b").unwrap().attributes.uid(), "default/b");
}

#[test]
fn a_watch_cannot_continue_from_before_the_restart() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path());
    let before = server.put("pods", "a", 1);
    server.put("nodes", "n", 1);
    let last = server.delete("pods", "a").unwrap();
    drop(server);
    let server = Server::open(dir.path());
    for resource in ["pods", "nodes"] {
        assert_eq!(server.store.events(resource, before, 10).unwrap_err().oldest, last, "{resource}");
        assert!(server.store.list(resource, "", Some(before)).is_err(), "{resource}");
        assert!(server.store.events(resource, last, 10).unwrap().is_empty(), "{resource}");
    }
}

#[test]
fn a_second_server_is_rejected_until_the_first_has_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path());
    let error = open_error(dir.path());
    assert!(matches!(&error, OpenError::Locked(path) if path == dir.path()), "{error}");
    assert!(error.to_string().contains("in use by another server"), "{error}");
    drop(server);
    let server = Server::open(dir.path());
    // A closed log releases its lock even if it is still referenced.
    server.store.close().unwrap();
    Server::open(dir.path());
    drop(server);
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("data");
    drop(Server::open(&dir));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for name in names(&dir) {
        assert_eq!(mode(&dir.join(&name)), 0o600, "{name}");
    }
}

#[test]
fn a_visible_revision_is_never_reused() {
    let dir = tempfile::tempdir().unwrap();
    let (mut seen, mut crashed) = (0, false);
    for crashes in [false, true, true, false, false] {
        let server = Server::open(dir.path());
        assert_eq!(server.recovered.clean, !crashed);
        let revision = server.store.revision();
        assert!(if crashed { revision > seen } else { revision == seen }, "{revision} after {seen}");
        if crashes {
            server.disk.tear(0);
        }
        (seen, crashed) = (server.put("pods", "a", 1), crashes);
    }
    assert_eq!(seen / GAP, 2, "each crash skips one gap");
}

#[test]
fn a_crash_before_the_first_commit_of_a_run_leaves_a_gap_too() {
    let dir = tempfile::tempdir().unwrap();
    Server::open(dir.path()).put("pods", "a", 1);
    let server = Server::open(dir.path());
    server.disk.tear(0);
    let seen = server.put("pods", "a", 2);
    drop(server);
    let server = Server::open(dir.path());
    assert!(!server.recovered.clean && server.store.revision() > seen);
    assert_eq!(server.store.get("pods", "a").unwrap().object()["value"], 1);
}

#[test]
fn a_failed_write_fails_all_later_ones() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path());
    server.put("pods", "a", 1);
    server.sync().unwrap();
    assert!(server.log.failure().is_none());
    let objects = server.objects();

    server.disk.tear(20);
    server.put("pods", "a", 2);
    let error = server.sync().unwrap_err();
    assert!(error.to_string().starts_with("cannot write ") && error.to_string().contains("log-0"), "{error}");
    server.disk.recover();
    server.put("pods", "a", 3);
    assert!(server.sync().is_err(), "the failure is permanent");
    assert_eq!(server.log.failure().unwrap().to_string(), error.to_string());
    assert_eq!(server.log.close().unwrap_err().to_string(), error.to_string());
    drop(server);

    let server = Server::open(dir.path());
    assert_eq!(server.objects(), objects, "only confirmed writes survive");
    assert_eq!(server.recovered.truncated_bytes, 20);
}

#[test]
fn a_full_disk_is_retried_until_there_is_space() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path());
    server.put("pods", "a", 1);
    server.sync().unwrap();

    server.disk.fill_up(20);
    server.put("pods", "a", 2);
    let mut progress = server.log.progress.clone();
    let kind = wait(progress.wait_for(|progress| progress.obstacle().is_some()))
        .unwrap()
        .obstacle()
        .map(|error| error.kind());
    assert_eq!(kind, Some(io::ErrorKind::StorageFull));
    assert!(server.log.failure().is_some(), "new writes are rejected");
    assert_eq!(server.sync().unwrap_err().kind(), io::ErrorKind::StorageFull, "no request waits");
    server.disk.recover();
    wait(server.log.recovered()).unwrap();
    server.sync().unwrap();
    assert!(server.log.failure().is_none(), "and accepted again");
    server.put("pods", "b", 1);
    server.sync().unwrap();
    let objects = server.objects();
    drop(server);

    let server = Server::open(dir.path());
    assert_eq!(server.objects(), objects);
    assert_eq!(server.recovered, Recovered { objects: 2, truncated_bytes: 0, clean: true });
}

#[test]
fn a_server_with_a_full_disk_can_be_closed() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path());
    server.put("pods", "a", 1);
    server.sync().unwrap();
    let objects = server.objects();
    server.disk.fill_up(20);
    server.put("pods", "a", 2);
    assert_eq!(server.log.close().unwrap_err().kind(), io::ErrorKind::StorageFull);
    drop(server);
    assert_eq!(Server::open(dir.path()).objects(), objects);
}

#[test]
fn a_failed_sync_is_never_retried() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path());
    server.disk.refuse_to_sync();
    server.put("pods", "a", 1);
    assert_eq!(server.sync().unwrap_err().to_string().split(": ").last(), Some("the disk failed"));
    let syncs = server.disk.syncs();
    server.disk.recover();
    server.put("pods", "a", 2);
    assert!(server.sync().is_err());
    assert_eq!(server.disk.syncs(), syncs);
}

#[test]
fn a_closed_log_acknowledges_nothing_new() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path());
    let before = server.put("pods", "a", 1);
    server.log.close().unwrap();
    assert!(wait(server.store.synced(before)).is_ok());
    server.put("pods", "b", 1);
    assert_eq!(server.sync().unwrap_err().to_string(), "the log is closed");
    drop(server);
    assert_eq!(Server::open(dir.path()).recovered, Recovered { objects: 1, truncated_bytes: 0, clean: true });
}

#[test]
fn commits_queued_during_a_sync_are_synced_together() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path());
    let gate = server.disk.hold_syncs();
    let first = server.put("pods", "a", 1);
    gate.entered();
    let syncs = server.disk.syncs();
    for value in 2..10 {
        server.put("pods", "a", value);
    }
    let mut waiting = Box::pin(server.store.synced(first));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(waiting.as_mut().poll(&mut context).is_pending(), "a written commit is not synced yet");
    gate.release();
    wait(waiting).unwrap();
    gate.entered();
    gate.release();
    server.sync().unwrap();
    assert_eq!(server.disk.syncs(), syncs + 1, "eight commits");

    // `forget` takes no revision, but a later wait includes it.
    server.store.forget("pods");
    gate.entered();
    let mut waiting = Box::pin(server.store.synced(first));
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    drop(gate);
    wait(waiting).unwrap();
}

#[test]
fn confirmed_concurrent_writes_survive_snapshots_and_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::with(dir.path(), SHORT);
    std::thread::scope(|scope| {
        for writer in ["a", "b", "c", "d"] {
            let server = &server;
            scope.spawn(move || {
                for value in 0..25 {
                    let revision = server.put(&format!("things-{writer}"), writer, value);
                    wait(server.store.synced(revision)).unwrap();
                }
            });
        }
    });
    let (objects, revision) = (server.objects(), server.store.revision());
    server.crash(7);
    let server = Server::open(dir.path());
    assert_eq!(server.objects(), objects);
    assert_eq!(server.store.revision(), revision + GAP);
    assert!(names(dir.path()).iter().any(|name| name.starts_with("snapshot-")));
}

#[test]
fn a_snapshot_replaces_the_logs_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::with(dir.path(), SHORT);
    for value in 0..10 {
        server.put("pods", "a", value);
        server.sync().unwrap();
    }
    let objects = server.objects();
    drop(server);
    let server = Server::open(dir.path());
    assert_eq!(server.objects(), objects);
    let files = names(dir.path());
    assert!(!files.contains(&"log-00000000000000000000".to_owned()), "{files:?}");
    assert_eq!(files.iter().filter(|name| name.starts_with("snapshot-")).count(), 1, "{files:?}");
}

#[test]
fn failed_snapshots_lose_nothing_even_if_the_log_grows_without_revisions() {
    let dir = tempfile::tempdir().unwrap();
    // Directories with these names make snapshots fail.
    let blocked = [1, 2].map(|revision| dir.path().join(format!("snapshot-{revision:020}.tmp")));
    let server = Server::with(dir.path(), SHORT);
    for path in &blocked {
        fs::create_dir(path).unwrap();
    }
    server.put("pods", "a", 1);
    server.put("nodes", "a", 1);
    server.sync().unwrap();
    for resource in ["pods"].into_iter().chain(["widgets"; 20]) {
        server.store.forget(resource);
        server.sync().unwrap();
    }
    let objects = server.objects();
    server.crash(0);
    assert!(names(dir.path()).iter().all(|name| !name.starts_with("snapshot-") || name.ends_with("tmp")));
    for path in &blocked {
        fs::remove_dir(path).unwrap();
    }
    assert_eq!(Server::open(dir.path()).objects(), objects);
}

#[test]
fn a_decreasing_revision_is_rejected_before_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path());
    server.put("pods", "a", 1);
    server.put("pods", "b", 1);
    let old = server.store.get("pods", "a").unwrap();
    server.log.record(&[Recorded { resource: "pods".into(), version: old, deleted: false }]);
    server.put("pods", "c", 1);
    assert!(server.sync().unwrap_err().to_string().ends_with("the revision decreases"));
    drop(server);
    assert!(!Server::open(dir.path()).recovered.clean);
}

#[test]
fn a_full_disk_delays_a_new_log() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::with(dir.path(), SHORT);
    server.disk.refuse_next_file();
    for value in 0..10 {
        server.put("things", "a", value);
        server.sync().unwrap();
    }
    assert!(server.disk.accepts_files(), "a new log was refused");
    let objects = server.objects();
    server.log.close().unwrap();
    assert!(!names(dir.path()).contains(&"log-00000000000000000000".to_owned()), "{:?}", names(dir.path()));
    drop(server);
    assert_eq!(Server::open(dir.path()).objects(), objects);
}
