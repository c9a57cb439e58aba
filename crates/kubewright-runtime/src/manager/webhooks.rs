//! The webhooks of a manager: registration and server.
//!
//! A registered webhook is both served and part of the manifest. Every replica serves webhooks, leader or not.

use std::net::SocketAddr;
use std::sync::Arc;

use tracing::info;

use super::group::{Group, Groups};
use super::{Inner, Manager, ManagerError, RegisterError};
use crate::Key;
use crate::certs::{CertificateMetrics, Certificates};
use crate::election::pod_namespace;
use crate::journal::{Journal, Reviews};
use crate::serve::{Handler, Server};
use crate::webhook::certificates::{ExpectedTargets, Rotator, RotatorMetrics, RotatorOptions};
use crate::webhook::{
    self, AdmissionHandler, ApiHandler, CertificateMode, Conversion, Declaration, Defaulter, GroupVersion,
    Validator, Webhooks,
};

impl Manager {
    /// Registers a defaulting webhook. It must be registered before the manager runs.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Manager, ManagerOptions};
    /// use kubewright_runtime::webhook::{AdmissionRequest, Defaulter, Rejection};
    ///
    /// struct Labelled;
    ///
    /// impl Defaulter for Labelled {
    ///     type Object = ConfigMap;
    ///
    ///     async fn default(&self, object: &mut ConfigMap, _: &AdmissionRequest) -> Result<(), Rejection> {
    ///         object.metadata.labels.get_or_insert_default().insert("team".into(), "a".into());
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_apiserver::ApiServer::new(kubewright_apiserver::Options::default());
    /// # let manager = Manager::new(kube::Client::new(server, "default"), ManagerOptions::new("labels"))?;
    /// manager.defaulter(Labelled)?;
    /// assert_eq!(manager.webhooks().paths(), ["/mutate--v1-configmap"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn defaulter<D: Defaulter>(&self, defaulter: D) -> Result<(), RegisterError> {
        let declared = webhook::complete::<D, D::Object>(D::webhook(), true);
        self.add_webhook(declared, |webhooks, path| webhooks.defaulter(path, defaulter))
    }

    /// Registers a validating webhook. It must be registered before the manager runs.
    pub fn validator<V: Validator>(&self, validator: V) -> Result<(), RegisterError> {
        let declared = webhook::complete::<V, V::Object>(V::webhook(), false);
        self.add_webhook(declared, |webhooks, path| webhooks.validator(path, validator))
    }

    /// Registers an admission handler that has `#[webhook]`. It must be registered before the manager runs.
    pub fn admission<H: AdmissionHandler>(&self, handler: H) -> Result<(), RegisterError> {
        let undeclared = webhook::RegisterError::Undeclared(std::any::type_name::<H>());
        let declared = H::webhook().ok_or(undeclared)?.with_defaults();
        self.add_webhook(declared, |webhooks, path| webhooks.admission(path, handler))
    }

    /// Registers the conversions of a kind. They must be registered before the manager runs.
    pub fn conversion(&self, conversion: Conversion) -> Result<(), RegisterError> {
        let (group, kind) = conversion.group_kind();
        self.check_not_started(&format!("conversion of {kind}.{group}"))?;
        Ok(self.inner.webhooks.conversion(conversion)?)
    }

    /// Registers a version of an API group that the operator serves. The manifests get an APIService, with which the API
    /// server forwards the requests of clients. It must be registered before the manager runs.
    pub fn api_service(
        &self,
        group: &str,
        version: &str,
        handler: impl ApiHandler,
    ) -> Result<(), RegisterError> {
        self.check_not_started(&format!("API service {version}.{group}"))?;
        Ok(self.inner.webhooks.api(group, version, handler)?)
    }

    /// The registered webhooks, as a `tower` service.
    pub fn webhooks(&self) -> &Webhooks {
        &self.inner.webhooks
    }

    fn add_webhook(
        &self,
        declared: Declaration,
        add: impl FnOnce(&Webhooks, String) -> Result<(), webhook::RegisterError>,
    ) -> Result<(), RegisterError> {
        self.check_not_started(&declared.name)?;
        add(&self.inner.webhooks, declared.path.clone())?;
        self.state().webhooks.push(declared);
        Ok(())
    }

    fn check_not_started(&self, name: &str) -> Result<(), RegisterError> {
        let started = self.state().running.is_some();
        if started { Err(RegisterError::Started(name.to_owned())) } else { Ok(()) }
    }

    /// Records the reviews of the registered webhooks.
    pub(super) fn record_webhooks(&self, journal: &Journal) {
        let names = self.state().webhooks.iter().map(|it| (it.path.clone(), it.name.clone())).collect();
        self.inner.webhooks.record(Reviews::new(journal.clone(), names));
    }

    /// Binds the webhook server; `None` if no webhook is registered.
    pub(super) async fn bind_webhooks(&self) -> Result<Option<Server>, ManagerError> {
        if self.inner.webhooks.is_empty() {
            return Ok(None);
        }
        let address = &self.inner.options.webhooks.bind_address;
        Ok(Server::bind(address, "--webhook-bind-address").await?)
    }

    /// Starts the webhook server and the rotation of its certificate.
    pub(super) fn serve_webhooks(
        &self,
        server: Server,
        reads: &CertificateMetrics,
        groups: &mut Groups,
    ) -> Result<(), ManagerError> {
        let Inner { options, webhooks, readyz, .. } = &*self.inner;
        let served = match &options.webhooks.certificates {
            CertificateMode::SelfSigned => {
                Some(self.rotate_certificates(server.address(), &mut groups.always)?)
            }
            CertificateMode::Files { certificate, key } => {
                let certificates = Certificates::from_files(certificate, key);
                let certificates = certificates.map_err(ManagerError::WebhookCertificate)?;
                Some(certificates.with_metrics(reads.clone()))
            }
            CertificateMode::None => None,
        };
        let (address, is_tls) = (server.address(), served.is_some());
        if options.webhooks.certificates != CertificateMode::SelfSigned {
            // In mode self-signed, the check of the certificates calls the server.
            readyz.add_async("webhook", move || webhook::check_started(address, is_tls));
        }
        info!(%address, tls = is_tls, paths = ?webhooks.paths(), "Starting webhook server");
        let server = match served {
            Some(certificates) => server.with_tls(certificates),
            None => server,
        };
        let handler = {
            let webhooks = webhooks.clone();
            Handler::new(move |request| {
                let webhooks = webhooks.clone();
                async move { webhooks.handle(request).await }
            })
        };
        let stop = groups.servers.stop.clone();
        groups.servers.spawn("webhook server", async move {
            server.run(handler, stop.cancelled_owned()).await;
            Ok(())
        });
        Ok(())
    }

    /// The targets of the registered webhooks.
    fn certificate_targets(&self) -> ExpectedTargets {
        let declared = &self.state().webhooks;
        let paths = |mutating: bool| {
            let of_kind = declared.iter().filter(|webhook| webhook.mutating == mutating);
            of_kind.map(|webhook| webhook.path.clone()).collect()
        };
        ExpectedTargets {
            mutating: paths(true),
            validating: paths(false),
            crds: self.inner.webhooks.conversions().iter().map(Conversion::crd_name).collect(),
            api_services: self.inner.webhooks.apis().iter().map(GroupVersion::api_service).collect(),
        }
    }

    fn rotate_certificates(
        &self,
        address: SocketAddr,
        always: &mut Group,
    ) -> Result<Certificates, ManagerError> {
        let Inner { options, client, recorder, readyz, .. } = &*self.inner;
        let settings = &options.webhooks;
        let namespace = match &settings.service_namespace {
            Some(namespace) => namespace.clone(),
            None => pod_namespace().map_err(ManagerError::WebhookNamespace)?,
        };
        let secret = settings.secret_name.clone().unwrap_or_else(|| webhook::secret_name(&options.name));
        let rotation = RotatorOptions {
            secret: Key::namespaced(&namespace, &secret),
            extra_names: settings.extra_names.clone(),
            cluster_domain: settings.cluster_domain.clone(),
            ..RotatorOptions::new(&namespace, &settings.service_name, self.certificate_targets())
        };
        // Served until the Secret is read. No API server trusts it, and the replica is not ready until then.
        let certificates = Certificates::self_signed(&["localhost"], &*options.clock)
            .map_err(ManagerError::WebhookCertificate)?;
        let metrics = options.metrics.with_registry(RotatorMetrics::register);
        let client = client.unfenced();
        let rotator = Rotator::new(&client, rotation, certificates.clone(), Arc::clone(&options.clock))
            .with_server(address)
            .with_metrics(metrics)
            .with_recorder(recorder.clone());
        let readiness = rotator.readiness();
        readyz.add("webhook-certificates", move || readiness.check());
        let stop = always.stop.clone();
        always.spawn("webhook certificates", async move {
            tokio::select! {
                () = rotator.run() => {}
                () = stop.cancelled() => {}
            }
            Ok(())
        });
        Ok(certificates)
    }
}
