//! Compares validation with recorded requests and responses.

use serde_json::{Value, json};

use crate::defaults;
use crate::kinds::rules;
use crate::{strategy, validation};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

/// Creates an object like the server, with a cluster IP for a service that needs one.
fn create(mut object: Value) -> Vec<String> {
    let copy = object.clone();
    let gvk = Gvk::of(&copy);
    object.set_at("metadata.name", "x");
    object.set_at("metadata.namespace", "ns");
    defaults::apply(gvk, &mut object);
    strategy::prepare_create(gvk, &mut object);
    if gvk.kind == "Service" {
        let errors = strategy::service_ip_families(&mut object, None);
        if !errors.is_empty() {
            return errors.iter().map(ToString::to_string).collect();
        }
        if object.str_at("spec.type") != "ExternalName" && !object.has("spec.clusterIP") {
            object.set_at("spec.clusterIP", "10.0.0.7");
            object.set_at("spec.clusterIPs", json!(["10.0.0.7"]));
        }
    }
    validation::create(gvk, true, &object).iter().map(ToString::to_string).collect()
}

fn service(spec: Value) -> Vec<String> {
    let mut service = json!({"apiVersion": "v1", "kind": "Service"});
    service.set_at("spec", spec);
    create(service)
}

fn networking(kind: &str, spec: Value) -> Vec<String> {
    let mut object = json!({"apiVersion": "networking.k8s.io/v1", "kind": kind});
    object.set_at("spec", spec);
    let mut errors = create(object);
    // These tests set a namespace on every object.
    errors.retain(|error| !error.starts_with("metadata.namespace"));
    errors
}

fn slice(mut slice: Value) -> Vec<String> {
    slice.set_at("apiVersion", "discovery.k8s.io/v1");
    slice.set_at("kind", "EndpointSlice");
    create(slice)
}

fn update(new: &Value, old: &Value) -> Vec<String> {
    let errors = (rules(Gvk::of(new)).validate_update)(new, old);
    errors.iter().map(ToString::to_string).collect()
}

/// A stored service with `changes` in its spec.
fn stored(changes: &Value) -> Value {
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster", "sessionAffinity": "None",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        },
        "status": {"loadBalancer": {}},
    });
    service.object_mut("spec").extend(changes.as_object().cloned().unwrap_or_default());
    service
}

#[test]
fn ports_of_a_service_must_be_unique() {
    assert_eq!(service(json!({})), ["spec.ports: Required value"]);
    assert_eq!(
        service(json!({"ports": [{"port": 0}]})),
        [
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
        ]
    );
    assert_eq!(
        service(json!({"ports": [{"port": 80}, {"port": 81}]})),
        ["spec.ports[0].name: Required value", "spec.ports[1].name: Required value"]
    );
    assert_eq!(
        service(json!({"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]})),
        [r#"spec.ports[1].name: Duplicate value: "a""#]
    );
    assert_eq!(
        service(json!({"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]})),
        [
            r#"spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}"#
        ]
    );
    assert_eq!(
        service(json!({"ports": [{"port": 80, "targetPort": "A B"}]})),
        [
            r#"spec.ports[0].targetPort: Invalid value: "A B": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"#,
            r#"spec.ports[0].targetPort: Invalid value: "A B": must contain at least one letter (a-z)"#,
        ]
    );
}

#[test]
fn fields_of_a_service_must_match_its_type() {
    let port = json!([{"port": 80}]);
    assert_eq!(
        service(json!({"type": "Bogus", "ports": port})),
        [
            r#"spec.type: Unsupported value: "Bogus": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort""#
        ]
    );
    assert_eq!(service(json!({"type": "ExternalName"})), ["spec.externalName: Required value"]);
    assert_eq!(
        service(json!({"ports": [{"port": 80, "nodePort": 30001}]})),
        ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"]
    );
    assert_eq!(
        service(json!({"ports": port, "externalTrafficPolicy": "Local"})),
        [
            r#"spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services"#
        ]
    );
    assert_eq!(
        service(json!({"ports": port, "loadBalancerSourceRanges": ["1.2.3.4/8"]})),
        [
            "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
            r#"spec.LoadBalancerSourceRanges[0]: Invalid value: "1.2.3.4/8": must not have bits set beyond the prefix length"#,
        ]
    );
    assert_eq!(
        service(json!({"type": "NodePort", "clusterIP": "None", "ports": port})),
        [r#"spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services"#]
    );
    assert_eq!(
        service(json!({"ports": port, "loadBalancerClass": "a/b", "allocateLoadBalancerNodePorts": false})),
        [
            "spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'",
            "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
        ]
    );
    assert_eq!(
        service(json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": port})),
        ["spec.healthCheckNodePort: Required value"]
    );
}

#[test]
fn values_of_a_service_must_be_supported() {
    let port = json!([{"port": 80}]);
    assert_eq!(
        service(json!({"ports": port, "sessionAffinity": "X"})),
        [r#"spec.sessionAffinity: Unsupported value: "X": supported values: "ClientIP", "None""#]
    );
    assert_eq!(
        service(json!({
            "ports": port, "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}},
        })),
        [
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and less than 86400"
        ]
    );
    assert_eq!(
        service(json!({"ports": port, "internalTrafficPolicy": "X"})),
        [r#"spec.internalTrafficPolicy: Unsupported value: "X": supported values: "Cluster", "Local""#]
    );
    assert_eq!(
        service(json!({"ports": port, "externalIPs": ["x", "127.0.0.1"]})),
        [
            r#"spec.externalIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#,
            r#"spec.externalIPs[1]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)"#,
        ]
    );
}

#[test]
fn the_cluster_ip_of_a_service_is_immutable() {
    let old = stored(&json!({}));
    assert!(update(&old, &old).is_empty());
    let new = stored(&json!({"clusterIP": "10.0.0.250", "clusterIPs": ["10.0.0.250"]}));
    assert_eq!(
        update(&new, &old),
        [r#"spec.clusterIPs[0]: Invalid value: ["10.0.0.250"]: may not change once set"#]
    );
    let new = stored(&json!({"clusterIP": "None", "clusterIPs": ["None"]}));
    assert_eq!(
        update(&new, &old),
        [r#"spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set"#]
    );
}

#[test]
fn the_load_balancer_class_is_immutable() {
    let balanced = |class: &str| {
        stored(&json!({
            "type": "LoadBalancer", "externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": true,
            "loadBalancerClass": class,
        }))
    };
    assert_eq!(
        update(&balanced("a/c"), &balanced("a/b")),
        [r#"spec.loadBalancerClass: Invalid value: "a/c": may not change once set"#]
    );
}

#[test]
fn only_load_balancers_can_have_ingress_addresses_in_status() {
    let with_ip = |spec: &Value, ingress: Value| {
        let mut service = stored(spec);
        service.set_at("status.loadBalancer.ingress", json!([ingress]));
        let errors = (rules(Gvk::of(&service)).validate_subresource)("status", &service, &service);
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let balanced = json!({"type": "LoadBalancer"});
    assert!(with_ip(&balanced, json!({"ip": "192.0.2.7", "ipMode": "VIP"})).is_empty());
    assert_eq!(
        with_ip(&balanced, json!({"ip": "x", "ipMode": "VIP"})),
        [
            r#"status.loadBalancer.ingress[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#
        ]
    );
    assert_eq!(
        with_ip(&balanced, json!({"hostname": "1.2.3.4", "ipMode": "VIP"})),
        [
            "status.loadBalancer.ingress[0].ipMode: Forbidden: may not be specified when `ip` is not set",
            r#"status.loadBalancer.ingress[0].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address"#,
        ]
    );
    assert_eq!(
        with_ip(&json!({}), json!({"ip": "192.0.2.7"})),
        ["status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"]
    );
}

#[test]
fn ingress_rules_and_backends_are_validated() {
    let path = |path: Value| networking("Ingress", json!({"rules": [{"http": {"paths": [path]}}]}));
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    assert_eq!(
        networking("Ingress", json!({})),
        ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"]
    );
    assert_eq!(
        networking("Ingress", json!({"rules": [{"host": "1.2.3.4"}]})),
        [r#"spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address"#]
    );
    assert!(networking("Ingress", json!({"rules": [{"host": "*.a.com"}]})).is_empty());
    assert_eq!(
        path(json!({"path": "/", "backend": backend})),
        ["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"]
    );
    assert_eq!(
        path(json!({"path": "/", "pathType": "X", "backend": backend})),
        [
            r#"spec.rules[0].http.paths[0].pathType: Unsupported value: "X": supported values: "Exact", "ImplementationSpecific", "Prefix""#
        ]
    );
    assert_eq!(
        path(json!({"path": "/a//b", "pathType": "Prefix", "backend": backend})),
        [r#"spec.rules[0].http.paths[0].path: Invalid value: "/a//b": must not contain '//'"#]
    );
    assert_eq!(
        path(json!({"path": "/", "pathType": "Prefix", "backend": {"service": {"name": ""}}})),
        [
            "spec.rules[0].http.paths[0].backend.service.name: Required value",
            "spec.rules[0].http.paths[0].backend: Required value: port name or number is required",
        ]
    );
    assert_eq!(
        path(json!({"path": "/", "pathType": "Prefix", "backend": {}})),
        [
            r#"spec.rules[0].http.paths[0].backend: Invalid value: "": resource or service backend is required"#
        ]
    );
}

#[test]
fn the_controller_of_an_ingress_class_is_a_path_and_immutable() {
    assert_eq!(networking("IngressClass", json!({})), ["spec.controller: Required value"]);
    assert_eq!(
        networking("IngressClass", json!({"controller": "c"})),
        [r#"spec.controller: Invalid value: "c": must be a domain-prefixed path (such as "acme.io/foo")"#]
    );
    assert_eq!(
        networking(
            "IngressClass",
            json!({"controller": "a.io/c", "parameters": {"kind": "K", "name": "n", "scope": "Namespace"}})
        ),
        ["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"]
    );
    let class = |controller: &str| json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "spec": {"controller": controller}});
    assert_eq!(
        update(&class("a.io/d"), &class("a.io/c")),
        [r#"spec.controller: Invalid value: "a.io/d": field is immutable"#]
    );
}

#[test]
fn peers_and_ports_of_a_network_policy_are_validated() {
    let ingress = |rule: Value| networking("NetworkPolicy", json!({"podSelector": {}, "ingress": [rule]}));
    assert_eq!(
        networking("NetworkPolicy", json!({"podSelector": {}, "policyTypes": ["X"]})),
        [r#"spec.policyTypes[0]: Unsupported value: "X": supported values: "Ingress", "Egress""#]
    );
    assert_eq!(
        ingress(json!({"from": [{}]})),
        ["spec.ingress[0].from[0]: Required value: must specify a peer"]
    );
    assert_eq!(
        ingress(json!({"from": [{"ipBlock": {"cidr": "x"}}]})),
        [
            r#"spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#
        ]
    );
    assert_eq!(
        ingress(json!({"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["1.0.0.0/8"]}}]})),
        [
            r#"spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: "1.0.0.0/8": must be a strict subset of `cidr`"#
        ]
    );
    assert_eq!(
        ingress(json!({"ports": [{"port": 80, "endPort": 70}]})),
        ["spec.ingress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to `port`"]
    );
    assert_eq!(
        ingress(json!({"ports": [{"endPort": 70}]})),
        [
            "spec.ingress[0].ports[0].endPort: Invalid value: 70: may not be specified when `port` is not specified"
        ]
    );
}

#[test]
fn addresses_of_an_endpoint_slice_must_match_its_type() {
    let addresses = |kind: &str, addresses: Value| {
        slice(json!({"addressType": kind, "endpoints": [{"addresses": addresses}]}))
    };
    assert_eq!(slice(json!({})), ["addressType: Required value"]);
    assert_eq!(
        slice(json!({"addressType": "X"})),
        [r#"addressType: Unsupported value: "X": supported values: "FQDN", "IPv4", "IPv6""#]
    );
    assert_eq!(
        addresses("IPv4", json!([])),
        ["endpoints[0].addresses: Required value: must contain at least 1 address"]
    );
    assert_eq!(
        addresses("IPv4", json!(["x"])),
        [
            r#"endpoints[0].addresses[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#
        ]
    );
    assert_eq!(
        addresses("IPv6", json!(["192.0.2.1"])),
        [r#"endpoints[0].addresses: Invalid value: "192.0.2.1": must be an IPv6 address"#]
    );
    assert_eq!(
        addresses("FQDN", json!(["localhost"])),
        [
            r#"endpoints[0].addresses[0]: Invalid value: "localhost": should be a domain with at least two segments separated by dots"#
        ]
    );
    assert_eq!(
        slice(json!({"addressType": "IPv4", "ports": [{"port": 80}, {"port": 81}]})),
        [r#"ports[1].name: Duplicate value: """#]
    );
}

#[test]
fn addresses_of_endpoints_must_be_routable() {
    let endpoints =
        |subset: Value| create(json!({"apiVersion": "v1", "kind": "Endpoints", "subsets": [subset]}));
    assert_eq!(
        endpoints(json!({"ports": [{"port": 80}]})),
        ["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"]
    );
    assert_eq!(
        endpoints(json!({"addresses": [{"ip": "0.0.0.0"}, {"ip": "169.254.1.1"}], "ports": [{"port": 80}]})),
        [
            r#"subsets[0].addresses[0].ip: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)"#,
            r#"subsets[0].addresses[1].ip: Invalid value: "169.254.1.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)"#,
        ]
    );
}

#[test]
fn a_service_cidr_can_only_add_a_second_family() {
    let range = |cidrs: Value| json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "c"}, "spec": {"cidrs": cidrs}});
    assert_eq!(
        networking("ServiceCIDR", json!({})),
        ["spec.cidrs: Required value: at least one CIDR required"]
    );
    assert_eq!(
        networking("ServiceCIDR", json!({"cidrs": ["10.0.0.0/24", "10.1.0.0/24"]})),
        [
            r#"spec.cidrs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"#
        ]
    );
    let one = range(json!(["10.0.0.0/24"]));
    assert!(update(&range(json!(["10.0.0.0/24", "2001:db8::/64"])), &one).is_empty());
    assert_eq!(
        update(&range(json!(["10.1.0.0/24"])), &one),
        [r#"spec.cidrs[0]: Invalid value: "10.1.0.0/24": field is immutable"#]
    );
    assert_eq!(update(&range(json!([])), &one), ["spec.cidrs: Invalid value: []: field is immutable"]);
}

#[test]
fn the_parent_of_an_ip_address_is_immutable() {
    let address = |name: &str| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": {"name": "10.0.0.7"},
            "spec": {"parentRef": {"resource": "services", "namespace": "ns", "name": name}},
        })
    };
    assert_eq!(
        update(&address("b"), &address("a")),
        [
            r#"spec.parentRef: Invalid value: {"Group":"","Resource":"services","Namespace":"ns","Name":"b"}: field is immutable"#
        ]
    );
}
