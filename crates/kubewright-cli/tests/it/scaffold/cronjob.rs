//! The CronJob example: its manifests are those of its code, and the chapter about it shows its code.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{command, run};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cronjob")
}

/// The commands of the first console block of a README.
fn commands(readme: &str) -> Vec<&str> {
    let block = readme.split("```").nth(1).expect("the README has a block");
    block.lines().filter_map(|line| line.strip_prefix("kubewright ")).collect()
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
