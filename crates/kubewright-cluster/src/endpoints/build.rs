//! Computes the EndpointSlices and Endpoints of a Service from its pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort as CorePort, EndpointSubset, ObjectReference, Pod, Service, ServicePort,
};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::{kubelet, pod};

/// Maximum number of pods per slice.
pub(super) const SLICE: usize = 100;
const IPV4: &str = "IPv4";

/// The content of a slice.
#[derive(Debug, PartialEq)]
pub(super) struct Slice {
    pub(super) address_type: &'static str,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) ports: Vec<EndpointPort>,
}

impl Slice {
    /// Whether an existing slice has this content.
    pub(super) fn is(&self, slice: &EndpointSlice) -> bool {
        slice.address_type == self.address_type
            && listed(slice.endpoints.clone()) == self.endpoints
            && slice.ports.as_deref().unwrap_or_default() == self.ports
    }
}

/// The endpoints of a slice. Optional since Kubernetes 1.36.
fn listed(endpoints: impl Into<Option<Vec<Endpoint>>>) -> Vec<Endpoint> {
    endpoints.into().unwrap_or_default()
}

/// A Service port resolved in a pod. Ordered, to group pods by their ports.
type Port = (String, i32, String, Option<String>);

/// The slices of a Service: pods grouped by ports, sorted by name.
pub(super) fn slices(
    service: &Service,
    pods: &[Arc<Pod>],
    zones: &BTreeMap<String, Option<String>>,
) -> Vec<Slice> {
    let mut groups = BTreeMap::<Vec<Port>, Vec<&Arc<Pod>>>::new();
    for pod in pods.iter().filter(|pod| address(pod).is_some()) {
        groups.entry(ports(service, pod)).or_default().push(pod);
    }
    if groups.is_empty() {
        // A Service without pods has one empty slice.
        groups.insert(Vec::new(), Vec::new());
    }
    let mut slices = Vec::new();
    for (ports, mut pods) in groups {
        pods.sort_by_key(|pod| pod.metadata.name.clone());
        let ports: Vec<EndpointPort> = ports
            .into_iter()
            .map(|(name, port, protocol, app_protocol)| EndpointPort {
                name: Some(name),
                port: Some(port),
                protocol: Some(protocol),
                app_protocol,
            })
            .collect();
        let endpoints: Vec<Endpoint> = pods.iter().map(|pod| endpoint(service, pod, zones)).collect();
        if endpoints.is_empty() {
            slices.push(Slice { address_type: IPV4, endpoints, ports });
            continue;
        }
        let chunks = endpoints.chunks(SLICE);
        let slice = |chunk: &[Endpoint]| Slice {
            address_type: IPV4,
            endpoints: chunk.to_vec(),
            ports: ports.clone(),
        };
        slices.extend(chunks.map(slice));
    }
    slices
}

/// The Endpoints of a Service: pods grouped by ports, sorted by address.
pub(super) fn subsets(service: &Service, pods: &[Arc<Pod>]) -> Vec<EndpointSubset> {
    let mut groups = BTreeMap::<Vec<Port>, Vec<&Arc<Pod>>>::new();
    for pod in pods.iter().filter(|pod| address(pod).is_some() && !pod::is_terminating(pod)) {
        groups.entry(ports(service, pod)).or_default().push(pod);
    }
    let subset = |(ports, mut pods): (Vec<Port>, Vec<&Arc<Pod>>)| {
        pods.sort_by_key(|pod| address(pod).map(|it| it.parse::<std::net::IpAddr>().ok()));
        let (ready, unready): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| is_ready(service, pod));
        let list = |pods: Vec<&Arc<Pod>>| {
            let addresses: Vec<EndpointAddress> = pods.into_iter().map(|pod| core_address(pod)).collect();
            (!addresses.is_empty()).then_some(addresses)
        };
        let ports: Vec<CorePort> = ports
            .into_iter()
            .map(|(name, port, protocol, app_protocol)| CorePort {
                name: Some(name).filter(|name| !name.is_empty()),
                port,
                protocol: Some(protocol),
                app_protocol,
            })
            .collect();
        EndpointSubset {
            addresses: list(ready),
            not_ready_addresses: list(unready),
            ports: (!ports.is_empty()).then_some(ports),
        }
    };
    groups.into_iter().map(subset).collect()
}

fn endpoint(service: &Service, pod: &Pod, zones: &BTreeMap<String, Option<String>>) -> Endpoint {
    let node = kubelet::node_name(pod);
    let (serving, terminating) = (is_ready(service, pod), pod::is_terminating(pod));
    // Terminating pods are not ready, unless the Service publishes not-ready addresses.
    let ready = serving && (!terminating || publishes_all(service));
    let spec = pod.spec.as_ref();
    let name = service.metadata.name.as_deref();
    let hostname =
        spec.filter(|spec| spec.subdomain.as_deref() == name).and_then(|spec| spec.hostname.clone());
    Endpoint {
        addresses: address(pod).map(str::to_owned).into_iter().collect(),
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname,
        node_name: node.map(str::to_owned),
        target_ref: Some(reference(pod)),
        zone: node.and_then(|node| zones.get(node).cloned().flatten()),
        ..Endpoint::default()
    }
}

fn core_address(pod: &Pod) -> EndpointAddress {
    EndpointAddress {
        ip: address(pod).unwrap_or_default().to_owned(),
        node_name: kubelet::node_name(pod).map(str::to_owned),
        target_ref: Some(reference(pod)),
        ..EndpointAddress::default()
    }
}

fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// The IP address of a pod that has one and has not finished.
fn address(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref().filter(|_| !pod::is_terminal(pod))
}

fn is_ready(service: &Service, pod: &Pod) -> bool {
    publishes_all(service) || pod::is_ready(pod)
}

fn publishes_all(service: &Service) -> bool {
    service.spec.as_ref().is_some_and(|spec| spec.publish_not_ready_addresses == Some(true))
}

/// Resolves the ports of a Service in a pod. Skips named ports that the pod does not have.
fn ports(service: &Service, pod: &Pod) -> Vec<Port> {
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let mut found: Vec<Port> = ports
        .filter_map(|port| {
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            let name = port.name.clone().unwrap_or_default();
            Some((name, target(port, &protocol, pod)?, protocol, port.app_protocol.clone()))
        })
        .collect();
    found.sort();
    found
}

fn target(port: &ServicePort, protocol: &str, pod: &Pod) -> Option<i32> {
    let name = match &port.target_port {
        None | Some(IntOrString::Int(0)) => return Some(port.port),
        Some(IntOrString::Int(number)) => return Some(*number),
        Some(IntOrString::String(name)) => name,
    };
    let spec = pod.spec.as_ref()?;
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    let named = ports
        .find(|own| own.name.as_ref() == Some(name) && own.protocol.as_deref().unwrap_or("TCP") == protocol);
    named.map(|port| port.container_port)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service() -> Service {
        serde_json::from_value(json!({
            "metadata": { "name": "web" },
            "spec": { "ports": [{ "name": "http", "port": 80, "targetPort": "http" }] },
        }))
        .unwrap()
    }

    fn pod(number: usize, port: i32, ready: bool, going: bool) -> Arc<Pod> {
        let ready = if ready { "True" } else { "False" };
        let mut pod: Pod = serde_json::from_value(json!({
            "metadata": { "name": format!("web-{number:03}") },
            "spec": { "containers": [{ "name": "a", "ports": [{ "name": "http", "containerPort": port }] }] },
            "status": { "podIP": format!("10.128.0.{number}"), "conditions": [{ "type": "Ready", "status": ready }] },
        }))
        .unwrap();
        if going {
            pod.metadata.deletion_timestamp =
                Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
        }
        Arc::new(pod)
    }

    #[test]
    fn pods_are_grouped_by_ports_into_slices_of_a_hundred() {
        let mut pods: Vec<Arc<Pod>> = (1..=150).map(|number| pod(number, 8080, true, false)).collect();
        pods.push(pod(200, 9090, true, false));
        let slices = slices(&service(), &pods, &BTreeMap::new());
        let shape: Vec<(usize, Option<i32>)> =
            slices.iter().map(|it| (it.endpoints.len(), it.ports[0].port)).collect();
        assert_eq!(shape, [(100, Some(8080)), (50, Some(8080)), (1, Some(9090))]);
        assert_eq!(subsets(&service(), &pods).len(), 2);
    }

    #[test]
    fn a_terminating_pod_serves_but_is_not_ready() {
        let pods = [pod(1, 80, true, false), pod(2, 80, false, false), pod(3, 80, true, true)];
        let slices = slices(&service(), &pods, &BTreeMap::new());
        let conditions: Vec<(bool, bool, bool)> = slices[0]
            .endpoints
            .iter()
            .filter_map(|it| it.conditions.as_ref())
            .map(|it| (it.ready.unwrap(), it.serving.unwrap(), it.terminating.unwrap()))
            .collect();
        assert_eq!(conditions, [(true, true, false), (false, false, false), (false, true, true)]);
        let subset = &subsets(&service(), &pods)[0];
        let count = |list: &Option<Vec<EndpointAddress>>| list.as_ref().map_or(0, Vec::len);
        assert_eq!((count(&subset.addresses), count(&subset.not_ready_addresses)), (1, 1));
    }

    #[test]
    fn a_service_without_pods_has_one_slice_and_no_subset() {
        let slices = slices(&service(), &[], &BTreeMap::new());
        assert_eq!(slices, [Slice { address_type: IPV4, endpoints: Vec::new(), ports: Vec::new() }]);
        assert_eq!(subsets(&service(), &[]), []);
    }
}
