//! A manager of the simulation: its rotator, its certificates and its connection.

use std::sync::Arc;

use kubewright_apiserver::ApiServer;
use kubewright_runtime::internal::certs::Certificates;
use kubewright_runtime::webhook::certificates::{ExpectedTargets, Readiness, Rotator, RotatorOptions};
use kubewright_runtime::{Client, Clock};
use tokio::task::JoinHandle;

use super::wire::Wire;
use super::{LIFETIMES, Shared};

/// A running manager. Dropping it kills it: its requests end wherever they are.
pub(super) struct Manager(JoinHandle<()>);

/// What clients see of a manager.
pub(super) struct Served {
    certificates: Certificates,
    readiness: Readiness,
}

impl Served {
    pub(super) fn is_ready(&self) -> bool {
        self.readiness.check().is_ok()
    }

    pub(super) fn certificates(&self) -> Certificates {
        self.certificates.clone()
    }
}

impl Manager {
    pub(super) fn start(index: usize, server: &ApiServer, shared: &Arc<Shared>) -> Self {
        let clock: Arc<dyn Clock> = shared.clock.clone();
        let certificates = Certificates::self_signed(&["localhost"], &*clock).expect("a certificate");
        let targets = ExpectedTargets {
            mutating: vec!["/m".to_owned()],
            validating: vec!["/v".to_owned()],
            crds: vec!["orders.example.com".to_owned()],
            api_services: vec!["v1.prices.example.com".to_owned()],
        };
        let options = RotatorOptions {
            lifetimes: LIFETIMES,
            ..RotatorOptions::new("system", "webhook-service", targets)
        };
        let wire = Wire::new(index, server.clone(), shared.clone());
        let client = Client::new(kube::Client::new(wire, "system"));
        let rotator = Rotator::new(&client, options, certificates.clone(), clock);
        let mut state = shared.state();
        state.managers[index] = Some(Served { certificates, readiness: rotator.readiness() });
        let now = shared.clock.now();
        state.trace.push(now, &format!("{index} starts"));
        Self(tokio::spawn(rotator.run()))
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.0.abort();
    }
}
