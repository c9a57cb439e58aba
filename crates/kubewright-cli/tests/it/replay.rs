//! Replays what a real kube-apiserver v1.36.4 answered, and compares.
//!
//! `tests/oracle` holds the recordings and the program that replays them. Every difference must be listed in
//! docs/differences.md, by scenario and step; one that is listed and does not show any more fails the test
//! too, so that the list stays true.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use kubewright_apiserver::serve::Listening;
use kubewright_apiserver::{ApiServer, Controllers, Options};
use serde_json::Value;
use tokio::process::Command;

/// Areas of built-in kinds, without what custom resources and server-side apply bring.
const AREAS: [&str; 15] = [
    "create",
    "crud",
    "delete",
    "discovery",
    "errors",
    "events",
    "health",
    "list",
    "namespaces",
    "patch",
    "subresources",
    "table",
    "update",
    "validation",
    "watch",
];

/// Marks of scenarios that need what the server cannot do yet.
const NOT_YET: [&str; 2] = ["customresourcedefinitions\"", "apply-patch+yaml"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_a_real_server_but_for_the_listed_differences() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let oracle = here.join("tests/oracle");
    let folder = tempfile::tempdir().unwrap();
    let scenarios = folder.path().join("scenarios");
    let count = select(&oracle.join("scenarios"), &scenarios);
    assert!(count > 80, "only {count} scenarios");

    let options = Options { controllers: Controllers::None, ..Options::default() };
    let server = Listening::open(ApiServer::new(options), 0).await.unwrap();
    let write = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let result = folder.path().join("result.json");
    let output = Command::new("python3")
        .arg(oracle.join("replay.py"))
        .args(["--server", &server.url(), "--without-managed-fields"])
        .arg("--ca")
        .arg(write("ca.crt", server.authority().pem()))
        .arg("--cert")
        .arg(write("admin.crt", &server.admin().cert_pem))
        .arg("--key")
        .arg(write("admin.key", &server.admin().key_pem))
        .arg("--json")
        .arg(&result)
        .arg(&scenarios)
        .stdin(Stdio::null())
        .output()
        .await
        .expect("python3 runs the replay: install it (Debian: apt-get install python3)");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let outcome: Value = serde_json::from_slice(&fs::read(&result).unwrap_or_else(|_| {
        panic!("replay.py wrote no result:\n{text}\n{}", String::from_utf8_lossy(&output.stderr))
    }))
    .unwrap();
    server.close().await;

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
    assert!(outcome["steps"].as_u64() > Some(1_200), "only {} steps were compared", outcome["steps"]);
}

/// Copies the scenarios that can be replayed; answers with how many there are.
fn select(from: &Path, to: &Path) -> usize {
    let mut count = 0;
    for area in AREAS {
        fs::create_dir_all(to.join(area)).unwrap();
        for entry in fs::read_dir(from.join(area)).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            if NOT_YET.iter().all(|mark| !text.contains(mark)) {
                fs::write(to.join(area).join(path.file_name().unwrap()), text).unwrap();
                count += 1;
            }
        }
    }
    count
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
