//! `kubewright dev` with real projects, cargo and kubectl.

mod builds;
mod example;
mod examples;
mod kept;
mod page;
mod refusals;
mod running;
mod saves;

use std::fs;
use std::path::Path;

use crate::scaffold::Folder;

/// A project with one kind. Each test uses another name, so that binary and cluster are separate.
fn project(name: &'static str) -> Folder {
    let folder = Folder::new(name);
    folder.done("init --domain example.com");
    folder.done("create api --group view --version v1 --kind Page");
    // Use this workspace's dependency versions: they are built already, and need no network.
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    fs::copy(lock, folder.path().join("Cargo.lock")).expect("the workspace is locked");
    folder
}
