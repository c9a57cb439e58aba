//! Compiler errors of code that misses a trait of the runtime: the message and its notes say what to write.
//!
//! The cases are compiled as examples of a project, because a project of these tests uses the builds of the workspace.
//! With trybuild, the whole runtime would be compiled again.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::Folder;
use crate::run::{share_dependencies, target};

/// Each case with a part of the expected message, and the starts of its notes.
const CASES: &[(&str, &str, &str, &[&str])] = &[
    (
        "no_reconciler",
        "use kubewright::prelude::*;
struct Labeller;
fn main() {}
pub fn register(manager: &Manager) -> Result<(), kubewright::RegisterError> {
    manager.controller(Labeller).register()
}
",
        "`Labeller` is not a reconciler",
        &[
            "write `impl Reconciler for Labeller` with `type Object` and `async fn reconcile`",
            "an async function `fn(&Object, &Context) -> Result<Outcome>` becomes one with `reconcile_fn(function)`",
        ],
    ),
    (
        "wrong_argument",
        "use k8s_openapi::api::core::v1::ConfigMap;
use kubewright::prelude::*;
use kubewright::{Context, Result, reconcile_fn};
async fn label(map: ConfigMap, cx: &Context) -> Result<Outcome> {
    let _ = (map, cx);
    Ok(Outcome::done())
}
fn main() {}
pub fn register(manager: &Manager) -> Result<(), kubewright::RegisterError> {
    manager.controller(reconcile_fn::<ConfigMap, _>(label)).register()
}
",
        "type mismatch in function arguments",
        &["expected function signature `fn(&ConfigMap, &kubewright::Context) -> _`"],
    ),
    (
        "no_kind",
        "use kubewright::prelude::*;
use kubewright::{Context, Result};
struct Labeller;
pub struct Order;
impl Reconciler for Labeller {
    type Object = Order;
    async fn reconcile(&self, _: &Order, _: &Context) -> Result<Outcome> {
        Ok(Outcome::done())
    }
}
fn main() {}
",
        "`Order` is not a Kubernetes object that can be written",
        &["use a type of k8s-openapi, a type with `#[derive(CustomResource)]`, or `DynamicObject`"],
    ),
    (
        "dynamic_as_typed",
        "use kube::api::DynamicObject;
use kubewright::prelude::*;
use kubewright::{Context, Result};
struct Labeller;
impl Reconciler for Labeller {
    type Object = DynamicObject;
    async fn reconcile(&self, _: &DynamicObject, _: &Context) -> Result<Outcome> {
        Ok(Outcome::done())
    }
}
fn main() {}
pub fn register(manager: &Manager) -> Result<(), kubewright::RegisterError> {
    manager.controller(Labeller).register()
}
",
        "the kind of this type is known only at run time",
        &["for a reconciler of `DynamicObject`, use `Manager::dynamic_controller`"],
    ),
];

/// The errors of an example: each message with its notes.
fn errors(output: &str, example: &str) -> Vec<(String, Vec<String>)> {
    let messages = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let errors = messages.filter(|line| {
        line["reason"] == "compiler-message"
            && line["target"]["name"] == example
            && line["message"]["level"] == "error"
    });
    let text = |message: &Value| message["message"].as_str().unwrap_or_default().to_owned();
    errors
        .map(|line| {
            let notes = line["message"]["children"].as_array().into_iter().flatten();
            (text(&line["message"]), notes.filter(|note| note["level"] == "note").map(text).collect())
        })
        .collect()
}

#[test]
fn compiler_errors_name_the_trait_and_what_to_write() {
    let folder = Folder::new("diagnostics");
    folder.done("init --domain example.com");
    fs::create_dir(folder.path().join("examples")).expect("a folder");
    for (name, source, ..) in CASES {
        folder.write(&format!("examples/{name}.rs"), source);
    }
    share_dependencies(&folder.path());
    let output = Command::new("cargo")
        .args(["check", "--examples", "--keep-going", "--message-format", "json"])
        .current_dir(folder.path())
        .env("CARGO_TARGET_DIR", target())
        .env("CARGO_NET_OFFLINE", "true")
        .output()
        .expect("cargo starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success(), "the cases compile");
    for (name, _, message, notes) in CASES {
        let errors = errors(&stdout, name);
        let found = errors.iter().find(|(shown, _)| shown.contains(message));
        let (_, shown) = found.unwrap_or_else(|| panic!("{name}: no {message:?} in {errors:#?}\n{stderr}"));
        for note in *notes {
            assert!(shown.iter().any(|it| it.starts_with(note)), "{name}: no {note:?} in {shown:#?}");
        }
    }
}
