//! Rendered code is formatted for all name lengths.

use std::fs;
use std::process::Command;

use super::*;
use crate::project::project_file::{Api, Controller, Webhooks};

/// A project with a kind of each possible name length, with two versions and two controllers each.
fn every_length() -> ProjectFile {
    let mut made = project();
    for length in 1..=63 {
        let kind = format!("K{}", "k".repeat(length - 1));
        for version in ["v1", "v1beta1"] {
            let controllers = match version {
                "v1" => vec![kind.to_lowercase(), format!("{}-two", kind.to_lowercase())],
                _ => Vec::new(),
            };
            made.resources.push(Resource {
                api: Some(Api { namespaced: true, ..Default::default() }),
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
                    spoke: if version == "v1" { vec!["v1beta1".into()] } else { Vec::new() },
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
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files(&every_length()) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let output = Command::new("cargo").args(["fmt", "--check"]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = said.lines().take(60).collect();
    assert!(output.status.success(), "{}\n{}", lines.join("\n"), String::from_utf8_lossy(&output.stderr));
}
