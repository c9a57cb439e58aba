//! Limits of the server process: file descriptors and memory.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use http::{Request, header};
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::json;

use crate::kubectl::process::Process;
use crate::run::command;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Starts a server with a limit of open files. Returns its address, too.
fn start(kubeconfig: &Path, open_files: u32) -> (Process, String) {
    let own = command("apiserver --controllers none --port 0 --kubeconfig");
    let mut limited = Command::new("sh");
    limited.arg("-c").arg(format!("ulimit -n {open_files}; exec \"$0\" \"$@\""));
    limited.arg(own.get_program()).args(own.get_args()).arg(kubeconfig);
    let mut server = Process::start(&mut limited, "");
    let ready = server.line_with("ready https://");
    let address = ready.split_whitespace().nth(1).and_then(|url| url.strip_prefix("https://"));
    let address = address.expect("an address").to_owned();
    (server, address)
}

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}

async fn read(client: &Client, path: &str) -> Result<String, kube::Error> {
    client.request_text(Request::get(path).body(Vec::new()).expect("a request")).await
}

#[tokio::test]
async fn the_server_waits_for_descriptors_when_they_run_out() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let (mut server, address) = start(&kubeconfig, 64);
    let held: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(&address).unwrap()).collect();
    server.line_with("failed to accept connection");
    drop(held);
    read(&client(&kubeconfig).await, "/version").await.unwrap();
    let asked = Command::new("kill").arg("-TERM").arg(server.id().to_string()).status();
    assert!(asked.is_ok_and(|status| status.success()));
    let ended = server.end();
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    // The pauses between attempts grow up to a second.
    let attempts = ended.stderr.matches("failed to accept connection").count();
    assert!((1..40).contains(&attempts), "{attempts} attempts");
}

/// Resident memory in MiB.
#[cfg(target_os = "linux")]
fn memory(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix("kB").unwrap().trim().parse::<u64>().unwrap() >> 10
}

/// The rendered events of all watches would need 600 MB.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn watches_that_are_not_read_need_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let (server, _) = start(&kubeconfig, 1024);
    let writer = client(&kubeconfig).await;
    for at in 0..600 {
        let metadata = json!({"name": format!("a{at}"), "annotations": {"long": "x".repeat(50_000)}});
        let body = json!({"metadata": metadata}).to_string().into_bytes();
        let request = Request::post(MAPS).header(header::CONTENT_TYPE, "application/json").body(body);
        writer.request_text(request.unwrap()).await.unwrap();
    }
    let before = memory(&server);
    let mut watches = Vec::new();
    for _ in 0..20 {
        let watch = Request::get(format!("{MAPS}?watch=true"))
            .header(header::ACCEPT, "application/json;as=Table;g=meta.k8s.io;v=v1")
            .body(kube::client::Body::empty())
            .unwrap();
        let own = client(&kubeconfig).await;
        let response = own.send(watch).await.unwrap();
        assert_eq!(response.status(), 200);
        watches.push((own, response));
    }
    read(&writer, &format!("{MAPS}/a0")).await.unwrap();
    let grown = memory(&server).saturating_sub(before);
    assert!(grown < 200, "{grown} MiB for {} watches", watches.len());
}

/// Each token took 1.3 KB when the server stored the tokens that it issued.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn issued_tokens_need_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let (server, _) = start(&kubeconfig, 1024);
    let client = client(&kubeconfig).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let post = |path: &str, body: serde_json::Value| {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        request.body(body.to_string().into_bytes()).unwrap()
    };
    client.request_text(post(accounts, json!({"metadata": {"name": "a"}}))).await.unwrap();
    let path = format!("{accounts}/a/token");
    let issue = async |count: usize| {
        let body = || json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        for _ in 0..count / 20 {
            let requests = (0..20).map(|_| client.request_text(post(&path, body())));
            for issued in futures_util::future::join_all(requests).await {
                issued.unwrap();
            }
        }
    };
    issue(1000).await;
    let before = memory(&server);
    issue(20_000).await;
    let grown = memory(&server).saturating_sub(before);
    assert!(grown < 10, "{grown} MiB for 20,000 tokens");
}
