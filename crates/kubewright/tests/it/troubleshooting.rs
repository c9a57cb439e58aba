//! The messages in docs/troubleshooting.md are those of the code.

use std::fs;
use std::path::Path;

const PAGE: &str = include_str!("../../../../docs/troubleshooting.md");
const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Messages of rustc, of other crates, and of Kubernetes.
const FOREIGN: [&str; 3] = [
    "expected …, found a different …",
    "none of the v1_* features are enabled on the k8s-openapi crate",
    "the object has been modified; please apply your changes to the latest version and try again",
];

/// All sources of our crates, with strings of several lines joined and without escapes.
fn sources() -> String {
    let mut text = String::new();
    for entry in fs::read_dir(CRATES).expect("the crates are there") {
        read(&entry.expect("the crates can be read").path().join("src"), &mut text);
    }
    let mut joined = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("\\\n") {
        joined.push_str(before);
        rest = after.trim_start();
    }
    joined.push_str(rest);
    joined.replace("\\\"", "\"")
}

fn read(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("the sources can be read").path();
        if path.is_dir() {
            read(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).expect("the source can be read"));
        }
    }
}

#[test]
fn every_message_is_in_the_sources() {
    let sources = sources();
    let headings = PAGE.lines().filter_map(|line| line.strip_prefix("### `"));
    // Prose may follow the message; a message may contain backticks.
    let messages: Vec<&str> = headings.filter_map(|line| Some(line.rsplit_once('`')?.0)).collect();
    assert!(messages.len() > 25, "{} messages", messages.len());
    for message in messages.into_iter().filter(|message| !FOREIGN.contains(message)) {
        let parts: Vec<&str> = message.split('…').map(str::trim).filter(|part| part.len() > 4).collect();
        assert!(!parts.is_empty(), "{message:?} has no fixed text");
        for part in parts {
            assert!(sources.contains(part), "docs/troubleshooting.md: no source has {part:?} of {message:?}");
        }
    }
}
