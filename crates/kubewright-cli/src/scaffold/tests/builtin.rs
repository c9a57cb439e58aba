//! Compares the fixtures of built-in kinds with the API server's responses.
//!
//! `UPDATE_GOLDEN=1 cargo test -p kubewright-cli fixtures_of_built_in_kinds` updates
//! templates/tests/builtin.yaml.

use std::fs;

use kubewright_apis::facts;
use kubewright_apiserver::{ApiServer, Options};
use kubewright_manifests::yaml;
use kubewright_runtime::Client;
use serde_json::Value;

use super::super::samples;

/// Metadata that the API server sets.
const SET_BY_SERVER: [&str; 6] =
    ["creationTimestamp", "generation", "managedFields", "namespace", "resourceVersion", "uid"];

#[tokio::test]
async fn fixtures_of_built_in_kinds_match_the_api_server() {
    let mut answers = String::new();
    for known in facts::resources() {
        let Some(object) = samples::fixture(known.group, known.version, known.kind) else { continue };
        let server = ApiServer::new(Options::default());
        let object: kube::core::DynamicObject = serde_json::from_value(object).unwrap();
        let client = Client::new(kube::Client::new(server, "default")).dry_run();
        let client = if known.namespaced() { client.namespaced("default") } else { client };
        let answer = client.create(&object).await.unwrap_or_else(|error| panic!("{}: {error}", known.kind));
        let mut answer: Value = serde_json::to_value(answer).unwrap();
        for field in SET_BY_SERVER {
            answer["metadata"].as_object_mut().unwrap().remove(field);
        }
        answers += &yaml::document(&answer);
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/tests/builtin.yaml");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, &answers).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), answers);
}
