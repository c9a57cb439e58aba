//! Replays recorded responses of a real kube-apiserver v1.36.4 against the binary.
//!
//! `tests/oracle` contains the recordings and the replay script. Every difference must be listed in
//! docs/differences.md by scenario and step. A listed difference that no longer occurs also fails the test.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::kubectl::process::Process;
use crate::run::command;

/// Needs other server flags. Replayed by [`service_account_admission_matches_the_recordings`].
const SERVICE_ACCOUNT: &str = "admission-serviceaccount";

/// The areas of the recordings, except for [`SERVICE_ACCOUNT`].
fn areas() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/scenarios");
    let areas = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut areas: Vec<String> = areas.filter(|area| area != SERVICE_ACCOUNT).collect();
    areas.sort();
    areas
}

#[test]
fn responses_match_the_recordings_except_for_listed_differences() {
    let areas = areas();
    let selection: Vec<&str> = areas.iter().flat_map(|area| ["--only", area.as_str()]).collect();
    let (outcome, text) = replay(&[], &selection);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));

    let different = different(&outcome);
    let replayed: BTreeSet<&str> =
        outcome["results"].as_array().unwrap().iter().filter_map(|step| step["area"].as_str()).collect();
    assert_eq!(replayed, areas.iter().map(String::as_str).collect(), "areas without a compared step");
    let listed = listed(&here.join("../../docs/differences.md"));
    let mut unlisted: BTreeSet<String> = different.difference(&listed).cloned().collect();
    // managedFields are sorted by their times, which have whole seconds. If a second ends between two steps, a recorded
    // order can differ here, as it does on kube-apiserver. Such a difference does not occur again.
    for _ in 0..2 {
        let areas: BTreeSet<&str> = unlisted.iter().filter_map(|step| step.split('/').next()).collect();
        if areas.is_empty() {
            break;
        }
        let selection: Vec<&str> = areas.into_iter().flat_map(|area| ["--only", area]).collect();
        let again = self::different(&replay(&[], &selection).0);
        unlisted.retain(|step| again.contains(step));
    }
    let gone: Vec<&String> = listed.difference(&different).collect();
    assert!(
        unlisted.is_empty(),
        "answers differ that docs/differences.md does not list: {unlisted:?}\n{text}"
    );
    assert!(gone.is_empty(), "equal now, take them off the list in docs/differences.md: {gone:?}");
    assert!(outcome["steps"].as_u64() > Some(4_100), "only {} steps were compared", outcome["steps"]);
}

#[test]
fn service_account_admission_matches_the_recordings() {
    let on = ["--enable-admission-plugins", "ServiceAccount"];
    let (outcome, text) = replay(&on, &["--server-kind", "ServiceAccount"]);
    assert!(outcome["steps"].as_u64() > Some(60), "only {} steps were compared", outcome["steps"]);
    let different =
        outcome["results"].as_array().unwrap().iter().filter(|step| step["equal"] == false).count();
    assert_eq!(different, 0, "{text}");
}

/// The steps with another response.
fn different(outcome: &Value) -> BTreeSet<String> {
    let steps = outcome["results"].as_array().unwrap().iter();
    let different = steps.filter(|step| step["equal"] == false).map(|step| {
        let part = |name: &str| step[name].as_str().unwrap_or_default();
        format!("{}/{} #{}", part("area"), part("scenario"), part("step"))
    });
    different.collect()
}

/// Starts the server and replays a selection. Returns the results and the report.
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

/// The steps listed in docs/differences.md: table rows that start with a scenario in backticks.
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
