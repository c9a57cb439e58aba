//! Connections through a proxy, or with credentials of an exec plugin.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use kubewright_apiserver::serve::Listening;
use kubewright_apiserver::{ApiServer, Options as ServerOptions};
use kubewright_runtime::connect::{self, ConnectError, Options, Source};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

async fn cluster() -> Result<Listening> {
    let options = ServerOptions { seed: Some(1), ..ServerOptions::default() };
    Ok(Listening::open(ApiServer::new(options), 0).await?)
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, text)?;
    Ok(path)
}

async fn client_of(kubeconfig: PathBuf) -> Result<kube::Client> {
    let source = Source { kubeconfig: Some(kubeconfig), context: None };
    Ok(connect::client(connect::infer(&source).await?, Options::default())?)
}

/// An HTTP proxy that records its requests.
struct Proxy {
    address: std::net::SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    _task: JoinSet<()>,
}

impl Proxy {
    /// `answer` is the status line of the response. The proxy connects only with 200.
    async fn open(answer: &'static str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, asked) = (listener.local_addr()?, Arc::<Mutex<Vec<String>>>::default());
        let (mut task, heard) = (JoinSet::new(), asked.clone());
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(serve(client, answer, heard.clone()));
            }
        });
        Ok(Self { address, asked, _task: task })
    }
}

async fn serve(mut client: TcpStream, answer: &'static str, heard: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = client.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let to = head.split(' ').nth(1).unwrap_or_default().to_owned();
    heard.lock().unwrap().push(head);
    let _ = client.write_all(format!("{answer}\r\nX-From: proxy\r\n\r\n").as_bytes()).await;
    if answer.contains("200")
        && let Ok(mut server) = TcpStream::connect(to).await
    {
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
}

fn by_way_of(listening: &Listening, proxy: &str) -> String {
    listening.kubeconfig().replace("    server:", &format!("    proxy-url: {proxy}\n    server:"))
}

#[tokio::test]
async fn the_proxy_of_a_kubeconfig_is_used() -> Result<()> {
    let (listening, folder) = (cluster().await?, tempfile::tempdir()?);
    let proxy = Proxy::open("HTTP/1.1 200 Connection established").await?;
    let text = by_way_of(&listening, &format!("http://me:p%40ss@{}", proxy.address));
    let client = client_of(write(folder.path(), "config", &text)?).await?;
    let request = http::Request::get("/version").body(kube::client::Body::empty())?;
    let answer = client.send(request).await?;
    assert_eq!((answer.status().as_u16(), answer.version()), (200, http::Version::HTTP_2));
    let asked = proxy.asked.lock().unwrap().join("");
    let to = listening.address();
    assert_eq!(
        asked,
        format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\nProxy-Authorization: Basic bWU6cEBzcw==\r\n\r\n")
    );
    Ok(())
}

#[tokio::test]
async fn a_proxy_that_rejects_the_tunnel_is_reported() -> Result<()> {
    let (listening, folder) = (cluster().await?, tempfile::tempdir()?);
    for (answer, said) in [
        ("HTTP/1.1 407 Proxy Authentication Required", "http://USER:PASSWORD@HOST:PORT"),
        ("HTTP/1.1 403 Forbidden", "403 Forbidden"),
        ("SSH-2.0", "not an HTTP proxy"),
    ] {
        let proxy = Proxy::open(answer).await?;
        let text = by_way_of(&listening, &format!("http://{}", proxy.address));
        let client = client_of(write(folder.path(), "config", &text)?).await?;
        let error = client.apiserver_version().await.expect_err("there is no way");
        let error = format!("{:#}", anyhow::Error::new(error));
        assert!(error.contains(said), "{error}");
    }
    let text = by_way_of(&listening, "socks5://127.0.0.1:1080");
    let error = client_of(write(folder.path(), "config", &text)?).await.err().context("no SOCKS")?;
    assert!(matches!(error.downcast_ref(), Some(ConnectError::Proxy(_))), "{error}");
    Ok(())
}

/// The decoded value of a field of a kubeconfig.
fn pem(kubeconfig: &str, field: &str) -> Result<String> {
    let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix(field)?.strip_prefix(": "));
    let bytes = base64::engine::general_purpose::STANDARD.decode(line.context("the field is there")?)?;
    Ok(String::from_utf8(bytes)?)
}

#[tokio::test]
async fn an_exec_plugin_relative_to_the_kubeconfig_returns_the_certificate() -> Result<()> {
    let (listening, folder) = (cluster().await?, tempfile::tempdir()?);
    let kubeconfig = listening.kubeconfig();
    let status = serde_json::json!({
        "clientCertificateData": pem(&kubeconfig, "client-certificate-data")?,
        "clientKeyData": pem(&kubeconfig, "client-key-data")?,
    });
    let answer =
        serde_json::json!({ "apiVersion": "client.authentication.k8s.io/v1beta1", "status": status });
    let answer = write(folder.path(), "answer.json", &answer.to_string())?;
    let (before, _) = kubeconfig.split_once("    client-certificate-data").context("a certificate")?;
    let (_, after) = kubeconfig.split_once("contexts:").context("contexts")?;
    let user = format!(
        "    exec:\n      apiVersion: client.authentication.k8s.io/v1beta1\n      command: cat\n      args: [{}]\n",
        answer.display()
    );
    let with = write(folder.path(), "config", &format!("{before}{user}contexts:{after}"))?;
    let pods = "/api/v1/namespaces/default/pods";
    let request = || http::Request::get(pods).body(kube::client::Body::empty());
    let client = client_of(with).await?;
    assert_eq!(client.send(request()?).await?.status(), 200);

    // Without credentials the request is anonymous.
    let without = write(folder.path(), "nobody", &format!("{before}    token: ''\ncontexts:{after}"))?;
    let client = client_of(without).await?;
    assert_ne!(client.send(request()?).await?.status(), 200);
    Ok(())
}
