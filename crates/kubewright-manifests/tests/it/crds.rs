//! Generated CRDs of Rust types.

mod cronjob;
mod everything;
mod findings;
mod markdown_view;
mod shapes;

use kubewright_apiextensions::crd::{complete, prepare_create, set_defaults, validate_create, warnings};
use kubewright_cel::rules::Compiler;
use kubewright_manifests::crd::{self, Described};
use kubewright_manifests::yaml;
use serde_json::Value;

/// The API server's errors and warnings about a CRD.
fn judged(definition: &Value) -> Vec<String> {
    let mut object = definition.clone();
    complete(&mut object).expect("valid schemas");
    set_defaults(&mut object);
    prepare_create(&mut object);
    let errors = validate_create(&object, &Compiler);
    let errors = errors.iter().map(|error| format!("{}: {}", error.field, error.body()));
    errors.chain(warnings(&object, None)).collect()
}

/// The YAML of a CRD without findings.
#[track_caller]
fn text(described: &Described) -> String {
    assert_eq!(described.findings, []);
    assert_eq!(judged(&described.definition), [""; 0]);
    let typed = described.to_typed().expect("valid CRD");
    let same = serde_json::to_value(typed).expect("valid JSON");
    assert_eq!(same["spec"]["names"], described.definition["spec"]["names"]);
    yaml::document(&described.definition)
}

/// Compares with a file of `testdata/crds`.
#[track_caller]
fn same(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => "../../testdata/crds",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, text);
    });
}

fn schema(described: &Described) -> &Value {
    described.definition.pointer("/spec/versions/0/schema/openAPIV3Schema").expect("CRD has a schema")
}

fn rendered(described: &Described) -> String {
    let mut rendered: Vec<String> = described
        .findings
        .iter()
        .map(|finding| format!("{} {}: {}\n  {}", finding.code, finding.field, finding.message, finding.help))
        .collect();
    rendered.sort();
    rendered.join("\n")
}

#[test]
fn two_runs_give_the_same_bytes() {
    let [one, other] = [(); 2].map(|()| yaml::document(&crd::of::<cronjob::CronJob>().definition));
    assert_eq!(one, other);
}
