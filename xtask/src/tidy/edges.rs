//! Allowed dependencies between the crates.
//!
//! Owns the table of edges in ARCHITECTURE.md. Dependencies point downward only. Forbidden packages are
//! searched in the whole dependency tree of a crate, not only in its manifest.

use std::collections::BTreeSet;

use cargo_metadata::DependencyKind;

use super::manifests::Manifest;
use super::rust::Tokens;
use super::workspace::{Dependency, Member};
use super::{Files, Violation, Workspace};

const APISERVER: &str = "kubewright-apiserver";

/// Crates that do no I/O and read no clock.
const PURE: &[&str] = &[
    "kubewright-apimachinery",
    "kubewright-structured-merge",
    "kubewright-cel",
    "kubewright-apis",
    "kubewright-apiextensions",
];

/// Allowed dependencies between our crates.
const EDGES: &[(&str, &[&str])] = &[
    (
        "kubewright-cli",
        &[
            "kubewright-manifests",
            "kubewright-apiserver",
            "kubewright-cluster",
            "kubewright-page",
            "kubewright-runtime",
            "kubewright-apimachinery",
            "kubewright-apis",
            "kubewright-apiextensions",
        ],
    ),
    (
        "kubewright-envtest",
        &[
            "kubewright-apiserver",
            "kubewright-cluster",
            "kubewright-runtime",
            "kubewright-manifests",
            "kubewright-apimachinery",
        ],
    ),
    ("kubewright", &["kubewright-page", "kubewright-runtime", "kubewright-macros", "kubewright-manifests"]),
    ("kubewright-page", &["kubewright-runtime"]),
    ("kubewright-cluster", &["kubewright-runtime", "kubewright-apimachinery", "kubewright-apis"]),
    ("kubewright-runtime", &["kubewright-apimachinery", "kubewright-structured-merge", "kubewright-sync"]),
    (
        "kubewright-manifests",
        &["kubewright-apimachinery", "kubewright-cel", "kubewright-apis", "kubewright-apiextensions"],
    ),
    (
        "kubewright-apiserver",
        &[
            "kubewright-apimachinery",
            "kubewright-structured-merge",
            "kubewright-cel",
            "kubewright-apis",
            "kubewright-apiextensions",
            "kubewright-sync",
        ],
    ),
    ("kubewright-macros", &[]),
    (
        "kubewright-apiextensions",
        &["kubewright-cel", "kubewright-structured-merge", "kubewright-apimachinery"],
    ),
    ("kubewright-apis", &["kubewright-cel", "kubewright-structured-merge", "kubewright-apimachinery"]),
    ("kubewright-cel", &["kubewright-apimachinery"]),
    ("kubewright-structured-merge", &["kubewright-apimachinery"]),
    ("kubewright-apimachinery", &[]),
    ("kubewright-sync", &[]),
];

/// Examples use the same crates as an operator.
const EXAMPLES: &[&str] = &["kubewright"];

/// Members without restrictions. No other crate may depend on them.
const FREE: &[&str] = &[
    "kubewright-bench",
    "kubewright-bench-ours",
    "kubewright-bench-peer",
    "kubewright-bench-work",
    "workspace-features",
    "xtask",
];

/// Crates that may depend on clap.
const KNOWS_CLAP: &[&str] = &["kubewright-cli", "kubewright", "kubewright-bench", "xtask"];

/// Members whose whole dependency tree is checked.
pub(super) const GUARDED: &[&str] = &[
    "kubewright-apimachinery",
    "kubewright-structured-merge",
    "kubewright-cel",
    "kubewright-apis",
    "kubewright-apiextensions",
    APISERVER,
];

/// Crates that do I/O.
const IO: &[&str] =
    &["tokio", "hyper", "reqwest", "ureq", "async-std", "smol", "mio", "socket2", "rustls", "kube-client"];

/// Clients of the Kubernetes API.
const CLIENTS: &[&str] = &["kube", "kube-client", "kube-runtime"];

/// Modules of `std` that do I/O, read a clock or start threads. Of `std::net` only some types are impure.
const IMPURE_MODULES: &[&str] = &["env", "fs", "os", "process", "thread"];
const IMPURE_NAMES: &[&[&str]] = &[
    &["Instant", ":", ":", "now"],
    &["SystemTime", ":", ":", "now"],
    &["TcpListener"],
    &["TcpStream"],
    &["ToSocketAddrs"],
    &["UdpSocket"],
];

pub(super) fn check(workspace: &Workspace, files: &Files, violations: &mut Vec<Violation>) {
    for member in &workspace.members {
        let path = member.manifest();
        let manifest = Manifest::parse(files.text(&path).unwrap_or_default());
        let Some(allowed) = allowed(member) else {
            violations.push(Violation {
                path,
                line: manifest.package_line(),
                what: format!("`{}` is not in the table of edges", member.name),
                fix: "add it to xtask/src/tidy/edges.rs and ARCHITECTURE.md, or make it a module".into(),
            });
            continue;
        };
        for dependency in &member.dependencies {
            let wrong = match dependency.kind {
                DependencyKind::Development => upward_for_tests(workspace, member, dependency),
                _ => edge(workspace, member, dependency, allowed).or_else(|| clap(member, dependency)),
            };
            if let Some((what, fix)) = wrong {
                violations.push(Violation {
                    path: path.clone(),
                    line: manifest.dependency_line(&dependency.key),
                    what,
                    fix,
                });
            }
            if dependency.kind == DependencyKind::Development && is_upward(member, &dependency.name) {
                seen_twice(member, &dependency.key, files, violations);
            }
        }
        closure(member, &manifest, violations);
    }
    for member in workspace.members.iter().filter(|member| PURE.contains(&member.name.as_str())) {
        impure(member, files, violations);
    }
}

fn allowed(member: &Member) -> Option<Allowed> {
    if FREE.contains(&member.name.as_str()) {
        return Some(Allowed::Everything);
    }
    if member.folder.starts_with("examples/") {
        return Some(Allowed::Only(EXAMPLES));
    }
    EDGES.iter().find(|(name, _)| *name == member.name).map(|(_, below)| Allowed::Only(below))
}

#[derive(Clone, Copy)]
enum Allowed {
    Everything,
    Only(&'static [&'static str]),
}

type Wrong = (String, String);

fn edge(workspace: &Workspace, member: &Member, dependency: &Dependency, allowed: Allowed) -> Option<Wrong> {
    workspace.member(&dependency.name)?;
    let what = format!("`{}` depends on `{}`", member.name, dependency.name);
    match allowed {
        Allowed::Everything => None,
        Allowed::Only(below) if below.contains(&dependency.name.as_str()) => None,
        Allowed::Only([]) => {
            Some((what, "it may not depend on other workspace crates; move the code down".into()))
        }
        Allowed::Only(below) => {
            Some((what, format!("of the workspace crates it may only depend on {}", below.join(", "))))
        }
    }
}

/// Checks a dev-dependency on a crate that depends on this one. With a version, neither crate could be
/// published first.
fn upward_for_tests(workspace: &Workspace, member: &Member, dependency: &Dependency) -> Option<Wrong> {
    workspace.member(&dependency.name)?;
    (dependency.versioned && is_upward(member, &dependency.name)).then(|| {
        (
            format!("the tests of `{}` depend upward on `{}` with a version", member.name, dependency.name),
            "use `path` without a version".into(),
        )
    })
}

fn is_upward(member: &Member, dependency: &str) -> bool {
    below(dependency).contains(member.name.as_str())
}

/// The transitive dependencies that the table allows for `name`.
fn below(name: &str) -> BTreeSet<&'static str> {
    let edges = |name: &str| EDGES.iter().find(|(from, _)| *from == name).map_or(&[][..], |(_, to)| to);
    let mut found = BTreeSet::new();
    let mut open = edges(name).to_vec();
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(edges(next));
        }
    }
    found
}

/// Reports unit tests that use a crate above their own. They would link two copies of their own crate.
fn seen_twice(member: &Member, key: &str, files: &Files, violations: &mut Vec<Violation>) {
    let name = key.replace('-', "_");
    let src = format!("{}/src/", member.folder);
    for (path, text) in files.written("rs").filter(|(path, _)| path.starts_with(&src)) {
        let tokens = Tokens::of(text).unwrap_or_default();
        violations.extend(tokens.find(&[&name]).map(|line| Violation {
            path: path.to_owned(),
            line,
            what: format!("`{name}` depends on `{}` and is used in its src/", member.name),
            fix: "move the test to tests/, since a unit test would link its own crate twice".into(),
        }));
    }
}

fn clap(member: &Member, dependency: &Dependency) -> Option<Wrong> {
    let is_clap = dependency.name == "clap" || dependency.name.starts_with("clap_");
    (is_clap && !KNOWS_CLAP.contains(&member.name.as_str())).then(|| {
        (
            format!("`{}` depends on `{}`", member.name, dependency.name),
            format!("only {} parse command lines; take options as a struct", KNOWS_CLAP.join(", ")),
        )
    })
}

fn closure(member: &Member, manifest: &Manifest<'_>, violations: &mut Vec<Violation>) {
    let (banned, rule) = match member.name.as_str() {
        name if PURE.contains(&name) => (IO, "it does no I/O"),
        APISERVER => (CLIENTS, "the API server must not contain a Kubernetes client"),
        _ => return,
    };
    for name in banned.iter().filter(|name| member.closure.contains(**name)) {
        violations.push(Violation {
            path: member.manifest(),
            line: manifest.dependency_line(name),
            what: format!("`{}` contains `{name}`", member.name),
            fix: format!("{rule}: `cargo tree -p {} -e normal,build -i {name}` shows the path", member.name),
        });
    }
}

fn impure(member: &Member, files: &Files, violations: &mut Vec<Violation>) {
    let src = format!("{}/src/", member.folder);
    for (path, text) in files.written("rs").filter(|(path, _)| path.starts_with(&src)) {
        let tokens = Tokens::of(text).unwrap_or_default().before_tests();
        let mut report = |line, what: String| {
            violations.push(Violation {
                path: path.to_owned(),
                line,
                what,
                fix: format!("`{}` must be pure; take the value as a parameter", member.name),
            });
        };
        for (module, line) in tokens.paths_below("std") {
            if IMPURE_MODULES.contains(&module) {
                report(line, format!("`std::{module}`"));
            }
        }
        for name in IMPURE_NAMES {
            for line in tokens.find(name) {
                report(line, format!("`{}`", name.concat()));
            }
        }
    }
}
