//! Options of the webhook server. The operator's entry point fills them from its flags.

use std::path::PathBuf;

use crate::serve::BindAddress;

/// Options of the webhook server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookOptions {
    /// The address of the webhook server. If off, webhooks are registered but not served, for tests that call them in
    /// the process.
    pub bind_address: BindAddress,
    /// The source of the certificate.
    pub certificates: CertificateMode,
    /// Name of the Service in front of the replicas.
    pub service_name: String,
    /// Namespace of the Service; defaults to the pod's namespace.
    pub service_namespace: Option<String>,
    /// Name of the Secret with the certificates; defaults to `<operator>-webhook-cert`.
    pub secret_name: Option<String>,
    /// Additional DNS names of the certificate.
    pub extra_names: Vec<String>,
    /// The DNS domain of the cluster.
    pub cluster_domain: String,
}

/// The source of the webhook server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateMode {
    /// The replicas keep CA and certificate in one Secret, rotate them, and inject the CA. See
    /// [`certificates`](super::certificates).
    SelfSigned,
    /// PEM files, which are reloaded when they change, such as those of cert-manager.
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

/// The default name of the Secret with an operator's webhook certificates.
pub fn secret_name(operator: &str) -> String {
    format!("{operator}-webhook-cert")
}
