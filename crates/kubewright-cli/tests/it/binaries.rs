//! kubewright as kube-apiserver and etcd, used as Go's envtest does.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use kubewright_apiserver::certs::{Authority, Identity};

use crate::kubectl::process::{Ended, Process};
use crate::run::{command, run};

/// The binary under another name, as through a symlink.
fn called(name: &str, line: &str) -> Command {
    let mut command = command(line);
    command.arg0(format!("bin/{name}"));
    command
}

#[track_caller]
fn terminate(process: &mut Process) -> Ended {
    let asked = Command::new("kill").arg("-TERM").arg(process.id().to_string()).status();
    assert!(asked.is_ok_and(|status| status.success()), "the process ended by itself");
    process.end()
}

/// The status line and body of a plain HTTP response.
fn ask(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

fn free_address() -> String {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|it| it.local_addr()).unwrap().to_string()
}

#[test]
fn etcd_serves_health_until_sigterm() {
    let address = free_address();
    let flags = format!(
        "--listen-peer-urls=http://127.0.0.1:0 --data-dir=nowhere --advertise-client-urls=http://{address} \
         --listen-client-urls=http://{address} --unsafe-no-fsync=true --log-level error"
    );
    let mut etcd = Process::start(&mut called("etcd", &flags), "");
    etcd.line_with("serving /health");
    assert_eq!(
        ask(&address, "/health"),
        ("HTTP/1.1 200 OK".to_owned(), r#"{"health":"true","reason":""}"#.to_owned())
    );
    assert_eq!(ask(&address, "/v3/kv/range").0, "HTTP/1.1 404 Not Found");
    let ended = terminate(&mut etcd);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(0), ""));
    let warned = "warning: kubewright's etcd ignores --log-level, --unsafe-no-fsync\n";
    assert_eq!(
        ended.stderr,
        format!("{warned}note: serving /health on http://{address}; nothing is stored\n")
    );
    assert!(!Path::new("nowhere").exists());
}

/// A directory as envtest prepares it.
struct Folder {
    dir: tempfile::TempDir,
    servers: Authority,
    clients: Authority,
}

impl Folder {
    fn new() -> Self {
        let (servers, clients) = (Authority::new().unwrap(), Authority::new().unwrap());
        let dir = tempfile::tempdir().unwrap();
        let serving = servers.server(&[Ipv4Addr::LOCALHOST.into()]).unwrap();
        let signer = servers.client("sa-signer", &[]).unwrap();
        for (name, text) in [
            ("apiserver.crt", &serving.cert_pem),
            ("apiserver.key", &serving.key_pem),
            ("client-cert-auth-ca.crt", &clients.pem().to_owned()),
            ("sa-signer.crt", &signer.cert_pem),
            ("sa-signer.key", &signer.key_pem),
        ] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        Self { dir, servers, clients }
    }

    /// The flags of Go's envtest.
    fn flags(&self) -> String {
        let dir = self.dir.path().display();
        format!(
            "--advertise-address=127.0.0.1 --allow-privileged=true --authorization-mode=RBAC \
             --bind-address=127.0.0.1 --cert-dir={dir} --client-ca-file={dir}/client-cert-auth-ca.crt \
             --disable-admission-plugins=ServiceAccount --etcd-servers=http://127.0.0.1:2379 --secure-port=0 \
             --service-account-issuer=https://127.0.0.1:6443/ --service-account-key-file={dir}/sa-signer.crt \
             --service-account-signing-key-file={dir}/sa-signer.key --service-cluster-ip-range=10.0.0.0/24"
        )
    }

    async fn client(&self, url: &str, identity: Option<&Identity>) -> kube::Client {
        let admin = self.clients.client("nobody", &[]).unwrap();
        let yaml =
            kubewright_apiserver::serve::kubeconfig(url, self.servers.pem(), identity.unwrap_or(&admin));
        let mut kubeconfig = kube::config::Kubeconfig::from_yaml(&yaml).unwrap();
        if identity.is_none() {
            for user in kubeconfig.auth_infos.iter_mut().filter_map(|it| it.auth_info.as_mut()) {
                (user.client_certificate_data, user.client_key_data) = (None, None);
            }
        }
        let options = kube::config::KubeConfigOptions::default();
        kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap().try_into().unwrap()
    }
}

async fn get(client: &kube::Client, path: &str) -> Result<String, u16> {
    match client.request_text(http::Request::get(path).body(Vec::new()).unwrap()).await {
        Ok(text) => Ok(text),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{path}: {error}"),
    }
}

#[tokio::test]
async fn kube_apiserver_serves_with_the_flags_and_files_of_envtest() {
    let folder = Folder::new();
    let mut server = Process::start(&mut called("kube-apiserver", &folder.flags()), "");
    let ready = server.line_with("serving on https://");
    let url = ready.split_whitespace().last().unwrap().to_owned();

    let anonymous = folder.client(&url, None).await;
    assert_eq!(get(&anonymous, "/healthz").await.as_deref(), Ok("ok"));
    let default = "/api/v1/namespaces/default";
    assert_eq!(get(&anonymous, default).await, Err(403));
    let masters = folder.clients.client("admin", &["system:masters"]).unwrap();
    assert!(get(&folder.client(&url, Some(&masters)).await, default).await.is_ok());
    let jane = folder.clients.client("jane", &["readers"]).unwrap();
    assert_eq!(get(&folder.client(&url, Some(&jane)).await, default).await, Err(403));

    let ended = terminate(&mut server);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(0), ""));
    let note = "note: objects are kept in memory; ignoring --etcd-servers=http://127.0.0.1:2379\n";
    assert_eq!(ended.stderr, format!("{note}note: serving on {url}\n"));
}

#[test]
fn ignored_flags_are_reported_in_one_line() {
    let folder = Folder::new();
    let flags = format!("{} --v=4 --audit-policy-file - --allow-privileged=false", folder.flags());
    let mut server = Process::start(&mut called("kube-apiserver", &flags), "");
    server.line_with("serving on https://");
    let ended = terminate(&mut server);
    let warned: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
    let one = "warning: kubewright's kube-apiserver ignores --allow-privileged, \
               --audit-policy-file, --v";
    assert_eq!((ended.status, warned), (Some(0), vec![one]));
}

#[tokio::test]
async fn audit_events_are_appended_to_a_file() {
    let folder = Folder::new();
    let log = folder.dir.path().join("audit.log");
    let flags = format!("{} --audit-log-path={}", folder.flags(), log.display());
    for run in 1..=2 {
        let mut server = Process::start(&mut called("kube-apiserver", &flags), "");
        let ready = server.line_with("serving on https://");
        let masters = folder.clients.client("admin", &["system:masters"]).unwrap();
        let client = folder.client(ready.split_whitespace().last().unwrap(), Some(&masters)).await;
        assert_eq!(get(&client, "/api/v1/namespaces/default/configmaps/missing").await, Err(404));
        assert_eq!(terminate(&mut server).status, Some(0));
        let text = std::fs::read_to_string(&log).unwrap();
        let events: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events.len(), run, "{text}");
        let event = events.last().unwrap();
        assert_eq!((&event["kind"], &event["level"]), (&"Event".into(), &"Metadata".into()));
        assert_eq!((&event["verb"], &event["user"]["username"]), (&"get".into(), &"admin".into()));
        assert_eq!(event["sourceIPs"], serde_json::json!(["127.0.0.1"]));
        assert_eq!(event["objectRef"]["name"], "missing");
        assert_eq!(event["responseStatus"]["code"], 404);
    }
    let flags =
        format!("{} --audit-log-path={}/missing/audit.log", folder.flags(), folder.dir.path().display());
    let ended = Process::start(&mut called("kube-apiserver", &flags), "").end();
    assert_eq!(ended.status, Some(1));
    assert!(ended.stderr.contains("(--audit-log-path)"), "{}", ended.stderr);
}

#[tokio::test]
async fn flags_of_go_test_suites_are_accepted() {
    let folder = Folder::new();
    let flags = format!(
        "{} --feature-gates=A=true --feature-gates B=false --runtime-config=api/all=true \
         --enable-admission-plugins=AlwaysPullImages --enable-admission-plugins=OwnerReferencesPermissionEnforcement,PodSecurity \
         --disable-admission-plugins=DefaultStorageClass --etcd-compaction-interval=30s",
        folder.flags()
    );
    let mut server = Process::start(&mut called("kube-apiserver", &flags), "");
    let ready = server.line_with("serving on https://");
    let url = ready.split_whitespace().last().unwrap().to_owned();
    let masters = folder.clients.client("admin", &["system:masters"]).unwrap();
    let admin = folder.client(&url, Some(&masters)).await;
    // ServiceAccount stays disabled, although another plugin is disabled later.
    let pod = r#"{"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}"#;
    let request =
        http::Request::post("/api/v1/namespaces/default/pods").header("content-type", "application/json");
    let created = admin.request_text(request.body(pod.as_bytes().to_vec()).unwrap()).await;
    assert!(created.is_ok(), "{created:?}");
    let ended = terminate(&mut server);
    let warned: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
    let gates =
        "warning: feature gates keep the Kubernetes v1.36 defaults: --feature-gates=A,B has no effect";
    let versions =
        "warning: only the default API versions are served: --runtime-config=api/all=true has no effect";
    assert_eq!((ended.status, warned), (Some(0), vec![gates, versions]));
}

#[test]
fn a_missing_certificate_is_created_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let flags = format!("--cert-dir={}/made --secure-port=0", dir.path().display());
    for _ in 0..2 {
        let mut server = Process::start(&mut called("kube-apiserver", &flags), "");
        server.line_with("serving on https://");
        assert_eq!(terminate(&mut server).status, Some(0));
    }
    assert!(dir.path().join("made/apiserver.key").exists());
}

#[test]
fn invalid_flags_are_reported() {
    let folder = Folder::new();
    for (flags, why) in [
        ("--client-ca-file=no/such.crt", "error: cannot read no/such.crt (--client-ca-file)\n"),
        (
            "--service-account-key-file=no/such.crt",
            "error: cannot read no/such.crt (--service-account-key-file)\n",
        ),
        ("--secure-port=high", "error: invalid --secure-port=\"high\"\n"),
        ("--bind-address=0.0.0.0 --secure-port=0", "error: failed to start the API server\n"),
        ("--feature-gates=A", "error: invalid --feature-gates\n"),
        ("--etcd-compaction-interval=soon", "error: invalid --etcd-compaction-interval=\"soon\"\n"),
        ("--authorization-mode=Node", "error: --authorization-mode is not supported\n"),
        ("start", "error: \"kube-apiserver\" does not take any arguments, got \"start\"\n"),
    ] {
        let ended = run(called("kube-apiserver", flags).current_dir(&folder.dir));
        assert!(ended.status == 1 && ended.stdout.is_empty() && ended.stderr.starts_with(why), "{ended}");
    }
}

#[test]
fn help_and_version_succeed() {
    for (name, version) in [("kube-apiserver", "Kubernetes v1.36.4\n"), ("etcd", "etcd Version: kubewright ")]
    {
        let help = run(&mut called(name, "--help")).result();
        assert!(help.lines().any(|line| line.trim_start().starts_with("--")), "{help}");
        assert!(!help.contains("insecure-port"));
        assert!(run(&mut called(name, "--version")).result().starts_with(version));
    }
}
