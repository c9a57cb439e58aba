//! A loop that runs, and what can be seen of it from a second terminal.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::kubectl::process::{Ended, Process};
use crate::run::{self, command, target};

/// The compiler has other things to do while tests run.
const DEADLINE: Duration = Duration::from_mins(9);

pub(crate) struct Dev {
    process: Process,
    kubeconfig: PathBuf,
    program: PathBuf,
}

impl Dev {
    /// Runs `kubewright dev` in the folder of a project of a name.
    #[track_caller]
    pub(crate) fn start(folder: &Path, name: &str, line: &str) -> Self {
        Self::in_target(folder, name, line, &target())
    }

    /// The same, with a target folder of its own.
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

    /// The next line with a text.
    #[track_caller]
    pub(crate) fn says(&mut self, text: &str) -> String {
        self.process.line_with(text)
    }

    /// What kubectl prints, which must succeed.
    #[track_caller]
    pub(crate) fn kubectl(&self, line: &str) -> String {
        kubectl(&self.kubeconfig, line)
    }

    /// The processes of the operator that run now.
    pub(crate) fn operators(&self) -> Vec<String> {
        processes(&self.program)
    }

    /// Sends a signal, and waits for the end.
    #[track_caller]
    pub(crate) fn end(&mut self, signal: &str) -> Ended {
        let sent = Command::new("kill").arg(format!("-{signal}")).arg(self.process.id().to_string()).status();
        assert!(sent.is_ok_and(|status| status.success()), "it ended by itself");
        self.process.end()
    }

    /// Waits until it has ended by itself.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Ended {
        self.process.end()
    }
}

impl Drop for Dev {
    /// In a test that failed, what it started is to end too, which killing it would not do.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = Command::new("kill").arg("-TERM").arg(self.process.id().to_string()).status();
            self.process.ends_within(Duration::from_secs(20));
        }
    }
}

/// `kubewright dev`, as a shell in the folder of a project would start it.
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

/// Processes that run a program.
fn processes(program: &Path) -> Vec<String> {
    let program = program.display().to_string();
    all().into_iter().filter(|line| line.split_whitespace().next() == Some(&program)).collect()
}

/// Processes that have to do with a folder.
pub(crate) fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    all().into_iter().filter(|line| line.contains(&folder)).collect()
}

/// All processes, by what they were started with.
fn all() -> Vec<String> {
    let output = Command::new("ps").args(["-A", "-ww", "-o", "args="]).output().expect("ps starts");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}
