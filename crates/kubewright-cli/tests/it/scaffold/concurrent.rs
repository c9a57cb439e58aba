//! Several commands in one project at the same time, and files that are not regular files.

use std::process::Command;
use std::thread;

use super::Folder;

#[test]
fn concurrent_commands_change_the_project_one_after_another() {
    let folder = Folder::with_order();
    let kinds = ["Invoice", "Parcel", "Refund", "Voucher", "Basket", "Receipt"];
    thread::scope(|scope| {
        for kind in kinds {
            let folder = &folder;
            scope.spawn(move || folder.done(&format!("create api --group sales --version v1 --kind {kind}")));
        }
    });
    let project = folder.read("PROJECT");
    let module = folder.read("src/controllers.rs");
    for kind in kinds {
        assert!(project.contains(&format!("kind: {kind}\n")), "{kind} is missing:\n{project}");
        assert!(module.contains(&format!("mod {};", kind.to_lowercase())), "{kind} is missing:\n{module}");
    }
    // The result does not depend on the commands being concurrent: nothing is left to change.
    let files = folder.files();
    assert!(!files.iter().any(|(path, _)| path.ends_with(".kubewright")), "no staged file is left");
    folder.done("update");
    assert_eq!(folder.files(), files);
}

#[test]
fn one_of_two_concurrent_inits_creates_the_project() {
    let folder = Folder::new("shop");
    let init = |domain: &str| folder.run(&format!("init --domain {domain} --kubewright-version 0.1.0"));
    let runs = thread::scope(|scope| {
        let inits =
            ["one.com", "two.com", "three.com", "four.com"].map(|domain| scope.spawn(move || init(domain)));
        inits.map(|init| init.join().expect("no panic"))
    });
    let (done, refused): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.status == 0);
    assert_eq!(done.len(), 1);
    for run in refused {
        assert!(run.stderr.contains("already contains a project"), "{run}");
    }
}

#[test]
fn a_fifo_as_project_file_is_rejected() {
    let folder = Folder::new("shop");
    let made =
        Command::new("mkfifo").arg(folder.path().join("PROJECT")).status().expect("mkfifo (coreutils)");
    assert!(made.success());
    let run = folder.run("create api --group sales --version v1 --kind Order");
    assert_ne!(run.status, 0);
    assert!(run.stderr.contains("PROJECT is not a regular file"), "{run}");
}
