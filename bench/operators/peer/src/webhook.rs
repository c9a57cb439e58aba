//! The webhooks on kube-rs' admission types and axum, with rustls as in axum's example.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation};
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use kubewright_bench_work::{DEFAULT_PROTOCOL, MUTATE, VALIDATE, WebhookServer, Widget, problems};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use crate::Peer;

impl WebhookServer for Peer {
    async fn serve(certificate: &[u8], key: &[u8]) -> Result<SocketAddr> {
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>()?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::from_pem_slice(key)?)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let tls = TlsAcceptor::from(Arc::new(config));
        let router = Router::new().route(VALIDATE, post(validate)).route(MUTATE, post(mutate));
        let listener = TcpListener::bind("127.0.0.1:0").await.context("bind a port")?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, router) = (tls.clone(), router.clone());
                tokio::spawn(async move {
                    let served = async {
                        stream.set_nodelay(true)?;
                        let stream = TokioIo::new(tls.accept(stream).await?);
                        let service = TowerToHyperService::new(router);
                        let builder = Builder::new(TokioExecutor::new());
                        builder
                            .serve_connection(stream, service)
                            .await
                            .map_err(|error| anyhow::anyhow!(error))
                    };
                    if let Err(error) = served.await {
                        debug!(%error, "connection failed");
                    }
                });
            }
        });
        Ok(address)
    }
}

async fn validate(body: Bytes) -> Response {
    review(&body, |request| {
        let response = AdmissionResponse::from(request);
        let Some(widget) = &request.object else { return response };
        let errors: Vec<String> = problems(widget)
            .into_iter()
            .map(|(field, value, detail)| format!("{field}: Invalid value: {value}: {detail}"))
            .collect();
        if errors.is_empty() { response } else { response.deny(errors.join(", ")) }
    })
}

async fn mutate(body: Bytes) -> Response {
    review(&body, |request| {
        let response = AdmissionResponse::from(request);
        let Some(widget) = &request.object else { return response };
        let ports = widget.spec.ports.iter().enumerate().filter(|(_, port)| port.protocol.is_none());
        let operations: Vec<PatchOperation> = ports
            .map(|(index, _)| {
                let index = index.to_string();
                let path = PointerBuf::from_tokens(["spec", "ports", &index, "protocol"]);
                PatchOperation::Add(AddOperation { path, value: DEFAULT_PROTOCOL.into() })
            })
            .collect();
        match response.with_patch(json_patch::Patch(operations)) {
            Ok(response) => response,
            Err(error) => AdmissionResponse::invalid(error.to_string()),
        }
    })
}

fn review(body: &Bytes, answer: impl FnOnce(&AdmissionRequest<Widget>) -> AdmissionResponse) -> Response {
    let review: AdmissionReview<Widget> = match serde_json::from_slice(body) {
        Ok(review) => review,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    let request: Result<AdmissionRequest<Widget>, _> = review.try_into();
    let response = match &request {
        Ok(request) => answer(request),
        Err(error) => AdmissionResponse::invalid(error.to_string()),
    };
    let review: AdmissionReview<DynamicObject> = response.into_review();
    match serde_json::to_vec(&review) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
