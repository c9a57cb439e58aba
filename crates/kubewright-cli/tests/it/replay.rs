//! Replays what a real kube-apiserver v1.36.4 answered against the program, and compares.
//!
//! `tests/oracle` holds the recordings and the script that replays them. Every difference must be listed in
//! docs/differences.md, by scenario and step; one that is listed and does not show any more fails the test
//! too, so that the list stays true.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::kubectl::process::Process;
use crate::run::command;

/// The areas that are replayed. `admission-serviceaccount` needs another server.
const AREAS: [&str; 30] = [
    "admission-plugins",
    "apply-more",
    "authz",
    "cel",
    "certificates",
    "cr-schema",
    "cr-validation",
    "crd",
    "create",
    "crud",
    "delete",
    "deletion",
    "discovery",
    "errors",
    "events",
    "health",
    "list",
    "namespaces",
    "negotiation",
    "openapi",
    "patch",
    "policies",
    "ssa",
    "subresources",
    "table",
    "tokens",
    "update",
    "validation",
    "watch",
    "webhooks",
];

#[test]
fn answers_are_those_of_a_real_server_but_for_the_listed_differences() {
    let areas: Vec<&str> = AREAS.iter().flat_map(|area| ["--only", area]).collect();
    let (outcome, text) = replay(&[], &areas);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));

    let different: BTreeSet<String> = outcome["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|step| step["equal"] == false)
        .map(|step| {
            let part = |name: &str| step[name].as_str().unwrap_or_default();
            format!("{}/{} #{}", part("area"), part("scenario"), part("step"))
        })
        .collect();
    let listed = listed(&here.join("../../docs/differences.md"));
    let unlisted: Vec<&String> = different.difference(&listed).collect();
    let gone: Vec<&String> = listed.difference(&different).collect();
    assert!(
        unlisted.is_empty(),
        "answers differ that docs/differences.md does not list: {unlisted:?}\n{text}"
    );
    assert!(gone.is_empty(), "equal now, take them off the list in docs/differences.md: {gone:?}");
    assert!(outcome["steps"].as_u64() > Some(3_950), "only {} steps were compared", outcome["steps"]);
}

#[test]
fn service_account_admission_is_that_of_a_real_server() {
    let on = ["--enable-admission-plugins", "ServiceAccount"];
    let (outcome, text) = replay(&on, &["--server-kind", "ServiceAccount"]);
    assert!(outcome["steps"].as_u64() > Some(60), "only {} steps were compared", outcome["steps"]);
    let different =
        outcome["results"].as_array().unwrap().iter().filter(|step| step["equal"] == false).count();
    assert_eq!(different, 0, "{text}");
}

/// Starts the program with these flags, and replays what `selection` selects. Returns the results, and the report.
fn replay(flags: &[&str], selection: &[&str]) -> (Value, String) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut server = Process::start(
        command("apiserver --controllers none --port 0 --kubeconfig").arg(&kubeconfig).args(flags),
        "",
    );
    let ready = server.line_with("ready https://");
    let url = ready.split_whitespace().nth(1).unwrap();
    let kubeconfig = fs::read_to_string(&kubeconfig).unwrap();
    let credential = |name: &str| -> PathBuf {
        let path = folder.path().join(name);
        let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap();
        let data = STANDARD.decode(line.trim_start_matches(':').trim().trim_matches('"')).unwrap();
        fs::write(&path, data).unwrap();
        path
    };
    let result = folder.path().join("result.json");
    let output = Command::new("python3")
        .arg(here.join("tests/oracle/replay.py"))
        .args(["--server", url])
        .arg("--ca")
        .arg(credential("certificate-authority-data"))
        .arg("--cert")
        .arg(credential("client-certificate-data"))
        .arg("--key")
        .arg(credential("client-key-data"))
        .arg("--json")
        .arg(&result)
        .args(selection)
        .arg(here.join("tests/oracle/scenarios"))
        .output()
        .expect("python3 runs the replay: install it (Debian: apt-get install python3)");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let outcome: Value = serde_json::from_slice(&fs::read(&result).unwrap_or_else(|_| {
        panic!("replay.py wrote no result:\n{text}\n{}", String::from_utf8_lossy(&output.stderr))
    }))
    .unwrap();
    (outcome, text)
}

/// The steps that the list names: lines of its tables that begin with a scenario in backticks.
fn listed(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.filter(|(scenario, _)| scenario.contains(" #"))
        .flat_map(|(scenario, _)| {
            let (name, steps) = scenario.split_once(" #").unwrap_or_default();
            steps
                .split(", ")
                .map(|step| format!("{name} #{}", step.trim_start_matches('#')))
                .collect::<Vec<_>>()
        })
        .collect()
}
