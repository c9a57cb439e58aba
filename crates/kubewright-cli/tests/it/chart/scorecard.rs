//! `kubewright scorecard` on the bundle of the example, and on broken ones.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::bundle::{EXAMPLE, copy};
use crate::run::{self, Run, command};

const CSV: &str = "manifests/markdown-view.clusterserviceversion.yaml";
const CRD: &str = "manifests/view.example.com_markdownviews.yaml";

/// A copy of the example's bundle.
fn bundle() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&EXAMPLE.path("bundle"), folder.path());
    folder
}

fn scorecard(folder: &Path, line: &str) -> Run {
    run::run(command(&format!("scorecard . {line}")).current_dir(folder))
}

fn edit(folder: &Path, path: &str, from: &str, to: &str) {
    let text = fs::read_to_string(folder.join(path)).expect("a file");
    assert!(text.contains(from), "{path} has no {from}");
    fs::write(folder.join(path), text.replacen(from, to, 1)).expect("a file");
}

/// The state and the errors of a test.
#[track_caller]
fn result(run: &Run, name: &str) -> (String, String) {
    let list: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"));
    assert_eq!(list["kind"], "TestList");
    let items = list["items"].as_array().expect("items");
    let item = items
        .iter()
        .find(|item| item["spec"]["entrypoint"][1] == name)
        .unwrap_or_else(|| panic!("no {name}"));
    let result = &item["status"]["results"][0];
    assert_eq!(result["name"], name);
    (result["state"].as_str().expect("a state").to_owned(), result["errors"].to_string())
}

#[track_caller]
fn fails(folder: &Path, name: &str, error: &str) {
    let run = scorecard(folder, "--output json");
    assert_eq!(run.status, 1, "{run}");
    let (state, errors) = result(&run, name);
    assert!(state == "fail" && errors.contains(error), "{name}: {state} {errors}");
}

#[test]
fn the_bundle_of_the_example_passes() {
    let folder = bundle();
    let run = scorecard(folder.path(), "");
    assert_eq!(run.status, 0, "{run}");
    assert_eq!(run.stdout.matches("pass ").count(), 6, "{run}");
    let json = scorecard(folder.path(), "-o json");
    assert_eq!(json.status, 0, "{json}");
    assert_eq!(result(&json, "olm-bundle-validation").0, "pass");
    let olm = scorecard(folder.path(), "--selector suite=olm --list");
    assert_eq!(olm.stdout.lines().count(), 5, "{olm}");
    assert_eq!(scorecard(folder.path(), "--selector suite=none").status, 1);
}

#[test]
fn custom_resources_need_a_valid_spec() {
    let folder = bundle();
    edit(folder.path(), CSV, "\"spec\": {", "\"other\": {");
    fails(folder.path(), "basic-check-spec", "has no spec");
    let folder = bundle();
    edit(folder.path(), CSV, "\"replicas\": ", "\"replicas\": -");
    fails(folder.path(), "basic-check-spec", "should be greater than or equal to");
}

#[test]
fn fields_need_validation_and_descriptors() {
    let folder = bundle();
    edit(folder.path(), CSV, "\"replicas\": ", "\"copies\": 2,\n        \"replicas\": ");
    fails(folder.path(), "olm-crds-have-validation", "spec field copies");
    fails(folder.path(), "olm-spec-descriptors", "copies does not have a spec descriptor");
}

#[test]
fn crds_need_resources_and_status_descriptors() {
    let folder = bundle();
    edit(folder.path(), CSV, "      resources:\n", "      others:\n");
    fails(folder.path(), "olm-crds-have-resources", "markdownviews.view.example.com v1 has no resources");
    let folder = bundle();
    edit(folder.path(), CSV, "statusDescriptors:", "otherDescriptors:");
    fails(folder.path(), "olm-status-descriptors", "does not have a status descriptor");
}

#[test]
fn bundles_are_validated() {
    for (path, from, to, error) in [
        ("metadata/annotations.yaml", "registry+v1", "helm", "is helm, not registry+v1"),
        ("metadata/annotations.yaml", "default.v1: alpha", "default.v1: beta", "the default channel beta"),
        (CSV, "version: 0.1.0\n", "version: 0.2.0\n", "not NAME.v0.2.0"),
        (CSV, "containerPort: 8081", "containerPort: 80810", "must be between 1 and 65535"),
        (
            CSV,
            "deploymentName: markdown-view-controller-manager",
            "deploymentName: other",
            "the Deployment other",
        ),
        (CRD, "plural: markdownviews", "plural: views", "is not accepted"),
        // Only AllNamespaces is supported.
        (CSV, "supported: true", "supported: false", "no install mode"),
    ] {
        let folder = bundle();
        edit(folder.path(), path, from, to);
        fails(folder.path(), "olm-bundle-validation", error);
    }
    let folder = bundle();
    fs::remove_file(folder.path().join(CRD)).expect("a file");
    fails(folder.path(), "olm-bundle-validation", "which no CRD of the bundle serves");
    fs::remove_file(folder.path().join(CSV)).expect("a file");
    let missing = scorecard(folder.path(), "");
    assert!(missing.stderr.contains("has no ClusterServiceVersion"), "{missing}");
}

#[test]
fn unknown_tests_are_errors() {
    let folder = bundle();
    edit(folder.path(), "tests/scorecard/config.yaml", "- basic-check-spec\n", "- custom\n");
    let run = scorecard(folder.path(), "");
    assert_eq!(run.status, 1);
    assert!(run.stdout.starts_with("error custom\n"), "{run}");
}
