//! Projects as they should be, in testdata/golden: that of `init` whole, of others what differs from it.
//!
//! `UPDATE_GOLDEN=1 cargo test -p kubewright-cli golden` writes them anew; the difference is for review.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::Folder;

const INIT: &str = "init --domain example.com --kubewright-version 0.1.0";
const ORDER: &str = "create api --group sales --version v1 --kind Order";

type Files = BTreeMap<String, String>;

fn made(lines: &[&str]) -> Files {
    let folder = Folder::new("shop");
    for line in lines {
        folder.done(line);
    }
    // The record of the scaffold repeats the other files.
    folder.files().into_iter().filter(|(path, _)| !path.starts_with(".kubewright/")).collect()
}

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/golden").join(name)
}

#[track_caller]
fn is_golden(name: &str, files: &Files) {
    let place = place(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let _ = fs::remove_dir_all(&place);
        for (path, text) in files {
            let path = place.join(path);
            fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
    }
    let mut golden = Vec::new();
    super::walk(&place, Path::new(""), &mut golden);
    let golden: Files = golden.into_iter().collect();
    let paths = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(paths(files), paths(&golden), "files of {name}");
    for (path, text) in files {
        assert_eq!(*text, golden[path], "{name}/{path}");
    }
}

/// Compares what differs from a project that was just started.
#[track_caller]
fn differs_as_golden(name: &str, lines: &[&str]) {
    let start = made(&[INIT]);
    let mut files = made(lines);
    files.retain(|path, text| start.get(path) != Some(text));
    is_golden(name, &files);
}

#[test]
fn a_project_that_was_just_started_is_golden() {
    is_golden("init", &made(&[INIT]));
}

#[test]
fn a_project_with_a_kind_is_golden() {
    differs_as_golden("single", &[INIT, ORDER]);
}

#[test]
fn a_project_with_two_versions_is_golden() {
    differs_as_golden("two-versions", &[INIT, ORDER, "create api --group sales --version v2 --kind Order"]);
}

#[test]
fn a_project_with_two_controllers_of_a_kind_is_golden() {
    let backup = format!("{ORDER} --controller-name order-backup");
    differs_as_golden("two-controllers", &[INIT, ORDER, &backup]);
}

#[test]
fn a_project_with_several_groups_is_golden() {
    let init = format!("{INIT} --multigroup");
    differs_as_golden(
        "multigroup",
        &[&init, ORDER, "create api --group stock --version v1beta1 --kind Warehouse"],
    );
}

#[test]
fn a_project_that_follows_a_kind_of_kubernetes_is_golden() {
    differs_as_golden(
        "core",
        &[INIT, "create api --group apps --version v1 --kind Deployment --resource=false"],
    );
}

#[test]
fn a_project_with_a_kind_of_the_cluster_is_golden() {
    differs_as_golden("cluster", &[INIT, &format!("{ORDER} --namespaced=false")]);
}

#[test]
fn a_project_for_its_own_namespace_is_golden() {
    differs_as_golden("namespaced", &[&format!("{INIT} --namespaced"), ORDER]);
}

#[test]
fn groups_that_came_later_make_the_same_project() {
    let init = format!("{INIT} --multigroup");
    assert_eq!(made(&[INIT, ORDER, "edit --multigroup"]), made(&[&init, ORDER]));
    assert_eq!(made(&[&init, ORDER, "edit --multigroup=false"]), made(&[INIT, ORDER]));
}

#[test]
fn an_operator_that_got_its_own_namespace_later_is_the_same() {
    let init = format!("{INIT} --namespaced");
    assert_eq!(made(&[INIT, ORDER, "edit --namespaced"]), made(&[&init, ORDER]));
    assert_eq!(made(&[&init, ORDER, "edit --namespaced=false"]), made(&[INIT, ORDER]));
}

#[test]
fn a_project_of_definitions_that_exist_is_golden() {
    let from = |name: &str| {
        format!("create api --from-crd {}/testdata/crds/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
    };
    differs_as_golden("from-crd", &[INIT, "edit --multigroup", &from("odd"), &from("markdown_view")]);
}

#[test]
fn what_was_added_can_be_taken_back_without_a_trace() {
    let delete = "delete api --group sales --version v1 --kind Order";
    assert_eq!(made(&[INIT, ORDER, delete]), made(&[INIT]));
}
