//! Mirrors Endpoints of Services without a selector to EndpointSlices.
//!
//! The Endpoints are the controller of the slices, which are garbage collected with them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointSubset, Endpoints, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_runtime::{Context, Key, Manager, Outcome, Reconciler, RegisterError, Result};

use super::build::{SLICE, Slice};
use super::{MANAGED_BY, SERVICE_NAME, write_slices};

const MIRRORING: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// The annotation of Endpoints that are a leader election lock.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Annotations of Endpoints that are not copied.
const OWN: [&str; 2] =
    ["endpoints.kubernetes.io/last-change-trigger-time", "kubectl.kubernetes.io/last-applied-configuration"];
/// Maximum number of mirrored addresses per subset.
const SUBSET: usize = 1000;

/// Registers the controller that mirrors Endpoints.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager
        .controller(Mirror)
        .named("endpointslicemirroring")
        .owns::<EndpointSlice>()
        .watches::<Service>(|service, _| vec![Key::of(service)])
        .register()
}

struct Mirror;

impl Reconciler for Mirror {
    type Object = Endpoints;

    async fn reconcile(&self, endpoints: &Endpoints, cx: &Context) -> Result<Outcome> {
        if endpoints.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::done());
        }
        let service = cx.client().get_opt::<Service>(cx.key()).await?;
        let selects = |service: &Service| {
            service.spec.as_ref().and_then(|spec| spec.selector.as_ref()).is_some_and(|it| !it.is_empty())
        };
        let mirrored = is_mirrored(&endpoints.metadata) && service.is_some_and(|service| !selects(&service));
        let slices =
            if mirrored { slices(endpoints.subsets.as_deref().unwrap_or_default()) } else { Vec::new() };
        write_slices(endpoints, &metadata(endpoints, cx.key().name()), &slices, cx).await?;
        Ok(Outcome::done())
    }
}

fn is_mirrored(meta: &ObjectMeta) -> bool {
    let skipped = meta.labels.as_ref().and_then(|labels| labels.get(SKIP)).is_some_and(|skip| skip == "true");
    !skipped && !meta.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(LEADER))
}

/// Labels and annotations of the slices: those of the Endpoints, the Service name and the managing controller.
fn metadata(endpoints: &Endpoints, name: &str) -> ObjectMeta {
    let mut labels = endpoints.metadata.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.to_owned(), name.to_owned());
    labels.insert(MANAGED_BY.to_owned(), MIRRORING.to_owned());
    let mut annotations = endpoints.metadata.annotations.clone().unwrap_or_default();
    annotations.retain(|name, _| !OWN.contains(&name.as_str()));
    ObjectMeta {
        labels: Some(labels),
        annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
        ..ObjectMeta::default()
    }
}

/// The slices of subsets: addresses of one family with the same ports together.
fn slices(subsets: &[EndpointSubset]) -> Vec<Slice> {
    let mut groups: Vec<(&'static str, Vec<EndpointPort>, BTreeMap<String, Endpoint>)> = Vec::new();
    for subset in subsets {
        let ports: Vec<EndpointPort> = subset
            .ports
            .iter()
            .flatten()
            .map(|port| EndpointPort {
                app_protocol: port.app_protocol.clone(),
                name: Some(port.name.clone().unwrap_or_default()),
                port: Some(port.port),
                protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".to_owned())),
            })
            .collect();
        let ready = subset.addresses.iter().flatten().map(|address| (address, true));
        let unready = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
        for (address, ready) in ready.chain(unready).take(SUBSET) {
            let family = match address.ip.parse() {
                Ok(IpAddr::V4(_)) => "IPv4",
                Ok(IpAddr::V6(_)) => "IPv6",
                Err(_) => continue,
            };
            let at = groups.iter().position(|(of, own, _)| *of == family && *own == ports);
            let at = at.unwrap_or_else(|| {
                groups.push((family, ports.clone(), BTreeMap::new()));
                groups.len() - 1
            });
            groups[at].2.insert(address.ip.clone(), endpoint(address, ready));
        }
    }
    let mut slices = Vec::new();
    for (address_type, ports, endpoints) in groups {
        let endpoints: Vec<Endpoint> = endpoints.into_values().collect();
        for chunk in endpoints.chunks(SLICE) {
            slices.push(Slice { address_type, endpoints: chunk.to_vec(), ports: ports.clone() });
        }
    }
    slices
}

fn endpoint(address: &EndpointAddress, ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![address.ip.clone()],
        conditions: Some(EndpointConditions { ready: Some(ready), ..EndpointConditions::default() }),
        hostname: address.hostname.clone().filter(|name| !name.is_empty()),
        node_name: address.node_name.clone(),
        target_ref: address.target_ref.clone(),
        ..Endpoint::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The address family, the addresses with their readiness, and the port of a slice.
    type Shape<'a> = (&'a str, Vec<(String, bool)>, i32);

    #[test]
    fn addresses_are_grouped_by_family_and_ports() {
        let subsets: Vec<EndpointSubset> = serde_json::from_value(json!([
            {
                "addresses": [{ "ip": "10.0.0.2", "hostname": "b" }, { "ip": "fd00::1" }],
                "notReadyAddresses": [{ "ip": "10.0.0.1" }],
                "ports": [{ "port": 80 }],
            },
            { "addresses": [{ "ip": "10.0.0.3" }], "ports": [{ "port": 80 }] },
            { "addresses": [{ "ip": "10.0.0.3" }], "ports": [{ "name": "other", "port": 81, "protocol": "UDP" }] },
        ]))
        .unwrap();
        let built = slices(&subsets);
        let shape: Vec<Shape<'_>> = built
            .iter()
            .map(|slice| {
                let ready =
                    |it: &Endpoint| it.conditions.as_ref().and_then(|it| it.ready).unwrap_or_default();
                let endpoints =
                    slice.endpoints.iter().map(|it| (it.addresses[0].clone(), ready(it))).collect();
                (slice.address_type, endpoints, slice.ports[0].port.unwrap())
            })
            .collect();
        let v4 = |last: u8, ready| (format!("10.0.0.{last}"), ready);
        assert_eq!(
            shape,
            [
                ("IPv4", vec![v4(1, false), v4(2, true), v4(3, true)], 80),
                ("IPv6", vec![("fd00::1".to_owned(), true)], 80),
                ("IPv4", vec![v4(3, true)], 81),
            ]
        );
    }

    #[test]
    fn locks_and_what_is_marked_are_not_mirrored() {
        let meta = |meta| serde_json::from_value::<ObjectMeta>(meta).unwrap();
        assert!(is_mirrored(&meta(json!({ "labels": { SKIP: "false" } }))));
        assert!(!is_mirrored(&meta(json!({ "labels": { SKIP: "true" } }))));
        assert!(!is_mirrored(&meta(json!({ "annotations": { LEADER: "{}" } }))));
    }
}
