//! A simulated disk that tests can fill up, break and block.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::storage::log::folder::{Folder, Kind};
use crate::storage::log::writer::{Options, Sink};

#[derive(Clone, Default)]
pub(super) struct Disk(Arc<Mutex<Faults>>);

#[derive(Default)]
struct Faults {
    /// Remaining capacity, if limited.
    room: Option<usize>,
    /// Whether the end of the capacity is a permanent failure.
    torn: bool,
    ill: bool,
    /// Creating the next log fails.
    has_no_room_for_files: bool,
    syncs: usize,
    gate: Option<Arc<Door>>,
}

/// The disk's side of a [`Gate`].
struct Door {
    entered: Sender<()>,
    released: Mutex<Receiver<()>>,
}

/// Lets syncs through one by one; dropping it lets all through.
pub(super) struct Gate {
    entered: Receiver<()>,
    release: Sender<()>,
}

impl Gate {
    /// Waits until a sync is blocked.
    pub(super) fn entered(&self) {
        self.entered.recv().unwrap();
    }

    /// Unblocks the sync.
    pub(super) fn release(&self) {
        self.release.send(()).unwrap();
    }
}

impl Disk {
    pub(super) fn options(&self, log_bytes: u64) -> Options {
        let disk = self.clone();
        let sink = move |file| Box::new(Faulty { file, disk: disk.clone() }) as Box<dyn Sink>;
        let disk = self.clone();
        let create = move |folder: &Folder, revision| {
            if std::mem::take(&mut disk.0.lock().unwrap().has_no_room_for_files) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            folder.create(Kind::Log, revision, |_| Ok(()))
        };
        Options {
            log_bytes,
            times_live: 0,
            retry: Duration::from_millis(1),
            sink: Box::new(sink),
            create: Box::new(create),
        }
    }

    /// Accepts this many more bytes, then is full.
    pub(super) fn fill_up(&self, room: usize) {
        let mut faults = self.0.lock().unwrap();
        (faults.room, faults.torn) = (Some(room), false);
    }

    /// Accepts this many more bytes, then fails for another reason.
    pub(super) fn tear(&self, room: usize) {
        let mut faults = self.0.lock().unwrap();
        (faults.room, faults.torn) = (Some(room), true);
    }

    /// Fails to create the next log.
    pub(super) fn refuse_next_file(&self) {
        self.0.lock().unwrap().has_no_room_for_files = true;
    }

    pub(super) fn accepts_files(&self) -> bool {
        !self.0.lock().unwrap().has_no_room_for_files
    }

    pub(super) fn refuse_to_sync(&self) {
        self.0.lock().unwrap().ill = true;
    }

    pub(super) fn recover(&self) {
        let mut faults = self.0.lock().unwrap();
        (faults.room, faults.ill) = (None, false);
    }

    pub(super) fn syncs(&self) -> usize {
        self.0.lock().unwrap().syncs
    }

    pub(super) fn hold_syncs(&self) -> Gate {
        let ((enter, entered), (release, released)) = (channel(), channel());
        self.0.lock().unwrap().gate = Some(Arc::new(Door { entered: enter, released: Mutex::new(released) }));
        Gate { entered, release }
    }
}

struct Faulty {
    file: File,
    disk: Disk,
}

impl Sink for Faulty {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut faults = self.disk.0.lock().unwrap();
        let torn = faults.torn;
        match &mut faults.room {
            Some(room) if *room < bytes.len() => {
                self.file.write_all(&bytes[..*room])?;
                *room = 0;
                if torn {
                    Err(io::Error::other("the disk failed"))
                } else {
                    Err(io::ErrorKind::StorageFull.into())
                }
            }
            Some(room) => {
                *room -= bytes.len();
                self.file.write_all(bytes)
            }
            None => self.file.write_all(bytes),
        }
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        Sink::truncate(&mut self.file, length)
    }

    fn sync(&mut self) -> io::Result<()> {
        let gate = {
            let mut faults = self.disk.0.lock().unwrap();
            faults.syncs += 1;
            faults.gate.clone()
        };
        if let Some(door) = gate {
            // Errors mean that the gate was dropped.
            let _ = door.entered.send(());
            let _ = door.released.lock().unwrap().recv();
        }
        if self.disk.0.lock().unwrap().ill {
            return Err(io::Error::other("the disk failed"));
        }
        self.file.sync_data()
    }
}
