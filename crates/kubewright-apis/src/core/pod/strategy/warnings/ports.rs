//! Warnings about conflicting ports and port names.

use std::collections::HashMap;

use serde_json::Value;

use super::{Warnings, containers};
use crate::core::pod::defaults::resources::is_sidecar;
use kubewright_apimachinery::field::{Path, quote};
use kubewright_apimachinery::object::Fields as _;

pub(super) fn ports(spec: &Value, path: &Path, found: &mut Warnings) {
    let mut all: HashMap<(i64, &str), Vec<(Path, &Value)>> = HashMap::new();
    for (container, path) in containers(spec, path) {
        for (index, port) in container.list_at("ports").iter().enumerate() {
            let path = path.child("ports").index(index);
            if !port.str_at("hostIP").is_empty() && host_port(port) == 0 {
                found.add(&path, &format!("hostIP set without hostPort: {}", printed(port)));
            }
            let key = (port.int_at("containerPort").unwrap_or_default(), port.str_at("protocol"));
            let others = all.entry(key).or_default();
            for (other_path, other) in others.iter() {
                if let Some(collision) = collision(port, other) {
                    found.add(&path, &format!("{collision} port definition with {other_path}"));
                }
            }
            others.push((path, port));
        }
    }
    names(spec, path, found);
}

/// The type of conflict between two ports with the same number and protocol on the host.
fn collision(port: &Value, other: &Value) -> Option<&'static str> {
    let (ip, other_ip) = (port.str_at("hostIP"), other.str_at("hostIP"));
    let (number, other_number) = (host_port(port), host_port(other));
    if ip == other_ip && number == other_number {
        Some("duplicate")
    } else if number == 0 || other_number == 0 {
        Some("overlapping")
    } else if number == other_number && ip.is_empty() != other_ip.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

/// Warns about duplicate names among concurrently running containers. The first one is used.
fn names(spec: &Value, path: &Path, found: &mut Warnings) {
    let mut all: HashMap<&str, Path> = HashMap::new();
    let sidecars =
        spec.list_at("initContainers").iter().enumerate().filter(|(_, container)| is_sidecar(container));
    let regular = spec.list_at("containers").iter().enumerate();
    let side_by_side = sidecars
        .map(|(index, container)| (path.child("initContainers").index(index), container))
        .chain(regular.map(|(index, container)| (path.child("containers").index(index), container)));
    for (path, container) in side_by_side {
        for (index, port) in container.list_at("ports").iter().enumerate() {
            let path = path.child("ports").index(index);
            let name = port.str_at("name");
            if name.is_empty() {
                continue;
            }
            let Some(other) = all.get(name) else {
                all.insert(name, path);
                continue;
            };
            found.add(
                &path,
                &format!(
                    "duplicate port name {} with {other}, services and probes that select ports by name will use {other}",
                    quote(name)
                ),
            );
        }
    }
}

fn host_port(port: &Value) -> i64 {
    port.int_at("hostPort").unwrap_or_default()
}

/// Formats a port like a Go struct.
fn printed(port: &Value) -> String {
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        port.str_at("name"),
        host_port(port),
        port.int_at("containerPort").unwrap_or_default(),
        port.str_at("protocol"),
        port.str_at("hostIP")
    )
}
