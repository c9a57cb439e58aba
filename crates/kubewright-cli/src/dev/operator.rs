//! The operator process: starts, restarts and stops it, and forwards its output.
//!
//! At most one runs. It gets no fixed ports and no leader election, so nothing on the machine or in the
//! cluster conflicts with it. If it exits, it is restarted with exponential backoff, which resets with a new
//! binary or after a stable run.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use kubewright_runtime::eventually;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::page::Feed;
use super::process_group::Group;
use super::program::Program;
use super::report::{Voice, shown};
use crate::error::Hint as _;
use crate::ui::Ui;

/// Graceful shutdown timeout, passed to the operator as a flag.
const GRACE: Duration = Duration::from_secs(5);
/// Additional time before the operator is killed.
const LEEWAY: Duration = Duration::from_secs(2);
/// Initial and maximum backoff.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Uptime after which the backoff resets.
const STEADY: Duration = Duration::from_mins(1);
/// How long to wait for cache sync before reporting that it takes longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for the last output after exit.
const DRAIN: Duration = Duration::from_millis(500);
/// Number of output lines to keep.
const TAIL: usize = 40;

/// How to run an operator.
#[derive(Debug, Default)]
pub(crate) struct Launch {
    pub(crate) folder: PathBuf,
    /// Arguments before those in [`DEFAULTS`].
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: Vec<(&'static str, OsString)>,
    /// Gets the output.
    pub(crate) feed: Feed,
}

/// Default flags, unless the user sets the same or a conflicting flag.
const DEFAULTS: &[(&str, &str, &[&str])] = &[
    ("--metrics-bind-address", "0", &[]),
    ("--leader-elect", "false", &[]),
    ("--log-format", "text", &["--zap-encoder", "--zap-devel"]),
    ("--graceful-shutdown-timeout", "5s", &[]),
];
/// Environment variable that makes the operator exit when its standard input ends: when this process is killed.
const EXIT_WITH_STDIN: &str = "KUBEWRIGHT_EXIT_WITH_STDIN";
/// Environment variable with the user to impersonate.
const IMPERSONATE: &str = "KUBEWRIGHT_IMPERSONATE";
const HEALTH: &str = "--health-probe-bind-address";

#[derive(Debug)]
pub(crate) struct Operator {
    launch: Launch,
    ui: Ui,
    program: Option<Program>,
    running: Option<Running>,
    /// Number of exits of the current binary.
    failures: u32,
    /// When to restart.
    again: Option<Instant>,
    /// Why it exited, until it runs stably again.
    failure: Option<String>,
}

#[derive(Debug)]
struct Running {
    group: Group,
    started: Instant,
    health: Option<SocketAddr>,
    tail: Arc<Mutex<VecDeque<String>>>,
    listeners: Vec<JoinHandle<()>>,
    /// Kept open; see [`EXIT_WITH_STDIN`].
    _stdin: Option<ChildStdin>,
}

/// A state change of the operator.
#[derive(Debug)]
pub(crate) enum Event {
    /// It exited and will be restarted.
    Exited { reason: String },
    /// The backoff is over: call [`Operator::start`].
    RestartDue,
}

/// The result of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Started {
    /// Its caches are synced.
    Ready,
    /// It runs, but its caches are not synced yet.
    Running,
    /// It exited; [`Operator::event`] returns why.
    Exited,
}

impl Operator {
    pub(crate) fn new(launch: Launch, ui: Ui) -> Self {
        Self { launch, ui, program: None, running: None, failures: 0, again: None, failure: None }
    }

    /// Sets the user to impersonate from the next start on; `None` uses the kubeconfig user.
    pub(crate) fn act_as(&mut self, user: Option<String>) {
        self.launch.variables.retain(|(name, _)| *name != IMPERSONATE);
        // Always set, because the variable may exist in our own environment.
        self.launch.variables.push((IMPERSONATE, user.unwrap_or_default().into()));
    }

    /// The arguments of the operator.
    pub(crate) fn arguments(&self) -> &[String] {
        &self.launch.arguments
    }

    /// Whether the running binary has the same content.
    pub(crate) fn runs(&self, program: &Path) -> bool {
        // On an error, assume that it differs.
        self.program.as_ref().is_some_and(|ours| ours.is(program).unwrap_or(false))
    }

    /// Whether it runs.
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Why it does not run, or exited last.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Stops the old binary and starts another one.
    pub(crate) async fn replace(&mut self, program: &Path) -> Result<Started> {
        self.stop().await?;
        (self.failures, self.failure) = (0, None);
        self.program =
            Some(Program::open(program).with_context(|| format!("cannot read {}", program.display()))?);
        self.start().await
    }

    /// Starts the binary.
    pub(crate) async fn start(&mut self) -> Result<Started> {
        self.again = None;
        let Some(program) = &self.program else { return Ok(Started::Exited) };
        self.running = Some(self.spawn(program.path())?);
        Ok(self.settle().await)
    }

    /// Waits a short time for cache sync.
    async fn settle(&mut self) -> Started {
        let Some(running) = &mut self.running else { return Started::Exited };
        let Some(health) = running.health else { return Started::Running };
        tokio::select! {
            _ = running.group.wait() => Started::Exited,
            ready = eventually(PATIENCE, async || is_ready(health).await) => match ready {
                Ok(()) => {
                    self.failure = None;
                    Started::Ready
                }
                Err(_) => Started::Running,
            },
        }
    }

    /// Waits for a state change. Cancel-safe.
    pub(crate) async fn event(&mut self) -> Result<Event> {
        if let Some(running) = &mut self.running {
            let status = running.group.wait().await.context("cannot wait for the operator")?;
            return Ok(Event::Exited { reason: self.exited(status).await });
        }
        match self.again {
            Some(again) => tokio::time::sleep_until(again).await,
            None => std::future::pending().await,
        }
        Ok(Event::RestartDue)
    }

    /// Schedules the restart and describes the exit. Cancel-safe.
    async fn exited(&mut self, status: ExitStatus) -> String {
        let Some(running) = &mut self.running else { return String::new() };
        let ran = running.started.elapsed();
        let tail = running.tail().await;
        // Last, so that a canceled call can be repeated.
        self.running = None;
        if self.ui.is_quiet() {
            for line in &tail {
                Voice::Operator.say(&self.ui, line);
            }
        }
        if ran >= STEADY {
            self.failures = 0;
        }
        let pause = pause(self.failures);
        self.failures += 1;
        self.again = Some(Instant::now() + pause);
        let reason = reason(&tail).map(|reason| format!(": {reason}")).unwrap_or_default();
        let failure = format!("the operator exited ({status}) after {}{reason}", shown(ran));
        self.failure = Some(failure.clone());
        let times = if self.failures > 1 { format!(", {} times", self.failures) } else { String::new() };
        format!("{failure}{times}; restarting in {} or on the next build", shown(pause))
    }

    /// Stops the process group gracefully. If canceled, it is killed.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        self.again = None;
        if let Some(mut running) = self.running.take() {
            running.group.end(GRACE + LEEWAY).await.context("failed to stop the operator")?;
            running.tail().await;
        }
        Ok(())
    }

    fn spawn(&self, program: &Path) -> Result<Running> {
        let mut command = Command::new(program);
        command
            .current_dir(&self.launch.folder)
            .envs(self.launch.variables.iter().map(|(name, value)| (name, value)))
            .env(EXIT_WITH_STDIN, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let given = |flag: &str| self.launch.arguments.iter().any(|argument| is_flag(argument, flag));
        for (flag, value, instead) in DEFAULTS {
            if !given(flag) && !instead.iter().any(|flag| given(flag)) {
                command.arg(format!("{flag}={value}"));
            }
        }
        let health = if given(HEALTH) { None } else { Some(free_address()?) };
        if let Some(address) = health {
            command.arg(format!("{HEALTH}={address}"));
        }
        command.args(&self.launch.arguments);
        let mut group = Group::spawn(&mut command)
            .with_context(|| format!("cannot start {}", program.display()))
            .hint("check that the file still exists and that its file system allows execution")?;
        let tail = Arc::default();
        let child = group.child();
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let listeners = [
            stdout.map(|stream| {
                tokio::spawn(listen(stream, Arc::clone(&tail), self.ui.clone(), self.launch.feed.clone()))
            }),
            stderr.map(|stream| {
                tokio::spawn(listen(stream, Arc::clone(&tail), self.ui.clone(), self.launch.feed.clone()))
            }),
        ];
        Ok(Running {
            group,
            started: Instant::now(),
            health,
            tail,
            listeners: listeners.into_iter().flatten().collect(),
            _stdin: stdin,
        })
    }
}

impl Running {
    /// The last output lines. Waits only a short time, since a descendant may hold the pipe open.
    /// Cancel-safe.
    async fn tail(&mut self) -> Vec<String> {
        while let Some(listener) = self.listeners.last_mut() {
            if tokio::time::timeout(DRAIN, &mut *listener).await.is_err() {
                listener.abort();
            }
            self.listeners.pop();
        }
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Forwards lines and keeps the last ones.
async fn listen(stream: impl AsyncRead + Unpin, tail: Arc<Mutex<VecDeque<String>>>, ui: Ui, feed: Feed) {
    let mut stream = BufReader::new(stream);
    let mut bytes = Vec::new();
    while stream.read_until(b'\n', &mut bytes).await.is_ok_and(|length| length > 0) {
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        bytes.clear();
        feed.log(&line);
        if !ui.is_quiet() {
            // Printing blocks while the output is not read, and the API server uses the same runtime.
            let (ui, line) = (ui.clone(), line.clone());
            let _ = tokio::task::spawn_blocking(move || Voice::Operator.say(&ui, &line)).await;
        }
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        if tail.len() == TAIL {
            tail.pop_front();
        }
        tail.push_back(line);
    }
}

/// The backoff after a number of failures.
fn pause(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.min(16)).min(LONGEST_PAUSE)
}

fn is_flag(argument: &str, flag: &str) -> bool {
    argument.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

/// The most relevant of the last lines.
fn reason(tail: &[String]) -> Option<String> {
    if let Some(at) = tail.iter().rposition(|line| line.contains("panicked at")) {
        // The panic message is on the line after its location.
        let message = tail.get(at + 1).map(|line| format!(" {line}")).unwrap_or_default();
        return Some(format!("{}{message}", tail[at]));
    }
    let is_error = |line: &&String| line.to_lowercase().starts_with("error");
    let line = tail.iter().rev().find(is_error).or_else(|| tail.iter().rev().find(|line| !line.is_empty()));
    line.cloned()
}

/// A free address. If another process takes it first, the operator exits and is restarted.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
    listener.local_addr().context("no free port on 127.0.0.1")
}

/// Whether the operator's caches are synced.
async fn is_ready(health: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(health).await?;
    let request =
        format!("GET /readyz/informer-sync HTTP/1.1\r\nHost: {health}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await?;
    if &answer == b"HTTP/1.1 200" { Ok(()) } else { Err(std::io::Error::other("caches not synced")) }
}

#[cfg(test)]
mod tests {
    use clap::ColorChoice;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::ui::Verbosity;

    #[tokio::test]
    async fn an_exit_is_reported_after_canceled_waits() {
        let launch = Launch { folder: ".".into(), ..Launch::default() };
        let mut operator = Operator::new(launch, Ui::new(ColorChoice::Never, Verbosity::Quiet));
        // A shell does not know the flags and exits.
        operator.replace(Path::new("/bin/sh")).await.unwrap();
        let exit = async {
            loop {
                match operator.event().now_or_never() {
                    Some(event) => break event,
                    None => tokio::task::yield_now().await,
                }
            }
        };
        let exit = tokio::time::timeout(Duration::from_secs(30), exit).await.expect("the exit is reported");
        let Ok(Event::Exited { reason }) = exit else { panic!("not an exit: {exit:?}") };
        assert!(reason.starts_with("the operator exited (exit status: 2)"), "{reason}");
        assert!(!operator.is_running());
        assert!(operator.again.is_some(), "a restart is scheduled");
    }

    #[test]
    fn the_backoff_doubles_up_to_30_seconds() {
        let seconds: Vec<u64> = (0..7).map(|failures| pause(failures).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
    }

    #[test]
    fn the_reason_is_the_panic_or_the_error_or_the_last_line() {
        let reason =
            |text: &str| reason(&text.lines().map(str::to_owned).collect::<Vec<_>>()).unwrap_or_default();
        assert_eq!(
            reason(
                "starting\nthread 'main' panicked at src/main.rs:4:5:\nno way\nnote: run with `RUST_BACKTRACE=1`"
            ),
            "thread 'main' panicked at src/main.rs:4:5: no way"
        );
        assert_eq!(reason("error: no cluster\n12:00 INFO stopped\n"), "error: no cluster");
        assert_eq!(reason("one\ntwo\n\n"), "two");
        assert_eq!(reason(""), "");
    }

    #[test]
    fn user_flags_are_recognized_in_both_forms() {
        assert!(is_flag("--log-format", "--log-format"));
        assert!(is_flag("--log-format=json", "--log-format"));
        assert!(!is_flag("--log-format-x", "--log-format"));
    }
}
