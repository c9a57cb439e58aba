//! A real registry: Debian's docker-registry on a free port of this machine.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The user `ci` with the password `secret`, as bcrypt.
const HTPASSWD: &str = "ci:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";

pub(crate) struct Registry {
    child: Child,
    folder: TempDir,
    pub(crate) address: String,
}

impl Registry {
    /// A registry without authentication.
    #[track_caller]
    pub(crate) fn start() -> Self {
        Self::with(false)
    }

    /// A registry for the user `ci` only.
    #[track_caller]
    pub(crate) fn with_login() -> Self {
        Self::with(true)
    }

    #[track_caller]
    fn with(login: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().display().to_string();
        let mut config = format!(
            "version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: {root}/data}}}}\n\
             http: {{addr: '127.0.0.1:0'}}\n"
        );
        if login {
            fs::write(folder.path().join("htpasswd"), HTPASSWD).expect("a file");
            writeln!(config, "auth: {{htpasswd: {{realm: test, path: {root}/htpasswd}}}}")
                .expect("a String takes all text");
        }
        fs::write(folder.path().join("config.yml"), config).expect("a file");
        let log = File::create(folder.path().join("log")).expect("a file");
        let child = Command::new("docker-registry")
            .arg("serve")
            .arg(folder.path().join("config.yml"))
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("docker-registry does not start ({error}): install the Debian package docker-registry, or run `cargo xtask ci`")
            });
        let mut registry = Self { child, folder, address: String::new() };
        registry.address = registry.listening();
        registry
    }

    /// Waits for the log line with the address.
    #[track_caller]
    fn listening(&mut self) -> String {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let log = self.log();
            let line = log.split("listening on ").nth(1);
            if let Some(address) = line.and_then(|rest| rest.split(['"', ' ', '\n']).next()) {
                return address.to_owned();
            }
            assert!(self.child.try_wait().expect("it is ours").is_none(), "the registry ended: {log}");
            assert!(Instant::now() < deadline, "the registry does not listen: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What it logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// How many uploads it has seen.
    pub(crate) fn uploads(&self) -> usize {
        self.log()
            .lines()
            .filter(|line| line.contains("POST /v2/") && line.contains("/blobs/uploads/"))
            .count()
    }

    /// A reference in this registry.
    pub(crate) fn image(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    /// A directory for files of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
