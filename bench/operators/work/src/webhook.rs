//! The rule of both webhook servers, and the process that serves it.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;

use anyhow::{Context as _, Result};

use crate::Widget;

/// The path of the validating webhook.
pub const VALIDATE: &str = "/validate";
/// The path of the mutating webhook.
pub const MUTATE: &str = "/mutate";

/// A server with the webhooks for [`Widget`].
pub trait WebhookServer {
    /// Serves both webhooks over TLS on 127.0.0.1, with a certificate and key as PEM, until the process ends.
    fn serve(certificate: &[u8], key: &[u8]) -> impl Future<Output = Result<SocketAddr>> + Send;
}

/// The field errors of a widget, as field, value and detail.
pub fn problems(widget: &Widget) -> Vec<(String, serde_json::Value, &'static str)> {
    let mut problems = Vec::new();
    let spec = &widget.spec;
    if !(1..=5).contains(&spec.replicas) {
        problems.push(("spec.replicas".to_owned(), spec.replicas.into(), "must be between 1 and 5"));
    }
    for (index, port) in spec.ports.iter().enumerate() {
        if !(1..=65_535).contains(&port.port) {
            let field = format!("spec.ports[{index}].port");
            problems.push((field, port.port.into(), "must be between 1 and 65535"));
        }
    }
    for (index, host) in spec.hosts.iter().enumerate() {
        if !host.ends_with(".example.com") {
            let field = format!("spec.hosts[{index}]");
            problems.push((field, host.as_str().into(), "must be a subdomain of example.com"));
        }
    }
    problems
}

/// The protocol that a port without one gets.
pub const DEFAULT_PROTOCOL: &str = "TCP";

/// Serves the webhooks and prints `ready` with the address. The process arguments are the files of certificate and key.
pub(crate) async fn run<S: WebhookServer>(mut args: impl Iterator<Item = String>) -> Result<()> {
    let mut file = |what: &str| -> Result<Vec<u8>> {
        let path = args.next().with_context(|| format!("missing file of the {what}"))?;
        fs::read(&path).with_context(|| format!("read {path}"))
    };
    let (certificate, key) = (file("certificate")?, file("key")?);
    let address = S::serve(&certificate, &key).await?;
    let mut stdout = std::io::stdout();
    stdout.write_all(format!("ready {address}\n").as_bytes())?;
    stdout.flush()?;
    std::future::pending().await
}
