//! `etcd`, as far as Go's envtest uses it: `GET /health` returns 200 until SIGTERM. It stores nothing.

use std::ffi::OsString;
use std::future::{pending, ready};

use anyhow::{Context as _, Result, bail};
use http::{HeaderValue, Method, StatusCode, header};
use kubewright_runtime::BindAddress;
use kubewright_runtime::internal::serve::{Handler, Response, Server, not_found, text};
use tokio::task::JoinSet;

use super::flags::{Asked, Effect, Flag, Given, Program};
use crate::control_plane;
use crate::error::Hint as _;
use crate::signals::Signals;
use crate::ui::Ui;

const PROGRAM: Program = Program {
    name: "etcd",
    about: "kubewright's stand-in for etcd: serves GET /health and stores nothing. kubewright's kube-apiserver\n\
            keeps objects in memory; a real kube-apiserver needs a real etcd.",
    flags: &[
        Flag {
            name: "listen-client-urls",
            value: "URLS",
            effect: Effect::Used,
            help: "URLs to serve /health on (default http://localhost:2379)",
        },
        Flag { name: "advertise-client-urls", value: "URLS", effect: Effect::Nothing, help: "ignored" },
        Flag { name: "listen-peer-urls", value: "URLS", effect: Effect::Nothing, help: "ignored" },
        Flag { name: "data-dir", value: "DIR", effect: Effect::Nothing, help: "ignored" },
    ],
};

/// Default of etcd.
const DEFAULT_URLS: &str = "http://localhost:2379";
const HEALTHY: &str = r#"{"health":"true","reason":""}"#;

pub(super) fn run(args: &[OsString], ui: &Ui) -> Result<()> {
    match PROGRAM.parse(args)? {
        Asked::Help => ui.print(PROGRAM.help().as_bytes()),
        Asked::Version => {
            ui.print(format!("etcd Version: kubewright {}\n", env!("CARGO_PKG_VERSION")).as_bytes())
        }
        Asked::Run(given) => control_plane::runtime()?.block_on(serve(&given, ui)),
    }
}

async fn serve(given: &Given, ui: &Ui) -> Result<()> {
    let mut signals = Signals::listen()?;
    PROGRAM.warn_ignored(given, ui);
    let urls = given.get("listen-client-urls").unwrap_or(DEFAULT_URLS);
    let mut servers = JoinSet::new();
    for url in urls.split(',') {
        let server = Server::bind(&address(url)?, "--listen-client-urls").await?;
        let server = server.with_context(|| format!("{url:?} in --listen-client-urls has no port"))?;
        let handler = Handler::new(|request| ready(respond(request.method(), request.uri().path())));
        servers.spawn(server.run(handler, pending()));
    }
    ui.note(&format!("serving /health on {urls}; nothing is stored"));
    signals.any().await;
    Ok(())
}

/// `http://127.0.0.1:2379` becomes `127.0.0.1:2379`.
fn address(url: &str) -> Result<BindAddress> {
    let Some(address) = url.strip_prefix("http://") else {
        bail!(
            anyhow::anyhow!("{url:?} in --listen-client-urls is not supported").hint("use http://HOST:PORT")
        );
    };
    let address: BindAddress =
        address.trim_end_matches('/').parse().context("invalid --listen-client-urls")?;
    Ok(address)
}

/// Responds to one request and closes the connection, so that no client keeps the process waiting.
fn respond(method: &Method, path: &str) -> Response {
    let is_health = method == Method::GET && path == "/health";
    let mut response = if is_health { text(StatusCode::OK, HEALTHY) } else { not_found() };
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_get_health_returns_200() {
        let status = |method: Method, path: &str| respond(&method, path).status();
        assert_eq!(status(Method::GET, "/health"), StatusCode::OK);
        for (method, path) in [(Method::POST, "/health"), (Method::GET, "/healthy"), (Method::GET, "/")] {
            assert_eq!(status(method, path), StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[test]
    fn urls_without_tls_are_addresses() {
        assert_eq!(address("http://127.0.0.1:2379/").unwrap().to_string(), "127.0.0.1:2379");
        assert_eq!(
            address("https://127.0.0.1:2379").unwrap_err().to_string(),
            "\"https://127.0.0.1:2379\" in --listen-client-urls is not supported"
        );
    }
}
