//! The examples are projects of the scaffold, and stay up to date with it.
//!
//! They are members of this repository's workspace, so some files differ: those in [`OWN`], and lines in [`CHANGED`].
//! `UPDATE_EXAMPLES=1 cargo test -p kubewright-cli examples` writes the others.

use std::fs;
use std::path::{Path, PathBuf};

use super::Folder;

const INIT: &str = "init --domain example.com --kubewright-version 0.1.0";
const MARKDOWN_VIEW: &[&str] = &[
    INIT,
    "create api --group view --version v1 --kind MarkdownView",
    "create webhook --group view --version v1 --kind MarkdownView --defaulting --programmatic-validation",
    "create api --group view --version v2 --kind MarkdownView --controller=false",
    "create webhook --group view --version v1 --kind MarkdownView --conversion --spoke v2",
];
const SAMPLE_CONTROLLER: &[&str] =
    &[INIT, "create api --group samplecontroller --version v1alpha1 --kind Bar"];
const COLLECTOR: &[&str] = &[INIT, "create api --group apps --version v1 --kind Deployment --resource=false"];
const CRON_JOB: &[&str] = &[
    "init --domain tutorial.kubebuilder.io --kubewright-version 0.1.0",
    "create api --group batch --version v1 --kind CronJob",
    "create webhook --group batch --version v1 --kind CronJob --defaulting --programmatic-validation",
    "create api --group batch --version v2 --kind CronJob --controller=false",
    "create webhook --group batch --version v1 --kind CronJob --conversion --spoke v2",
];

/// Files that an example does not have: the workspace has them.
const ABSENT: &[&str] = &[".dockerignore", ".github/", ".kubewright/", "LICENSE"];
/// Files that the author of a project writes, and those that `kubewright manifests` generates.
const OWN: &[&str] = &[
    "Cargo.toml",
    "Dockerfile",
    "README.md",
    "config/crd/bases/",
    "config/rbac/role.yaml",
    "config/samples/apps_",
    "config/samples/batch_",
    "config/samples/samplecontroller_",
    "config/samples/view_",
    "src/api/v1/",
    "src/api/v1alpha1/",
    "src/api/v2/",
    "src/controllers/",
    "src/lib.rs",
    "src/webhooks/v1/",
    "tests/",
];
/// Lines of the Makefile that differ in a workspace: the program is built from it, and images need all of it.
const CHANGED: &[(&str, &str)] = &[
    (
        "KUBEWRIGHT ?= kubewright\n",
        "KUBEWRIGHT ?= $(CARGO) run --quiet --manifest-path ../../Cargo.toml --bin kubewright --\n",
    ),
    ("build -t $(IMG) .,", "build -f Dockerfile -t $(IMG) ../..,"),
    ("--tag $(IMG) .,", "--tag $(IMG) -f Dockerfile ../..,"),
];

#[test]
fn the_markdown_view_is_up_to_date_with_the_scaffold() {
    is_up_to_date("markdown-view", MARKDOWN_VIEW);
}

#[test]
fn the_sample_controller_is_up_to_date_with_the_scaffold() {
    is_up_to_date("sample-controller", SAMPLE_CONTROLLER);
}

#[test]
fn the_collector_is_up_to_date_with_the_scaffold() {
    is_up_to_date("collector", COLLECTOR);
}

#[test]
fn the_cron_job_is_up_to_date_with_the_scaffold() {
    is_up_to_date("cronjob", CRON_JOB);
}

/// Counts the lines of code in the reconciler and its owned objects, without blank lines and comments. The original Go
/// controller is one file with both.
#[test]
fn the_controller_of_the_markdown_view_has_at_most_120_lines_of_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/markdown-view/src/controllers");
    let files = ["markdown_view.rs", "markdown_view/children.rs"];
    let text = files.map(|file| fs::read_to_string(folder.join(file)).expect("a file of the controller"));
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    let lines = text.iter().flat_map(|text| text.lines()).filter(is_code).count();
    assert!(lines <= 120, "{files:?} have {lines} lines of code");
}

#[track_caller]
fn is_up_to_date(name: &'static str, commands: &[&str]) {
    let folder = Folder::new(name);
    for line in commands {
        folder.done(line);
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let starts = |path: &str, list: &[&str]| list.iter().any(|start| path.starts_with(start));
    for (path, text) in folder.files().into_iter().filter(|(path, _)| !starts(path, ABSENT)) {
        let place = example.join(&path);
        if starts(&path, OWN) {
            assert!(place.is_file(), "{name} has no {path}, which the scaffold has");
            continue;
        }
        let expected = if path == "Makefile" { changed(text) } else { text };
        if std::env::var_os("UPDATE_EXAMPLES").is_some() {
            write(&place, &expected);
        }
        let actual = fs::read_to_string(&place).unwrap_or_default();
        let hint = "run UPDATE_EXAMPLES=1 cargo test -p kubewright-cli examples";
        assert_eq!(actual, expected, "{name}/{path} differs from the scaffold; {hint}");
    }
}

fn changed(mut makefile: String) -> String {
    for (from, to) in CHANGED {
        assert!(makefile.contains(from), "the Makefile has no line {from:?}");
        makefile = makefile.replace(from, to);
    }
    makefile
}

fn write(place: &PathBuf, text: &str) {
    fs::create_dir_all(place.parent().expect("it has a folder")).expect("a folder");
    fs::write(place, text).expect("a file");
}
