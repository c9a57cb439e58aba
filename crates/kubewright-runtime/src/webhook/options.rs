//! How a manager serves its webhooks. The operator's entry point fills this from its flags.

use std::path::PathBuf;

use crate::serve::BindAddress;

/// How a manager serves its webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookOptions {
    /// Where webhooks are served. If off, they are registered and not served: for tests that call them in the process.
    pub bind_address: BindAddress,
    /// Where the certificate comes from.
    pub certificates: CertificateMode,
    /// Name of the Service in front of the replicas.
    pub service_name: String,
    /// Namespace of the Service; the pod's namespace if none.
    pub service_namespace: Option<String>,
    /// Name of the Secret with the certificates; `<operator>-webhook-cert` if none.
    pub secret_name: Option<String>,
    /// DNS names of the certificate besides those of the Service.
    pub extra_names: Vec<String>,
    /// The DNS domain of the cluster.
    pub cluster_domain: String,
}

/// Where the certificate of the webhook server comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateMode {
    /// The replicas keep CA and certificate in one Secret, rotate them, and inject the CA. See
    /// [`certificates`](super::certificates).
    SelfSigned,
    /// PEM files, which are read again when they change: those of cert-manager, for instance.
    Files {
        /// The certificate chain.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// Plain HTTP, behind a proxy that terminates TLS. The API server itself calls webhooks over TLS only.
    None,
}

impl Default for WebhookOptions {
    fn default() -> Self {
        Self {
            bind_address: BindAddress::OFF,
            certificates: CertificateMode::SelfSigned,
            service_name: "webhook-service".to_owned(),
            service_namespace: None,
            secret_name: None,
            extra_names: Vec::new(),
            cluster_domain: "cluster.local".to_owned(),
        }
    }
}

/// The name of the Secret that keeps the certificates of an operator.
pub fn secret_name(operator: &str) -> String {
    format!("{operator}-webhook-cert")
}
