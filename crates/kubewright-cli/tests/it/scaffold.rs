//! Scaffolding commands: their output and files.

mod cert_manager;
mod concurrent;
mod cronjob;
mod diagnostics;
mod examples;
pub(crate) mod golden;
mod image;
mod refusals;
mod seeds;
pub(crate) mod tutorial;
mod update;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{self, Run, command};

/// A project directory.
pub(crate) struct Folder {
    held: tempfile::TempDir,
    name: &'static str,
}

impl Folder {
    /// An empty directory. Its name becomes the project name.
    pub(crate) fn new(name: &'static str) -> Self {
        let held = tempfile::tempdir().expect("a folder");
        fs::create_dir(held.path().join(name)).expect("a folder");
        Self { held, name }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.held.path().join(self.name)
    }

    /// Runs `kubewright` in it.
    pub(crate) fn run(&self, line: &str) -> Run {
        run::run(command(line).current_dir(self.path()))
    }

    /// The same, and must succeed.
    #[track_caller]
    pub(crate) fn done(&self, line: &str) -> String {
        let run = self.run(line);
        assert_eq!(run.status, 0, "{line}: {run}");
        run.stdout
    }

    /// A project with one kind.
    pub(crate) fn with_order() -> Self {
        let folder = Self::new("shop");
        folder.done("init --domain example.com --kubewright-version 0.1.0");
        folder.done("create api --group sales --version v1 --kind Order");
        folder
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::write(self.path().join(path), text).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// All files by path.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        walk(&self.path(), Path::new(""), &mut found);
        found.sort();
        found
    }

    /// Runs another program, with cargo offline and in the shared target directory.
    #[track_caller]
    pub(crate) fn shell(&self, program: &str, line: &str, variables: &[(&str, &str)]) -> String {
        let mut command = Command::new(program);
        // Remove cargo's variables for this package: dependent build scripts would run again each time.
        let of_this_package = |name: &str| {
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE"]
                .iter()
                .any(|start| name.starts_with(start))
        };
        for (name, _) in std::env::vars().filter(|(name, _)| of_this_package(name)) {
            command.env_remove(name);
        }
        let output = command
            .args(line.split_whitespace())
            .current_dir(self.path())
            .env("CARGO_TARGET_DIR", run::target())
            .env("CARGO_NET_OFFLINE", "true")
            .env("KUBEWRIGHT", env!("CARGO_BIN_EXE_kubewright"))
            .envs(variables.iter().copied())
            .output()
            .unwrap_or_else(|error| panic!("{program} does not start: {error}"));
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{program} {line}: {}\n{stdout}\n{stderr}", output.status);
        stdout.into_owned()
    }
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(root.join(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let path = folder.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            walk(root, &path, found);
        } else {
            let text = fs::read_to_string(root.join(&path)).expect("all files are texts");
            found.push((path.to_str().expect("names are text").to_owned(), text));
        }
    }
}
