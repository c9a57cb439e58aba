//! Test fixtures: an API server, a manager with a debug page, and an HTTP client. The tests run on the real clock.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Empty};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kubewright_apiserver::authn::{MASTERS, User};
use kubewright_apiserver::authz::{Action, ActionOn, Authorization, Authorizer};
use kubewright_apiserver::{ApiServer, Options};
use kubewright_page::ManagerPage;
use kubewright_runtime::{
    Context, Manager, ManagerError, ManagerOptions, Outcome, Patch, ReconcileError, Reconciler,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// The user `reader` may get the page, administrators everything.
struct Rules;

impl Authorizer for Rules {
    fn allows(&self, user: &User, action: Action<'_>) -> bool {
        let reads = action.verb == "get" && matches!(action.on, ActionOn::Path("/debug/page"));
        user.is_in(MASTERS) || reads && user.name == "reader"
    }
}

/// An API server with the tokens `may-read` and `may-not`.
pub(crate) fn server() -> ApiServer {
    let authorization = Authorization::Custom(Arc::new(Rules));
    let server = ApiServer::new(Options { authorization, ..Options::default() });
    server.add_token("may-read", User::authenticated("reader", []));
    server.add_token("may-not", User::authenticated("eve", []));
    server
}

/// Labels ConfigMaps. Those named `bad` fail.
struct Labeller;

impl Reconciler for Labeller {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context) -> Result<Outcome, ReconcileError> {
        if cx.key().name() == "bad" {
            return Err(anyhow::anyhow!("no label for bad"));
        }
        let labelled = Patch::merge(json!({ "metadata": { "labels": { "seen": "true" } } }));
        cx.client().patch(map, &labelled).await?;
        Ok(Outcome::done())
    }
}

/// Options of a manager with a page on a loopback address, without authentication.
pub(crate) fn local() -> Result<ManagerOptions> {
    let debug_page_bind_address = "127.0.0.1:0".parse()?;
    Ok(ManagerOptions { debug_page_bind_address, ..ManagerOptions::new("labeller").namespaces(["default"]) })
}

/// The certificate of a secured page.
pub(crate) struct Certificate {
    pub(crate) folder: TempDir,
    trusted: CertificateDer<'static>,
}

impl Certificate {
    pub(crate) fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
        std::fs::write(folder.path().join("tls.crt"), made.cert.pem())?;
        std::fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem())?;
        let trusted = CertificateDer::from_pem_slice(made.cert.pem().as_bytes())?;
        Ok(Self { folder, trusted })
    }
}

/// A running manager with a controller of ConfigMaps.
pub(crate) struct World {
    pub(crate) client: kube::Client,
    pub(crate) manager: Manager,
    pub(crate) page: ManagerPage,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ManagerError>>,
}

impl World {
    pub(crate) fn start(options: ManagerOptions) -> Result<Self> {
        Self::start_with(options, |_| Ok(()))
    }

    pub(crate) fn start_with(
        options: ManagerOptions,
        register: impl FnOnce(&Manager) -> Result<()>,
    ) -> Result<Self> {
        let client = kube::Client::new(server(), "default");
        let manager = Manager::new(client.clone(), options)?;
        let page = ManagerPage::new();
        manager.set_debug_page(Arc::new(page.clone()));
        manager.controller(Labeller).register()?;
        register(&manager)?;
        let stop = CancellationToken::new();
        let task = tokio::spawn(manager.clone().run_until(stop.clone().cancelled_owned()));
        Ok(Self { client, manager, page, stop, task })
    }

    pub(crate) async fn address(&self) -> Result<SocketAddr> {
        self.manager.addresses().await.debug_page.context("the page is served")
    }

    pub(crate) async fn end(self) -> Result<()> {
        self.stop.cancel();
        Ok(tokio::time::timeout(DEADLINE, self.task).await???)
    }

    pub(crate) async fn config_map(&self, name: &str, data: &Value) -> Result<ConfigMap> {
        let map = json!({ "metadata": { "name": name }, "data": data });
        let maps: Api<ConfigMap> = Api::default_namespaced(self.client.clone());
        Ok(maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?)
    }

    /// Polls like the page until all entries are received and the condition holds. Returns the entries by topic.
    pub(crate) async fn entries(&self, holds: impl Fn(&Entries) -> bool) -> Result<Entries> {
        let http = Http::plain(self.address().await?);
        tokio::time::timeout(DEADLINE, async {
            let (mut after, mut entries) = (String::new(), Entries::default());
            loop {
                let answer = http.get(&format!("/debug/page/updates?after={after}"), None).await?;
                if answer.status == 204 {
                    continue;
                }
                let update: Value = serde_json::from_str(&answer.body)?;
                entries.take(&update["batch"]);
                update["id"].as_str().context("an id")?.clone_into(&mut after);
                if update["batch"]["more"] == false && holds(&entries) {
                    return Ok(entries);
                }
            }
        })
        .await?
    }
}

/// The entries of the page, as its script keeps them.
#[derive(Debug, Default)]
pub(crate) struct Entries(Vec<(String, Value)>);

impl Entries {
    fn take(&mut self, batch: &Value) {
        if batch["reset"] == true {
            self.0.clear();
        }
        let id = |topic: &str, entry: &Value| match topic {
            "operator" => entry["name"].clone(),
            "queue" => entry["controller"].clone(),
            _ => entry["id"].clone(),
        };
        for put in batch["put"].as_array().into_iter().flatten() {
            let topic = put[0].as_str().unwrap_or_default();
            self.0.retain(|(of, old)| of != topic || id(topic, old) != id(topic, &put[1]));
            self.0.push((topic.to_owned(), put[1].clone()));
        }
        for gone in batch["gone"].as_array().into_iter().flatten() {
            self.0.retain(|(of, old)| gone[0] != of.as_str() || id(of, old) != gone[1]);
        }
    }

    pub(crate) fn of<'a>(&'a self, topic: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |(of, _)| of == topic).map(|(_, entry)| entry)
    }

    /// The ended reconciles of an object.
    pub(crate) fn ended<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.of("reconcile").filter(move |it| it["name"] == name && !it["outcome"].is_null())
    }
}

/// An HTTP client.
pub(crate) struct Http {
    scheme: &'static str,
    address: SocketAddr,
    client: legacy::Client<hyper_rustls::HttpsConnector<legacy::connect::HttpConnector>, Empty<Bytes>>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Http {
    /// Without TLS.
    pub(crate) fn plain(address: SocketAddr) -> Self {
        Self::new("http", address, rustls::RootCertStore::empty())
    }

    /// With TLS, trusting only this certificate.
    pub(crate) fn secure(address: SocketAddr, certificate: &Certificate) -> Result<Self> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.trusted.clone())?;
        Ok(Self::new("https", address, roots))
    }

    fn new(scheme: &'static str, address: SocketAddr, roots: rustls::RootCertStore) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring supports them")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Self { scheme, address, client: legacy::Client::builder(TokioExecutor::new()).build(connector) }
    }

    pub(crate) async fn get(&self, path: &str, token: Option<&str>) -> Result<Answer> {
        let headers = token.map(|token| ("authorization", format!("Bearer {token}")));
        self.send("GET", path, headers).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Answer> {
        let uri = format!("{}://{}{path}", self.scheme, self.address);
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let sent = self.client.request(request.body(Empty::new())?);
        let Ok(response) = tokio::time::timeout(DEADLINE, sent).await else { bail!("{path} timed out") };
        let response = response?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Answer { status, headers, body: String::from_utf8(body.to_vec())? })
    }
}
