//! A child process whose output is read line by line.
//!
//! Waits are limited by [`DEADLINE`] or [`Process::be_patient`], and the child is killed on drop.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Default timeout.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// The result of a process.
pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

enum Part {
    Stdout(String),
    Stderr(String),
}

pub(crate) struct Process {
    name: String,
    child: Child,
    parts: Receiver<Part>,
    stdout: String,
    stderr: String,
    /// Unread lines of each stream, since the order between streams is unknown.
    untold: [VecDeque<String>; 2],
    deadline: Duration,
}

impl Process {
    /// Starts a command with standard input.
    #[track_caller]
    pub(crate) fn start(command: &mut Command, input: &str) -> Self {
        let name = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let (sender, parts) = channel();
        forward(child.stdout.take(), Part::Stdout, sender.clone());
        forward(child.stderr.take(), Part::Stderr, sender);
        // The input fits into the pipe buffer. A closed pipe is not an error.
        let _ = child.stdin.take().expect("the input is a pipe").write_all(input.as_bytes());
        let (stdout, stderr) = (String::new(), String::new());
        Self { name, child, parts, stdout, stderr, untold: Default::default(), deadline: DEADLINE }
    }

    /// Sets a longer timeout, for builds.
    pub(crate) fn be_patient(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line that contains a text on either stream, skipping lines before it.
    #[track_caller]
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        let deadline = Instant::now() + self.deadline;
        loop {
            for untold in &mut self.untold {
                if let Some(at) = untold.iter().position(|line| line.contains(text)) {
                    return untold.drain(..=at).next_back().expect("it was found");
                }
            }
            let more = self.next(deadline);
            assert!(more, "{} ended without saying {text:?}\n{}{}", self.name, self.stdout, self.stderr);
        }
    }

    /// Standard output so far.
    pub(crate) fn printed(&self) -> &str {
        &self.stdout
    }

    /// Waits for the exit.
    #[track_caller]
    pub(crate) fn end(&mut self) -> Ended {
        let deadline = Instant::now() + self.deadline;
        while self.next(deadline) {}
        let status = self.child.wait().expect("the process is ours").code();
        Ended { status, stdout: self.stdout.clone(), stderr: self.stderr.clone() }
    }

    /// Waits for the exit with a timeout. Returns whether it exited.
    pub(crate) fn ends_within(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            match self.parts.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return self.child.wait().is_ok(),
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    /// Reads the next line of either stream. Returns false if both have ended.
    #[track_caller]
    fn next(&mut self, deadline: Instant) -> bool {
        match self.parts.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Part::Stdout(line)) => {
                self.stdout.push_str(&line);
                self.untold[0].push_back(line);
                true
            }
            Ok(Part::Stderr(line)) => {
                self.stderr.push_str(&line);
                self.untold[1].push_back(line);
                true
            }
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => {
                panic!("{} hangs; so far it said:\n{}{}", self.name, self.stdout, self.stderr)
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only after the exit.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends lines as they arrive; the last one may lack a newline.
fn forward(stream: Option<impl Read + Send + 'static>, part: fn(String) -> Part, sender: Sender<Part>) {
    let mut stream = BufReader::new(stream.expect("the stream is a pipe"));
    thread::spawn(move || {
        let mut line = Vec::new();
        while stream.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8(std::mem::take(&mut line)).expect("programs print text");
            if sender.send(part(text)).is_err() {
                return;
            }
        }
    });
}
