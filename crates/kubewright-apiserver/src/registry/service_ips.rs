//! Cluster IPs and node ports of Services.
//!
//! Allocated are the values of stored Services and those reserved by requests in flight, so two concurrent
//! creates never get the same address. A reservation ends with its request, after the Service is stored or
//! rejected.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use kubewright_apis::strategy;
use serde_json::{Value, json};

use crate::after_commit::AfterCommit;
use crate::ids::Ids;
use crate::registry::resource::Resource;
use crate::registry::store::ObjectStore;
use crate::storage::{Store, StoredObject};

/// First address and size of the range 10.0.0.0/24, as in envtest.
const FIRST: u32 = 0x0a00_0000;
const SIZE: u32 = 256;
const PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// Reservations of requests in flight.
#[derive(Debug, Default, Clone)]
struct InFlight(Arc<Mutex<BTreeSet<String>>>);

/// Allocates the addresses and ports of Services.
pub(crate) struct ServiceIps {
    store: Arc<Store>,
    ids: Arc<Ids>,
    in_flight: InFlight,
}

/// A reservation; released on drop.
#[must_use]
pub(crate) struct Reserved {
    from: InFlight,
    what: Vec<String>,
}

impl Reserved {
    /// Releases the reservation after the object was stored: the stored object now holds the values.
    pub(crate) fn keep(self) {
        drop(self);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.what.is_empty() {
            return;
        }
        let mut taken = self.from.0.lock().unwrap_or_else(PoisonError::into_inner);
        for what in &self.what {
            taken.remove(what);
        }
    }
}

impl ServiceIps {
    pub(crate) fn new(store: Arc<Store>, ids: Arc<Ids>) -> Self {
        Self { store, ids, in_flight: InFlight::default() }
    }

    /// Allocates the addresses and ports of a Service. Does nothing for other kinds.
    pub(crate) fn allocate(
        &self,
        resource: &Resource,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<Reserved, ApiError> {
        let mut reserved = Reserved { from: self.in_flight.clone(), what: Vec::new() };
        if resource.storage.as_ref() != "services" {
            return Ok(reserved);
        }
        let mut errors = strategy::service_ip_families(object, old);
        if errors.is_empty() {
            let taken = self.taken(object);
            errors.extend(self.addresses(object, old, &taken, &mut reserved));
            if errors.is_empty() {
                errors.extend(self.ports(object, old, &taken, &mut reserved));
            }
        }
        if errors.is_empty() {
            return Ok(reserved);
        }
        Err(ApiError::invalid(resource.gvk().qualified_kind(), object.str_at("metadata.name"), &errors))
    }

    /// Addresses, and ports with protocol, of all other stored Services.
    fn taken(&self, own: &Value) -> BTreeSet<String> {
        let mut taken = BTreeSet::new();
        let listing = self.store.list("services", "", None).ok();
        for version in listing.into_iter().flat_map(|listing| listing.items) {
            if version.attributes.uid() == own.str_at("metadata.uid") {
                continue;
            }
            let service = version.object();
            taken.extend(
                service.list_at("spec.clusterIPs").iter().filter_map(|ip| ip.as_str().map(str::to_owned)),
            );
            for port in service.list_at("spec.ports") {
                if let Some(number) = port.int_at("nodePort") {
                    taken.insert(port_key(number, port.str_at("protocol")));
                }
            }
            if let Some(number) = service.int_at("spec.healthCheckNodePort") {
                taken.insert(port_key(number, "TCP"));
            }
        }
        taken
    }

    /// Reserves a value that neither a stored Service nor another request in flight has.
    fn reserve(
        &self,
        service: &Value,
        what: &str,
        taken: &BTreeSet<String>,
        reserved: &mut Reserved,
    ) -> bool {
        if taken.contains(what)
            || !self.in_flight.0.lock().unwrap_or_else(PoisonError::into_inner).insert(what.to_owned())
        {
            return false;
        }
        reserved.what.push(what.to_owned());
        // An earlier reservation may have ended since `taken` was read, because its Service was stored.
        !self.taken(service).contains(what)
    }

    fn addresses(
        &self,
        service: &mut Value,
        old: Option<&Value>,
        taken: &BTreeSet<String>,
        reserved: &mut Reserved,
    ) -> ErrorList {
        if service.str_at("spec.type") == "ExternalName" || service.str_at("spec.clusterIP") == "None" {
            return ErrorList::new();
        }
        let given = service.str_at("spec.clusterIP").to_owned();
        if !given.is_empty() {
            if old.is_some_and(|old| old.str_at("spec.clusterIP") == given) {
                service.default_at("spec.clusterIPs", json!([given]));
                return ErrorList::new();
            }
            let at = Path::new("spec").child("clusterIPs");
            let refuse = |why: &str| {
                let detail = format!("failed to allocate IP {given}: {why}");
                vec![FieldError::invalid(&at, json!([given]), detail)]
            };
            let Ok(address) = given.parse::<Ipv4Addr>() else {
                return ErrorList::new();
            };
            let offset = u32::from(address).wrapping_sub(FIRST);
            if offset == 0 || offset >= SIZE - 1 {
                return refuse("the provided network does not match the current range");
            }
            if !self.reserve(service, &given, taken, reserved) {
                return refuse("provided IP is already allocated");
            }
            service.default_at("spec.clusterIPs", json!([given]));
            return ErrorList::new();
        }
        // As upstream, allocate dynamically from the upper part of the range first; the lower part is for
        // static addresses.
        let static_part = 16.max(SIZE / 16);
        let dynamic = SIZE - 1 - static_part;
        let start = self.ids.below(dynamic);
        let upper = (0..dynamic).map(|step| static_part + (start + step) % dynamic);
        for offset in upper.chain(1..static_part) {
            let address = Ipv4Addr::from(FIRST + offset).to_string();
            if self.reserve(service, &address, taken, reserved) {
                service.set_at("spec.clusterIP", address.as_str());
                service.set_at("spec.clusterIPs", json!([address]));
                return ErrorList::new();
            }
        }
        vec![FieldError::internal(
            &Path::new("spec").child("clusterIPs"),
            "failed to allocate a serviceIP: range is full",
        )]
    }

    fn ports(
        &self,
        service: &mut Value,
        old: Option<&Value>,
        taken: &BTreeSet<String>,
        reserved: &mut Reserved,
    ) -> ErrorList {
        let kind = service.str_at("spec.type").to_owned();
        let allocate = kind == "NodePort"
            || (kind == "LoadBalancer"
                && service.at("spec.allocateLoadBalancerNodePorts").as_bool() != Some(false));
        let mut errors = ErrorList::new();
        if kind != "NodePort" && kind != "LoadBalancer" {
            return errors;
        }
        let old_ports: BTreeSet<String> = old
            .map(|old| {
                let ports = old.list_at("spec.ports").iter();
                ports
                    .filter_map(|port| Some(port_key(port.int_at("nodePort")?, port.str_at("protocol"))))
                    .collect()
            })
            .unwrap_or_default();
        let mut own: BTreeSet<String> = BTreeSet::new();
        let mut ports = service.list_at("spec.ports").to_vec();
        for (index, port) in ports.iter_mut().enumerate() {
            let at = Path::new("spec").child("ports").index(index).child("nodePort");
            let protocol = port.str_at("protocol").to_owned();
            match port.int_at("nodePort").filter(|number| *number != 0) {
                Some(number) => {
                    let key = port_key(number, &protocol);
                    if old_ports.contains(&key) || own.contains(&key) {
                        continue;
                    }
                    if !PORTS.contains(&number) {
                        let detail = "provided port is not in the valid range. The range of valid ports is 30000-32767";
                        errors.push(FieldError::invalid(&at, number, detail));
                    } else if !self.reserve(service, &key, taken, reserved) {
                        errors.push(FieldError::invalid(&at, number, "provided port is already allocated"));
                    }
                    own.insert(key);
                }
                None if allocate => {
                    // As upstream, ports of one Service with different protocols may share a node port.
                    let Some(number) = self.free_port(service, &protocol, taken, reserved) else {
                        errors
                            .push(FieldError::internal(&at, "failed to allocate a nodePort: range is full"));
                        continue;
                    };
                    own.insert(port_key(number, &protocol));
                    port.set_at("nodePort", number);
                }
                None => {}
            }
        }
        service.set_at("spec.ports", ports);
        if kind == "LoadBalancer"
            && service.str_at("spec.externalTrafficPolicy") == "Local"
            && service.int_at("spec.healthCheckNodePort").unwrap_or_default() == 0
        {
            match self.free_port(service, "TCP", taken, reserved) {
                Some(number) => service.set_at("spec.healthCheckNodePort", number),
                None => errors.push(FieldError::internal(
                    &Path::new("spec").child("healthCheckNodePort"),
                    "failed to allocate a nodePort: range is full",
                )),
            }
        }
        errors
    }

    fn free_port(
        &self,
        service: &Value,
        protocol: &str,
        taken: &BTreeSet<String>,
        reserved: &mut Reserved,
    ) -> Option<i64> {
        let size = u32::try_from(PORTS.end() - PORTS.start() + 1).unwrap_or(1);
        let start = self.ids.below(size);
        (0..size)
            .map(|step| PORTS.start() + i64::from((start + step) % size))
            .find(|number| self.reserve(service, &port_key(*number, protocol), taken, reserved))
    }
}

/// Creates and deletes the IPAddress objects of a Service whose addresses changed.
pub(crate) fn follow_addresses(
    objects: &ObjectStore,
    key: &str,
    before: Option<&Arc<StoredObject>>,
    now: Option<&Arc<StoredObject>>,
    after: &mut AfterCommit,
) {
    let registry = objects.registry();
    let Some(addresses) = registry.find("networking.k8s.io", "v1", "ipaddresses") else { return };
    let of = |service: Option<&Arc<StoredObject>>| -> BTreeSet<String> {
        let service = service.map(|version| version.object()).unwrap_or_default();
        let all = service.list_at("spec.clusterIPs").iter().filter_map(Value::as_str);
        all.filter(|address| address.parse::<Ipv4Addr>().is_ok()).map(str::to_owned).collect()
    };
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    for lost in of(before).difference(&of(now)) {
        if let Some(current) = objects.storage().get(&addresses.storage, lost) {
            // On a conflict it is already deleted.
            let _ = objects.remove(addresses, lost, &current, after);
        }
    }
    for won in of(now).difference(&of(before)) {
        let object = address_object(won, namespace, name);
        if let Err(error) = objects.create_unadmitted(addresses, object, after) {
            tracing::warn!(%error, address = won, namespace, name, "failed to create IPAddress of Service");
        }
    }
}

/// The IPAddress object for an address of a Service, without fields that the server sets.
fn address_object(address: &str, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {
            "name": address,
            "labels": {
                "ipaddress.kubernetes.io/ip-family": "IPv4",
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {"parentRef": {"group": "", "resource": "services", "namespace": namespace, "name": name}},
    })
}

fn port_key(number: i64, protocol: &str) -> String {
    format!("{protocol}/{number}")
}
