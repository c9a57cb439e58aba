//! A running `kubewright dev`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::kubectl::process::{Ended, Process};
use crate::run::{self, command, target};

/// Timeout for builds during tests.
const DEADLINE: Duration = Duration::from_mins(9);

pub(crate) struct Dev {
    process: Process,
    kubeconfig: PathBuf,
    program: PathBuf,
}

impl Dev {
    /// Runs `kubewright dev` in a project directory.
    #[track_caller]
    pub(crate) fn start(folder: &Path, name: &str, line: &str) -> Self {
        Self::in_target(folder, name, line, &target())
    }

    /// The same, with its own target directory.
    #[track_caller]
    pub(crate) fn in_target(folder: &Path, name: &str, line: &str, target: &Path) -> Self {
        let mut process = Process::start(self::line(folder, line).env("CARGO_TARGET_DIR", target), "");
        process.be_patient(DEADLINE);
        Self {
            process,
            kubeconfig: target.join("kubewright/dev").join(name).join("kubeconfig"),
            program: target.join("debug").join(name),
        }
    }

    /// Waits for the next line that contains a text.
    #[track_caller]
    pub(crate) fn says(&mut self, text: &str) -> String {
        self.process.line_with(text)
    }

    /// The output of a successful kubectl command.
    #[track_caller]
    pub(crate) fn kubectl(&self, line: &str) -> String {
        kubectl(&self.kubeconfig, line)
    }

    /// The kubeconfig of the cluster.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The running operator processes.
    pub(crate) fn operators(&self) -> Vec<String> {
        processes(&self.program)
    }

    /// Sends a signal and waits for the exit.
    #[track_caller]
    pub(crate) fn end(&mut self, signal: &str) -> Ended {
        let sent = Command::new("kill").arg(format!("-{signal}")).arg(self.process.id().to_string()).status();
        assert!(sent.is_ok_and(|status| status.success()), "it ended by itself");
        self.process.end()
    }

    /// Waits for the exit.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Ended {
        self.process.end()
    }
}

impl Drop for Dev {
    /// Terminates it gracefully if a test failed, so that its children stop too.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = Command::new("kill").arg("-TERM").arg(self.process.id().to_string()).status();
            self.process.ends_within(Duration::from_secs(20));
        }
    }
}

/// The `kubewright dev` command.
pub(crate) fn line(folder: &Path, line: &str) -> Command {
    let mut command = command(&format!("dev {line}"));
    command.current_dir(folder).env("CARGO_TARGET_DIR", target()).env("CARGO_NET_OFFLINE", "true");
    command
}

#[track_caller]
pub(crate) fn kubectl(kubeconfig: &Path, line: &str) -> String {
    let output = run::kubectl()
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(line.split_whitespace())
        .output()
        .expect("kubectl starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {line}: {said}");
    String::from_utf8(output.stdout).expect("kubectl prints text")
}

/// Processes that run a binary.
fn processes(program: &Path) -> Vec<String> {
    let program = program.display().to_string();
    all().into_iter().filter(|line| line.split_whitespace().next() == Some(&program)).collect()
}

/// Processes that use a directory.
pub(crate) fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    all().into_iter().filter(|line| line.contains(&folder)).collect()
}

/// All processes by command line.
fn all() -> Vec<String> {
    let output = Command::new("ps").args(["-A", "-ww", "-o", "args="]).output().expect("ps starts");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}
