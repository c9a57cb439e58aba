//! `etcd`, as far as Go's envtest uses it: `GET /health` returns 200 until SIGTERM. It stores nothing.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

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
            effect: Effect::Heeded,
            help: "URLs to serve /health on (default http://localhost:2379)",
        },
        Flag { name: "advertise-client-urls", value: "URLS", effect: Effect::Nothing, help: "ignored" },
        Flag { name: "listen-peer-urls", value: "URLS", effect: Effect::Nothing, help: "ignored" },
        Flag { name: "data-dir", value: "DIR", effect: Effect::Nothing, help: "ignored" },
    ],
};

/// Default of etcd.
const DEFAULT_URLS: &str = "http://localhost:2379";
/// Limit for the head of a health request.
const HEAD_BYTES: usize = 8 << 10;
/// Timeout for reading a request.
const PATIENCE: Duration = Duration::from_secs(10);

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
    PROGRAM.tell_unheeded(given, ui);
    let urls = given.get("listen-client-urls").unwrap_or(DEFAULT_URLS);
    for url in urls.split(',') {
        let address = address(url)?;
        let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {url}"))?;
        tokio::spawn(accept(listener));
    }
    ui.note(&format!("serving /health on {urls}; nothing is stored"));
    signals.any().await;
    Ok(())
}

/// `http://127.0.0.1:2379` becomes `127.0.0.1:2379`.
fn address(url: &str) -> Result<&str> {
    let Some(address) = url.strip_prefix("http://") else {
        bail!(
            anyhow::anyhow!("{url:?} in --listen-client-urls is not supported").hint("use http://HOST:PORT")
        );
    };
    Ok(address.trim_end_matches('/'))
}

async fn accept(listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(tokio::time::timeout(PATIENCE, answer(stream)));
            }
            // Out of file descriptors, or the client disconnected early: accept the next one.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Answers one request and closes the connection.
async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_BYTES {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let (status, body) = if is_health(&head) {
        ("200 OK", r#"{"health":"true","reason":""}"#)
    } else {
        ("404 Not Found", "404 page not found\n")
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

fn is_health(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let path = words.nth(1).unwrap_or_default();
    line.starts_with(b"GET ") && path.split(|byte| *byte == b'?').next() == Some(b"/health")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_get_health_returns_200() {
        assert!(is_health(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(is_health(b"GET /health?serializable=true HTTP/1.1\r\n\r\n"));
        for other in ["POST /health HTTP/1.1\r\n\r\n", "GET /healthy HTTP/1.1\r\n\r\n", "GET\r\n\r\n", ""] {
            assert!(!is_health(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn urls_without_tls_are_addresses() {
        assert_eq!(address("http://127.0.0.1:2379/").unwrap(), "127.0.0.1:2379");
        assert_eq!(
            address("https://127.0.0.1:2379").unwrap_err().to_string(),
            "\"https://127.0.0.1:2379\" in --listen-client-urls is not supported"
        );
    }
}
