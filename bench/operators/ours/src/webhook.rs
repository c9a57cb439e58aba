//! The webhooks on kubewright-runtime.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use kubewright_bench_work::{DEFAULT_PROTOCOL, MUTATE, VALIDATE, WebhookServer, Widget, problems};
use kubewright_runtime::internal::certs::Certificates;
use kubewright_runtime::internal::serve::{BindAddress, Handler, Server};
use kubewright_runtime::webhook::{AdmissionRequest, Defaulter, Rejection, Validation, Validator, Webhooks};

use crate::Ours;

struct Rule;

impl Validator for Rule {
    type Object = Widget;

    async fn validate_create(&self, widget: &Widget, v: &mut Validation<'_>) -> Result<(), Rejection> {
        for (field, value, detail) in problems(widget) {
            v.invalid(field.as_str(), value, detail);
        }
        Ok(())
    }
}

impl Defaulter for Rule {
    type Object = Widget;

    async fn default(&self, widget: &mut Widget, _: &AdmissionRequest) -> Result<(), Rejection> {
        for port in &mut widget.spec.ports {
            port.protocol.get_or_insert_with(|| DEFAULT_PROTOCOL.to_owned());
        }
        Ok(())
    }
}

impl WebhookServer for Ours {
    async fn serve(certificate: &[u8], key: &[u8]) -> Result<SocketAddr> {
        let webhooks = Webhooks::new();
        webhooks.validator(VALIDATE, Rule)?;
        webhooks.defaulter(MUTATE, Rule)?;
        let address: BindAddress = "127.0.0.1:0".parse()?;
        let server = Server::bind(&address, "address").await?.context("the webhook server is disabled")?;
        let server = server.with_tls(Certificates::from_pem(certificate, key)?);
        let address = server.address();
        let handler = Handler::new(move |request| {
            let webhooks = webhooks.clone();
            async move { webhooks.handle(request).await }
        });
        tokio::spawn(server.run(handler, std::future::pending()));
        Ok(address)
    }
}
