//! One process of a control plane.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::Instant;

const PAUSE: Duration = Duration::from_millis(20);
/// The number of log lines in an error.
const SHOWN_LINES: usize = 15;

/// A process did not become ready.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// It could not be started.
    #[error("failed to start {}", binary.display())]
    Start {
        /// The binary.
        binary: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// It exited before it was ready.
    #[error("{name} exited with {status} before it was ready; last output:\n{printed}")]
    Ended {
        /// The name of the process.
        name: &'static str,
        /// The exit status.
        status: ExitStatus,
        /// Its last log lines.
        printed: String,
    },
    /// It did not become ready in time.
    #[error("{name} was not ready within {within:?} ({why}); last output:\n{printed}")]
    NotReady {
        /// The name of the process.
        name: &'static str,
        /// The timeout.
        within: Duration,
        /// The error of the last readiness check.
        why: String,
        /// Its last log lines.
        printed: String,
    },
}

/// A running process, killed on drop.
pub(super) struct Process {
    name: &'static str,
    child: Child,
    output: PathBuf,
}

impl Process {
    pub(super) fn start(
        name: &'static str,
        binary: &Path,
        arguments: &[String],
        folder: &Path,
    ) -> Result<Self, ProcessError> {
        let output = folder.join(format!("{name}.log"));
        let start = || -> io::Result<Child> {
            let log = std::fs::File::create(&output)?;
            let mut command = Command::new(binary);
            command.args(arguments).current_dir(folder).stdin(Stdio::null());
            command.stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
            // Its own process group, so that Ctrl-C in a terminal reaches the test only.
            #[cfg(unix)]
            command.process_group(0);
            command.spawn()
        };
        match start() {
            Ok(child) => Ok(Self { name, child, output }),
            Err(source) => Err(ProcessError::Start { binary: binary.to_owned(), source }),
        }
    }

    /// Polls `check` until it passes. Not an `AsyncFn`, because the future must be `Send`.
    pub(super) async fn ready<F: Future<Output = Result<(), String>>>(
        &mut self,
        within: Duration,
        check: impl Fn() -> F,
    ) -> Result<(), ProcessError> {
        let started = Instant::now();
        loop {
            let Err(why) = check().await else { return Ok(()) };
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(ProcessError::Ended { name: self.name, status, printed: self.printed() });
            }
            if started.elapsed() > within {
                return Err(ProcessError::NotReady { name: self.name, within, why, printed: self.printed() });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn printed(&self) -> String {
        let text = std::fs::read(&self.output).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    }
}

/// Whether the `--help` of a binary lists a flag.
pub(super) async fn knows_flag(binary: &Path, flag: &str) -> Result<bool, ProcessError> {
    let output = Command::new(binary).arg("--help").stdin(Stdio::null()).kill_on_drop(true).output().await;
    let output = output.map_err(|source| ProcessError::Start { binary: binary.to_owned(), source })?;
    let text = [output.stdout, output.stderr].concat();
    let wanted = format!("--{flag}");
    let names = |line: &str| {
        let rest = line.trim_start().strip_prefix(&wanted);
        rest.is_some_and(|rest| !rest.starts_with(|it: char| it.is_ascii_alphanumeric() || it == '-'))
    };
    Ok(String::from_utf8_lossy(&text).lines().any(names))
}

/// Whether a server without TLS returns 200 for a path.
pub(super) async fn plain_health(port: u16, path: &str) -> Result<(), String> {
    let ask = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        io::Result::Ok(String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned())
    };
    match ask.await {
        Ok(line) if line.split_whitespace().nth(1) == Some("200") => Ok(()),
        Ok(line) => Err(line),
        Err(error) => Err(error.to_string()),
    }
}
