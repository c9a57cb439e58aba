//! The operator as a process: started, listened to, restarted when it fails, and ended.
//!
//! At most one runs. It gets no fixed port and no part in a leader election, so that nothing on the machine or in the
//! cluster is in its way. One that ends by itself is started again after a pause that doubles, until there is a new
//! program or it has run for a while.

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
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::group::Group;
use super::program::Program;
use super::report::{Voice, shown};
use crate::error::Hint as _;
use crate::ui::Ui;

/// How long the operator gives its reconciles to end; the flag says so to it.
const GRACE: Duration = Duration::from_secs(5);
/// How much longer it may take itself before it is killed.
const LEEWAY: Duration = Duration::from_secs(2);
/// The first pause before it is started again, and the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// An operator that has run for so long is no longer one that cannot start.
const STEADY: Duration = Duration::from_mins(1);
/// How long it is waited for until it has its caches. It goes on if it takes longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it is waited for what it wrote last.
const DRAIN: Duration = Duration::from_millis(500);
/// How many of its last lines are kept.
const TAIL: usize = 40;

/// How an operator is run.
#[derive(Debug, Default)]
pub(crate) struct Launch {
    pub(crate) folder: PathBuf,
    /// Arguments beside, and before, those that [`DEFAULTS`] has.
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: Vec<(&'static str, OsString)>,
}

/// Flags that an operator gets unless it is given the same, or one that stands in the way, otherwise.
const DEFAULTS: &[(&str, &str, &[&str])] = &[
    ("--metrics-bind-address", "0", &[]),
    ("--leader-elect", "false", &[]),
    ("--log-format", "text", &["--zap-encoder", "--zap-devel"]),
    ("--graceful-shutdown-timeout", "5s", &[]),
];
/// The variable with the user that the operator impersonates.
const IMPERSONATE: &str = "KUBEWRIGHT_IMPERSONATE";
const HEALTH: &str = "--health-probe-bind-address";

#[derive(Debug)]
pub(crate) struct Operator {
    launch: Launch,
    ui: Ui,
    program: Option<Program>,
    running: Option<Running>,
    /// How often it ended by itself since there is this program.
    failures: u32,
    /// When it is to be started again.
    again: Option<Instant>,
    /// Why it ended last, if it does not run well again.
    trouble: Option<String>,
}

#[derive(Debug)]
struct Running {
    group: Group,
    started: Instant,
    health: Option<SocketAddr>,
    tail: Arc<Mutex<VecDeque<String>>>,
    listeners: Vec<JoinHandle<()>>,
}

/// What happens to an operator by itself.
#[derive(Debug)]
pub(crate) enum Event {
    /// It ended, and is to be started again after a pause.
    Ended { told: String },
    /// The pause is over.
    Again,
}

/// How a start went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Started {
    /// It has its caches, and works.
    Ready,
    /// It runs; whether it works is not known yet.
    Running,
    /// It has ended; [`Operator::event`] tells how.
    Ended,
}

impl Operator {
    pub(crate) fn new(launch: Launch, ui: Ui) -> Self {
        Self { launch, ui, program: None, running: None, failures: 0, again: None, trouble: None }
    }

    /// The user that the next start impersonates; none to run as the user of the kubeconfig.
    pub(crate) fn act_as(&mut self, user: Option<String>) {
        self.launch.variables.retain(|(name, _)| *name != IMPERSONATE);
        // Empty for none: the variable may be set in the environment of this process.
        self.launch.variables.push((IMPERSONATE, user.unwrap_or_default().into()));
    }

    /// The arguments that it is given.
    pub(crate) fn arguments(&self) -> &[String] {
        &self.launch.arguments
    }

    /// Whether it was started with a program that has the same bytes.
    pub(crate) fn runs(&self, program: &Path) -> bool {
        // What cannot be compared is another.
        self.program.as_ref().is_some_and(|ours| ours.is(program).unwrap_or(false))
    }

    /// Whether anything of it runs.
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Why it does not run, or ended last before it ran well.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Ends the old program, and starts another.
    pub(crate) async fn replace(&mut self, program: &Path) -> Result<Started> {
        self.stop().await?;
        (self.failures, self.trouble) = (0, None);
        self.program =
            Some(Program::open(program).with_context(|| format!("cannot read {}", program.display()))?);
        self.start().await
    }

    /// Starts the program.
    pub(crate) async fn start(&mut self) -> Result<Started> {
        self.again = None;
        let Some(program) = &self.program else { return Ok(Started::Ended) };
        self.running = Some(self.spawn(program.path())?);
        Ok(self.settle().await)
    }

    /// Waits until it works, but not for long.
    async fn settle(&mut self) -> Started {
        let Some(running) = &mut self.running else { return Started::Ended };
        let Some(health) = running.health else { return Started::Running };
        tokio::select! {
            _ = running.group.wait() => Started::Ended,
            ready = eventually(PATIENCE, async || is_ready(health).await) => match ready {
                Ok(()) => {
                    self.trouble = None;
                    Started::Ready
                }
                Err(_) => Started::Running,
            },
        }
    }

    /// Waits for something to happen to it. Can be given up and called again.
    pub(crate) async fn event(&mut self) -> Result<Event> {
        if let Some(running) = &mut self.running {
            let status = running.group.wait().await.context("cannot wait for the operator")?;
            return Ok(Event::Ended { told: self.ended(status).await });
        }
        match self.again {
            Some(again) => tokio::time::sleep_until(again).await,
            None => std::future::pending().await,
        }
        Ok(Event::Again)
    }

    /// Plans the next start, and tells in a line what has happened. Can be given up and called again.
    async fn ended(&mut self, status: ExitStatus) -> String {
        let Some(running) = &mut self.running else { return String::new() };
        let ran = running.started.elapsed();
        let tail = running.tail().await;
        // Only now: given up before, this must be found again.
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
        let trouble = format!("the operator ended by itself ({status}) after {}{reason}", shown(ran));
        self.trouble = Some(trouble.clone());
        let times = if self.failures > 1 { format!(", {} times now", self.failures) } else { String::new() };
        format!("{trouble}{times}; it is started again in {}, or when it is rebuilt", shown(pause))
    }

    /// Ends it and all that it has started: it is asked first. Given up in the middle, it is killed.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        self.again = None;
        if let Some(mut running) = self.running.take() {
            running.group.end(GRACE + LEEWAY).await.context("cannot end the operator")?;
            running.tail().await;
        }
        Ok(())
    }

    fn spawn(&self, program: &Path) -> Result<Running> {
        let mut command = Command::new(program);
        command
            .current_dir(&self.launch.folder)
            .envs(self.launch.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
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
            .hint("it was just built: has something removed it, or does its disk forbid programs?")?;
        let tail = Arc::default();
        let child = group.child();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let listeners = [
            stdout.map(|stream| tokio::spawn(listen(stream, Arc::clone(&tail), self.ui.clone()))),
            stderr.map(|stream| tokio::spawn(listen(stream, Arc::clone(&tail), self.ui.clone()))),
        ];
        Ok(Running {
            group,
            started: Instant::now(),
            health,
            tail,
            listeners: listeners.into_iter().flatten().collect(),
        })
    }
}

impl Running {
    /// Its last lines. It has ended, and with it what it writes to; whoever holds that open is not waited for long. Can
    /// be given up and called again.
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

/// Passes lines on, and keeps the last ones.
async fn listen(stream: impl AsyncRead + Unpin, tail: Arc<Mutex<VecDeque<String>>>, ui: Ui) {
    let mut stream = BufReader::new(stream);
    let mut bytes = Vec::new();
    while stream.read_until(b'\n', &mut bytes).await.is_ok_and(|length| length > 0) {
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        bytes.clear();
        if !ui.is_quiet() {
            Voice::Operator.say(&ui, &line);
        }
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        if tail.len() == TAIL {
            tail.pop_front();
        }
        tail.push_back(line);
    }
}

/// How long to wait after so many failures.
fn pause(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.min(16)).min(LONGEST_PAUSE)
}

fn is_flag(argument: &str, flag: &str) -> bool {
    argument.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

/// The line among the last ones that says best why a program ended.
fn reason(tail: &[String]) -> Option<String> {
    if let Some(at) = tail.iter().rposition(|line| line.contains("panicked at")) {
        // The message of a panic stands below its place.
        let message = tail.get(at + 1).map(|line| format!(" {line}")).unwrap_or_default();
        return Some(format!("{}{message}", tail[at]));
    }
    let is_error = |line: &&String| line.to_lowercase().starts_with("error");
    let told = tail.iter().rev().find(is_error).or_else(|| tail.iter().rev().find(|line| !line.is_empty()));
    told.cloned()
}

/// An address that nobody has. Somebody may take it before the operator does, which then fails and is started again.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free on 127.0.0.1")?;
    listener.local_addr().context("no port is free on 127.0.0.1")
}

/// Whether an operator says that it may have work.
async fn is_ready(health: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(health).await?;
    let request =
        format!("GET /readyz/informer-sync HTTP/1.1\r\nHost: {health}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await?;
    if &answer == b"HTTP/1.1 200" { Ok(()) } else { Err(std::io::Error::other("its caches are not filled")) }
}

#[cfg(test)]
mod tests {
    use clap::ColorChoice;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::ui::Verbosity;

    #[tokio::test]
    async fn an_end_is_told_however_often_the_wait_for_it_is_given_up() {
        let launch = Launch { folder: ".".into(), ..Launch::default() };
        let mut operator = Operator::new(launch, Ui::new(ColorChoice::Never, Verbosity::Quiet));
        // A shell knows none of the flags.
        operator.replace(Path::new("/bin/sh")).await.unwrap();
        let told = async {
            loop {
                match operator.event().now_or_never() {
                    Some(event) => break event,
                    None => tokio::task::yield_now().await,
                }
            }
        };
        let told = tokio::time::timeout(Duration::from_secs(30), told).await.expect("it is told");
        let Ok(Event::Ended { told }) = told else { panic!("it has ended: {told:?}") };
        assert!(told.starts_with("the operator ended by itself (exit status: 2)"), "{told}");
        assert!(!operator.is_running());
        assert!(operator.again.is_some(), "it is started again");
    }

    #[test]
    fn the_pause_doubles_up_to_half_a_minute() {
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
    fn a_flag_of_the_user_is_known_in_both_forms() {
        assert!(is_flag("--log-format", "--log-format"));
        assert!(is_flag("--log-format=json", "--log-format"));
        assert!(!is_flag("--log-format-x", "--log-format"));
    }
}
