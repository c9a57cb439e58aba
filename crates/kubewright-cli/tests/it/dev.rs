//! `kubewright dev` as one works with it: real projects, the real cargo, real kubectl in a second terminal.

mod builds;
mod example;
mod kept;
mod refusals;
mod running;
mod saves;

use std::fs;
use std::path::Path;

use crate::scaffold::Folder;

/// A project with one kind. Its name is that of its program and of its cluster, so that each test has its own.
fn project(name: &'static str) -> Folder {
    let folder = Folder::new(name);
    folder.done("init --domain example.com");
    folder.done("create api --group view --version v1 --kind Page");
    // Versions of dependencies as this workspace has them: they are built already, and no network is asked.
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    fs::copy(lock, folder.path().join("Cargo.lock")).expect("the workspace is locked");
    folder
}
