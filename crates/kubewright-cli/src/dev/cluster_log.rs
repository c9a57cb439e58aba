//! Logs of the embedded API server and controllers, printed by a thread of its own.
//!
//! Printing blocks while the reader of a pipe, such as `less`, does not read. The server continues meanwhile: lines that
//! do not fit in the queue are dropped, and their number is printed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

/// Maximum number of lines that wait for the thread.
const LINES: usize = 1000;
/// How long the end of the command waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

enum Message {
    Line(String),
    /// Reports that all earlier lines are printed.
    Flush(Sender<()>),
}

/// The queue of the printing thread.
#[derive(Clone)]
pub(super) struct ClusterLog {
    queue: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

impl ClusterLog {
    /// Starts the thread. `print` prints a line.
    pub(super) fn start(print: impl FnMut(&str) + Send + 'static) -> io::Result<Self> {
        let (queue, messages) = sync_channel(LINES);
        let dropped = Arc::new(AtomicU64::new(0));
        std::thread::Builder::new().name("kubewright-log-output".to_owned()).spawn({
            let dropped = dropped.clone();
            move || print_all(&messages, &dropped, print)
        })?;
        Ok(Self { queue, dropped })
    }

    /// A writer of whole lines, for the logger.
    pub(super) fn writer(&self) -> impl io::Write + use<> {
        self.clone()
    }

    /// Waits for the lines that are left, if they can be printed.
    pub(super) fn flush(&self) {
        let (printed, all) = channel();
        // A full queue is not printed.
        if self.queue.try_send(Message::Flush(printed)).is_ok() {
            let _ = all.recv_timeout(LAST_LINES);
        }
    }
}

impl io::Write for ClusterLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for line in String::from_utf8_lossy(bytes).lines() {
            if self.queue.try_send(Message::Line(line.to_owned())).is_err() {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn print_all(messages: &Receiver<Message>, dropped: &AtomicU64, mut print: impl FnMut(&str)) {
    for message in messages {
        match message {
            Message::Line(line) => {
                print(&line);
                let dropped = dropped.swap(0, Ordering::Relaxed);
                if dropped > 0 {
                    print(&format!("{dropped} log lines were dropped, because the output was not read"));
                }
            }
            // The receiver stops waiting after a timeout.
            Message::Flush(printed) => drop(printed.send(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn lines_are_dropped_and_counted_while_printing_blocks() {
        let (printed, lines) = channel::<String>();
        let (release, blocked) = channel::<()>();
        let log = ClusterLog::start(move |line| {
            printed.send(line.to_owned()).unwrap();
            // Ends when the test drops `release`.
            let _ = blocked.recv();
        })
        .unwrap();
        let mut writer = log.writer();
        writer.write_all(b"first\n").unwrap();
        assert_eq!(lines.recv().unwrap(), "first");
        for _ in 0..LINES + 5 {
            writer.write_all(b"more\n").unwrap();
        }
        drop(release);
        // Without senders, the thread ends after the last line.
        drop((log, writer));
        let all: Vec<String> = lines.iter().collect();
        assert_eq!(all[0], "5 log lines were dropped, because the output was not read");
        assert_eq!(all.len(), LINES + 1);
    }
}
