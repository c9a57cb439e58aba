//! Rendered code is formatted for all name lengths.

use std::fs;
use std::process::Command;

use super::*;
use crate::project::project_file::{Api, Controller, Webhooks};

/// What the layout of the rendered code depends on, besides the names of kinds.
#[derive(Clone, Copy, Debug)]
struct Layout {
    multigroup: bool,
    /// Whether the operator watches only its own namespace.
    in_namespace: bool,
    /// Whether the kinds are namespaced.
    namespaced: bool,
    /// The version of the second type of each kind.
    spoke: &'static str,
}

const LAYOUTS: [Layout; 5] = {
    let usual = Layout { multigroup: false, in_namespace: false, namespaced: true, spoke: "v1beta1" };
    [
        usual,
        Layout { multigroup: true, ..usual },
        Layout { namespaced: false, ..usual },
        Layout { in_namespace: true, ..usual },
        Layout { multigroup: true, namespaced: false, spoke: "v1alpha10", ..usual },
    ]
};

/// A project with a kind of each possible name length, with two versions and two controllers each.
fn every_length(layout: Layout) -> ProjectFile {
    let mut made = project();
    (made.multigroup, made.namespaced) = (layout.multigroup, layout.in_namespace);
    for length in 1..=63 {
        let kind = format!("K{}", "k".repeat(length - 1));
        for version in ["v1", layout.spoke] {
            let controllers = match version {
                "v1" => vec![kind.to_lowercase(), format!("{}-two", kind.to_lowercase())],
                _ => Vec::new(),
            };
            made.resources.push(Resource {
                api: Some(Api { namespaced: layout.namespaced, ..Default::default() }),
                controller: version == "v1",
                controllers: controllers.into_iter().map(|name| Controller { name }).collect(),
                domain: "example.com".into(),
                group: "sales".into(),
                kind: kind.clone(),
                version: version.into(),
                webhooks: Some(Webhooks {
                    conversion: version == "v1",
                    defaulting: length % 3 != 0,
                    validation: length % 3 != 1,
                    defaulting_path: if length % 2 == 0 {
                        format!("/{version}{kind}")
                    } else {
                        String::new()
                    },
                    spoke: if version == "v1" { vec![layout.spoke.into()] } else { Vec::new() },
                    ..Webhooks::default()
                }),
                ..Resource::default()
            });
        }
    }
    for (group, version, kind) in
        [("apps", "v1", "Deployment"), ("autoscaling", "v2", "HorizontalPodAutoscaler")]
    {
        let request = Request { resource: Some(false), ..request(group, version, kind) };
        let mut resources = with(&project(), &request).resources;
        let webhooks = Webhooks { defaulting: true, validation: true, ..Webhooks::default() };
        resources[0].webhooks = Some(webhooks);
        made.resources.extend(resources);
    }
    made
}

#[test]
fn rendered_code_is_formatted_for_all_name_lengths() {
    for layout in LAYOUTS {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files(&every_length(layout)) {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut format = Command::new("cargo");
        let output = format.args(["fmt", "--check"]).current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = said.lines().take(60).collect();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{layout:?}: {}\n{error}", lines.join("\n"));
    }
}
