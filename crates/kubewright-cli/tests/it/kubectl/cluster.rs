//! A server with kubectl.
//!
//! A [`Cluster`] has its own directory, port and kubectl cache, and inherits only `PATH`. On drop the server
//! is terminated and must exit without an error.

use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::process::{DEADLINE, Ended, Process};
use super::redact::Redact;
use crate::run::{command, kubectl};

pub(crate) struct Cluster {
    server: Process,
    dir: PathBuf,
    pub(crate) url: String,
}

impl Cluster {
    #[track_caller]
    pub(crate) fn start() -> Self {
        Self::with_flags("")
    }

    /// A server with controllers and `nodes` nodes.
    #[track_caller]
    pub(crate) fn with_nodes(count: usize) -> Self {
        let cluster = Self::with_flags(&format!(" --controllers all --nodes {count}"));
        cluster.until("get nodes -o name", |nodes| nodes.lines().count() == count);
        cluster.kubectl("wait --for=condition=Ready node --all --timeout=50s").output();
        cluster.until("get nodes -o jsonpath={.items[*].spec.taints}", str::is_empty);
        cluster
    }

    #[track_caller]
    pub(crate) fn with_flags(flags: &str) -> Self {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        require_kubectl();
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let dir =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kubectl-{}-{number}", std::process::id()));
        fs::create_dir_all(&dir).expect("a folder");
        let line = format!("apiserver --port 0{flags} --kubeconfig");
        let mut server = Process::start(command(&line).arg(dir.join("kubeconfig")), "");
        let ready = server.line_with("ready https://");
        let url = ready.split_whitespace().nth(1).expect("the line has the address").to_owned();
        Self { server, dir, url }
    }

    /// A server with these objects.
    #[track_caller]
    pub(crate) fn with(objects: &str) -> Self {
        let cluster = Self::start();
        cluster.create(objects);
        cluster
    }

    #[track_caller]
    pub(crate) fn create(&self, objects: &str) {
        self.feed("create -f -", objects).result();
    }

    /// Runs kubectl; `'...'` quotes an argument.
    #[track_caller]
    pub(crate) fn kubectl(&self, line: &str) -> Answer {
        self.feed(line, "")
    }

    /// Repeats a command until the output matches, and returns it.
    #[track_caller]
    pub(crate) fn until(&self, line: &str, is_good: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let answer = self.kubectl(line).output();
            if is_good(&answer) {
                return answer;
            }
            assert!(Instant::now() < deadline, "kubectl {line} still says\n{answer}");
        }
    }

    /// The same, with standard input.
    #[track_caller]
    pub(crate) fn feed(&self, line: &str, input: &str) -> Answer {
        let ended = Process::start(&mut self.command(line), input).end();
        Answer { ended, redact: self.redact() }
    }

    /// Runs kubectl with a script as editor; `$1` is the file.
    #[track_caller]
    pub(crate) fn edit(&self, line: &str, script: &str) -> Answer {
        let editor = self.dir.join("editor.sh");
        fs::write(&editor, script).expect("a script");
        let mut command = self.command(line);
        command.env("KUBE_EDITOR", format!("sh {}", editor.display()));
        let ended = Process::start(&mut command, "").end();
        Answer { ended, redact: self.redact() }
    }

    /// A file that kubectl printed.
    #[track_caller]
    pub(crate) fn read(&self, shown: &str) -> String {
        let path = shown.replace("<DIR>", &self.dir.display().to_string());
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Starts kubectl in the background.
    #[track_caller]
    pub(crate) fn background(&self, line: &str) -> Background<'_> {
        Background { process: Process::start(&mut self.command(line), ""), cluster: self }
    }

    /// Runs one command per line, and returns the transcript.
    #[track_caller]
    pub(crate) fn session(&self, lines: &str) -> String {
        lines
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .flat_map(|line| [format!("$ kubectl {line}\n"), self.kubectl(line).to_string()])
            .collect()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = kubectl();
        command
            .env("HOME", &self.dir)
            .env("TMPDIR", &self.dir)
            .current_dir(&self.dir)
            .arg("--kubeconfig")
            .arg(self.dir.join("kubeconfig"))
            .arg("--cache-dir")
            .arg(self.dir.join("cache"))
            .args(words(line));
        command
    }

    /// Connection settings.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    fn redact(&self) -> Redact {
        Redact { url: self.url.clone(), dir: self.dir.display().to_string() }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let asked = Command::new("kill").arg("-TERM").arg(self.server.id().to_string()).status();
        if std::thread::panicking() {
            // The test failed already; the server's output may explain it.
            eprintln!("the server said: {}", self.server.end().stderr);
        } else {
            assert!(asked.is_ok_and(|status| status.success()), "the server ended by itself");
            let ended = self.server.end();
            let said = self.redact().apply(&ended.stderr);
            assert_eq!((ended.status, said.as_str()), (Some(0), "note: kubeconfig: <DIR>/kubeconfig\n"));
        }
        fs::remove_dir_all(&self.dir).expect("the folder is ours");
    }
}

/// A running kubectl, killed on drop.
pub(crate) struct Background<'a> {
    process: Process,
    cluster: &'a Cluster,
}

impl Background<'_> {
    /// Waits for the next line that contains a text.
    #[track_caller]
    pub(crate) fn line_with(&mut self, text: &str) {
        self.process.line_with(text);
    }

    /// Stops it, and returns its output up to the last awaited line.
    pub(crate) fn stop(self) -> String {
        self.cluster.redact().apply(self.process.printed())
    }

    /// Waits for the exit.
    #[track_caller]
    pub(crate) fn end(mut self) -> Answer {
        Answer { ended: self.process.end(), redact: self.cluster.redact() }
    }
}

/// The output of kubectl. Its display is stable, for snapshots.
pub(crate) struct Answer {
    ended: Ended,
    redact: Redact,
}

impl Answer {
    /// Standard output of a successful command without warnings.
    #[track_caller]
    pub(crate) fn result(self) -> String {
        assert!(self.ended.status == Some(0) && self.ended.stderr.is_empty(), "{self}");
        self.ended.stdout
    }

    /// Standard output of a successful command; warnings are ignored.
    #[track_caller]
    pub(crate) fn output(self) -> String {
        assert_eq!(self.ended.status, Some(0), "{self}");
        self.ended.stdout
    }

    /// The same, for snapshots.
    #[track_caller]
    pub(crate) fn shown(self) -> String {
        self.redact.clone().apply(&self.output())
    }

    /// The error of a failed command, without client-go's log lines.
    #[track_caller]
    pub(crate) fn failure(self) -> String {
        assert_eq!(self.ended.status, Some(1), "{self}");
        self.redact.apply(self.ended.stderr.lines().last().unwrap_or_default())
    }

    /// Standard error of a successful command.
    #[track_caller]
    pub(crate) fn log(self) -> String {
        assert_eq!(self.ended.status, Some(0), "{self}");
        self.ended.stderr
    }
}

impl Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, text) in [("", &self.ended.stdout), ("--- stderr\n", &self.ended.stderr)] {
            if !text.is_empty() {
                f.write_str(name)?;
                self.redact.apply(text).lines().try_for_each(|line| writeln!(f, "{}", line.trim_end()))?;
            }
        }
        match self.ended.status {
            Some(0) => Ok(()),
            Some(status) => writeln!(f, "--- exit status {status}"),
            None => writeln!(f, "--- killed"),
        }
    }
}

/// Fails if kubectl is missing or too old.
fn require_kubectl() {
    const NEEDED: &str =
        "these tests need kubectl 1.32 or newer on PATH: https://kubernetes.io/docs/tasks/tools/";
    static VERSION: OnceLock<Result<(), String>> = OnceLock::new();
    let check = || {
        let output = kubectl()
            .args(["version", "--client", "-o", "json"])
            .output()
            .map_err(|error| format!("kubectl does not start ({error}); {NEEDED}"))?;
        let version: serde_json::Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("kubectl does not tell its version ({error}); {NEEDED}"))?;
        // Vendors may add a suffix, as in `33+`.
        let minor = version["clientVersion"]["minor"].as_str().unwrap_or_default().trim_end_matches('+');
        match minor.parse::<u32>() {
            Ok(32..) => Ok(()),
            _ => Err(format!("kubectl is 1.{minor}; {NEEDED}")),
        }
    };
    if let Err(message) = VERSION.get_or_init(check) {
        panic!("{message}");
    }
}

/// Splits a command line, with simple quoting.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    assert!(!quoted, "a quote is missing in {line:?}");
    words.extend(word);
    words
}
