//! The GitHub workflows of this repository and of generated projects: pinned actions, existing runners, and
//! commands that this version understands.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use clap::Parser as _;
use serde_json::Value;

use super::Cli;

/// Our workflows, and those of a project. A test of the scaffold compares the latter with what `init` writes.
const FOLDERS: [&str; 2] = ["../../.github/workflows", "testdata/golden/init/.github/workflows"];

/// Labels of runner images that GitHub has removed.
const RETIRED: [&str; 8] = [
    "macos-11",
    "macos-12",
    "macos-13",
    "macos-14",
    "ubuntu-18.04",
    "ubuntu-20.04",
    "windows-2016",
    "windows-2019",
];

/// The workflows by path.
fn workflows() -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for folder in FOLDERS {
        let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
        for entry in entries.unwrap_or_else(|error| panic!("{folder}: {error}")) {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let name = format!("{folder}/{}", path.file_name().unwrap().display());
            let parsed: Value =
                serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(parsed["jobs"].is_object(), "{name} has no jobs");
            found.insert(name, parsed);
        }
    }
    found
}

/// All texts of the field `name`, at any depth.
fn texts<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                match value {
                    Value::String(text) if field == name => found.push(text),
                    value => texts(value, name, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, name, found)),
        _ => {}
    }
}

fn of<'a>(workflow: &'a Value, names: &[&str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in names {
        texts(workflow, name, &mut found);
    }
    found
}

/// The calls of kubewright in a script, with an image in place of variables.
fn calls(script: &str) -> Vec<Vec<String>> {
    let script = script.replace("$(", "\n").replace("&&", "\n").replace("||", "\n");
    let commands = script.split(['\n', ';', '|', '{', '}', ')']).map(str::trim);
    let calls = commands.filter(|command| command.split_whitespace().next() == Some("kubewright"));
    let word = |word: &str| {
        let word = word.trim_matches('"');
        if word.contains('$') { "example.com/shop:v1".to_owned() } else { word.to_owned() }
    };
    calls.map(|call| call.split_whitespace().map(word).collect()).collect()
}

#[test]
fn all_actions_are_pinned_to_a_major_version() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, workflow) in workflows() {
        for action in of(&workflow, &["uses"]) {
            let (action, version) = action.split_once('@').unwrap_or_else(|| panic!("{name}: {action}"));
            let number = version.strip_prefix('v').unwrap_or_default();
            assert!(number.parse::<u32>().is_ok(), "{name}: {action}@{version} is not a major version");
            versions.entry(action.to_owned()).or_default().insert(version.to_owned());
        }
    }
    assert!(versions.contains_key("actions/checkout"), "{versions:?}");
    for (action, versions) in versions {
        assert_eq!(versions.len(), 1, "{action} has several versions: {versions:?}");
    }
}

#[test]
fn a_release_is_published_after_all_checks_with_its_version_and_commit() {
    let workflows = workflows();
    let jobs = &workflows["../../.github/workflows/release.yml"]["jobs"];
    assert!(of(&jobs["check"], &["run"]).contains(&"cargo xtask ci"), "all steps");
    let needs = |job: &str| jobs[job]["needs"].as_str().unwrap_or_default().to_owned();
    assert_eq!(["binaries", "crates", "release"].map(needs), ["check", "binaries", "crates"]);
    let steps = jobs["binaries"]["steps"].as_array().unwrap();
    let is_build = |step: &&Value| step["run"].as_str().is_some_and(|run| run.starts_with("cargo build"));
    let build = steps.iter().find(is_build).expect("a step builds the binary");
    assert_eq!(build["env"]["KUBEWRIGHT_RELEASE"], "1");
    assert_eq!(build["env"]["KUBEWRIGHT_GIT_COMMIT"], "${{ github.sha }}");
}

#[test]
fn no_runner_is_retired() {
    let workflows = workflows();
    let labels: Vec<&str> =
        workflows.values().flat_map(|workflow| of(workflow, &["runs-on", "runner"])).collect();
    assert!(labels.contains(&"ubuntu-latest"), "{labels:?}");
    for label in labels {
        assert!(!RETIRED.contains(&label), "{label} is retired");
    }
}

#[test]
fn every_call_of_kubewright_parses() {
    let mut commands = BTreeSet::new();
    for (name, workflow) in workflows() {
        for script in of(&workflow, &["run"]) {
            for call in calls(script) {
                if let Err(answer) = Cli::try_parse_from(&call) {
                    panic!("{name}: `{}` does not parse: {answer}", call.join(" "));
                }
                commands.insert(call[1].clone());
            }
        }
    }
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    assert_eq!(commands, ["bundle", "chart", "image", "manifests", "scorecard"]);
}

#[test]
fn an_index_is_signed_with_its_manifests_and_the_chart_has_its_digest() {
    let workflows = workflows();
    let (_, release) =
        workflows.iter().find(|(name, _)| name.ends_with("init/.github/workflows/release.yml")).unwrap();
    let scripts = |job: &'static str| of(&release["jobs"][job], &["run"]);
    assert!(scripts("image").contains(&"cosign sign --yes --recursive \"$REFERENCE\""));
    assert_eq!(release["jobs"]["chart"]["needs"], "image");
    assert!(scripts("chart").contains(&"kubewright chart --image \"$REFERENCE\""));
    let output = release["jobs"]["image"]["outputs"]["reference"].as_str();
    assert_eq!(output, Some("${{ steps.image.outputs.reference }}"));
    // pipx hides ziglang in an environment of its own, where cargo-zigbuild does not find it.
    let zig = scripts("image").into_iter().find(|script| script.contains("cargo-zigbuild")).unwrap();
    assert!(zig.starts_with("pip install --user") && zig.contains(" ziglang"), "{zig}");
}
