//! The examples of this repository that are projects of `kubewright init`: their layout is the current scaffold, and
//! their manifests are those of their code.

use std::fs;
use std::path::{Path, PathBuf};

use super::Folder;
use crate::run::{command, run};

/// Files that the CronJob example has changed, as a user does. Everything else is the scaffold, byte for byte.
const EDITED: &[&str] = &[
    // A member of this repository's workspace.
    "Cargo.toml",
    "Dockerfile",
    "Makefile",
    // Formatted with this repository's rustfmt.toml.
    "tests/e2e/main.rs",
    "tests/it/cron_job_v1_webhook.rs",
    // The operator.
    "README.md",
    "config/samples/batch_v1_cronjob.yaml",
    "config/samples/batch_v2_cronjob.yaml",
    "src/api/v1/cron_job.rs",
    "src/api/v2/cron_job.rs",
    "src/controllers/cron_job.rs",
    "src/lib.rs",
    "src/webhooks/v1/cron_job.rs",
    "src/webhooks/v1/cron_job_conversion.rs",
    "tests/fixtures/webhooks/v1/cron_job/default/sample.expected.yaml",
    "tests/fixtures/webhooks/v1/cron_job/default/sample.yaml",
    "tests/fixtures/webhooks/v1/cron_job/valid/sample.yaml",
    "tests/it/cron_job.rs",
    "tests/it/main.rs",
    // Generated from the code by `kubewright manifests`, which another test checks.
    "config/crd/bases/batch.tutorial.kubebuilder.io_cronjobs.yaml",
    "config/rbac/role.yaml",
];

/// Files that the repository has once for all its packages.
const LEFT_OUT: &[&str] = &[".dockerignore", ".github/workflows/lint.yml", ".github/workflows/test.yml"];

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cronjob")
}

/// The commands of the first console block of a README.
fn commands(readme: &str) -> Vec<&str> {
    let block = readme.split("```").nth(1).expect("the README has a block");
    block.lines().filter_map(|line| line.strip_prefix("kubewright ")).collect()
}

#[test]
fn the_cron_job_example_has_the_layout_of_the_scaffold() {
    let example = example();
    let readme = fs::read_to_string(example.join("README.md")).expect("the example has a README");
    let commands = commands(&readme);
    assert_eq!(commands.len(), 5, "{commands:?}");
    let folder = Folder::new("cronjob");
    for line in commands {
        // Without a version, the project would depend on this checkout by its path.
        let version = if line.starts_with("init ") { " --kubewright-version 0.1.0" } else { "" };
        folder.done(&format!("{line}{version}"));
    }
    let mut differ = Vec::new();
    for (path, text) in folder.files() {
        let there = fs::read_to_string(example.join(&path)).ok();
        let is_expected = match &there {
            Some(there) => *there == text || EDITED.contains(&path.as_str()),
            None => LEFT_OUT.contains(&path.as_str()),
        };
        if !is_expected {
            differ.push(path);
        }
    }
    assert!(
        differ.is_empty(),
        "{differ:#?} differ from the scaffold; update them with `cargo run -- update --project examples/cronjob`, or list \
         a deliberate change in EDITED"
    );
}

/// Every file of the record is unchanged, so that an update has nothing to merge.
#[test]
fn the_cron_job_example_needs_no_update() {
    let updated = run(command("update --dry-run --project").arg(example()));
    assert_eq!((updated.status, updated.stdout.as_str()), (0, ""), "{updated}");
}

#[test]
fn the_manifests_of_the_cron_job_example_are_up_to_date() {
    let checked = run(command("manifests --check").arg(example()));
    assert_eq!((checked.status, checked.stdout.as_str()), (0, ""), "{checked}");
}

/// The code of docs/cronjob.md is a copy of the example's lines, and its commands are those of the README.
#[test]
fn the_chapter_about_the_cron_job_example_shows_its_code() {
    let example = example();
    let chapter = example.join("../../docs/cronjob.md");
    let chapter = fs::read_to_string(chapter).expect("the chapter is there");
    let mut files = Vec::new();
    super::walk(&example.join("src"), Path::new(""), &mut files);
    super::walk(&example.join("tests/it"), Path::new(""), &mut files);
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let sources: Vec<Vec<String>> = files.iter().map(|(_, text)| lines(text)).collect();
    let blocks: Vec<Vec<String>> = chapter
        .split("```rust\n")
        .skip(1)
        .map(|rest| lines(rest.split("```").next().unwrap_or_default()))
        .collect();
    assert!(blocks.len() >= 10, "the chapter has {} blocks", blocks.len());
    for block in blocks {
        let is_shown = sources.iter().any(|source| source.windows(block.len()).any(|window| window == block));
        assert!(is_shown, "docs/cronjob.md: these lines are not in the example:\n{}", block.join("\n"));
    }
    let readme = fs::read_to_string(example.join("README.md")).expect("the example has a README");
    for line in commands(&readme) {
        assert!(chapter.contains(&format!("kubewright {line}\n")), "docs/cronjob.md lacks {line}");
    }
}
