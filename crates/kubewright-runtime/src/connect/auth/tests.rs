//! Credentials with real files, and shell scripts as plugins.

use kube::config::{AuthProviderConfig, ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{SystemClock, TokioClock};

const V1: &str = "client.authentication.k8s.io/v1";

fn of(user: &AuthInfo) -> Result<Credentials, AuthError> {
    Credentials::of(user, &Arc::default(), Arc::new(SystemClock))
}

/// Sends a request and returns its credentials. `status` is the status of the response.
async fn sent(credentials: &Credentials, status: u16) -> Result<Option<String>, BoxError> {
    let echo = tower::service_fn(move |request: Request<Body>| {
        let header = request.headers().get(AUTHORIZATION).map(|header| header.to_str().unwrap().to_owned());
        let answer = Response::builder().status(status).body(header).unwrap();
        std::future::ready(Ok::<_, BoxError>(answer))
    });
    let answer = Authorize::new(echo, credentials.clone()).oneshot(Request::new(Body::empty())).await?;
    Ok(answer.into_body())
}

async fn header_of(credentials: &Credentials) -> String {
    sent(credentials, 200).await.unwrap().unwrap_or_default()
}

#[tokio::test]
async fn a_user_has_a_password_a_token_or_nothing() {
    let mut user = AuthInfo::default();
    assert_eq!(header_of(&of(&user).unwrap()).await, "");
    user.token = Some("a-token\n".to_owned().into());
    assert_eq!(header_of(&of(&user).unwrap()).await, "Bearer a-token");
    user.username = Some("me".to_owned());
    user.password = Some("p:ss".to_owned().into());
    assert_eq!(header_of(&of(&user).unwrap()).await, "Basic bWU6cDpzcw==");
    let user = AuthInfo { token: Some("two\nlines".to_owned().into()), ..AuthInfo::default() };
    let error = of(&user).err().unwrap().to_string();
    assert!(error.contains("one line") && !error.contains("two"), "{error}");
}

#[tokio::test]
async fn an_auth_provider_is_refused_with_what_to_use_instead() {
    let provider = AuthProviderConfig { name: "gcp".to_owned(), ..AuthProviderConfig::default() };
    let error = of(&AuthInfo { auth_provider: Some(provider), ..AuthInfo::default() }).err().unwrap();
    let error = error.to_string();
    assert!(error.contains("\"gcp\"") && error.contains("--exec-command"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_token_file_is_read_again_when_it_changes_and_after_a_401() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let user = AuthInfo { token_file: Some(path.to_str().unwrap().to_owned()), ..AuthInfo::default() };
    assert!(matches!(of(&user), Err(AuthError::TokenFile { .. })));
    std::fs::write(&path, "\n").unwrap();
    assert!(matches!(of(&user), Err(AuthError::NoToken(_))));
    std::fs::write(&path, "one\n").unwrap();
    let credentials = of(&user).unwrap();
    assert_eq!(header_of(&credentials).await, "Bearer one");
    std::fs::write(&path, "two").unwrap();
    assert_eq!(header_of(&credentials).await, "Bearer one", "the file is not read for every request");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(header_of(&credentials).await, "Bearer two");
    std::fs::write(&path, "three").unwrap();
    assert_eq!(sent(&credentials, 401).await.unwrap().as_deref(), Some("Bearer two"));
    assert_eq!(header_of(&credentials).await, "Bearer three");
    std::fs::remove_file(&path).unwrap();
    tokio::time::advance(Duration::from_mins(1)).await;
    assert_eq!(header_of(&credentials).await, "Bearer three");
}

#[tokio::test(start_paused = true)]
async fn a_401_is_retried_once_with_a_token_that_was_replaced_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "one").unwrap();
    let user = AuthInfo { token_file: Some(path.to_str().unwrap().to_owned()), ..AuthInfo::default() };
    let credentials = of(&user).unwrap();
    let send = async |accepted: &'static str| {
        let tried = Arc::new(Mutex::new(Vec::new()));
        let tries = tried.clone();
        let server = tower::service_fn(move |request: Request<Body>| {
            let header = request.headers().get(AUTHORIZATION).unwrap().to_str().unwrap().to_owned();
            let status = if header == accepted { 200 } else { 401 };
            tries.lock().unwrap().push(header);
            std::future::ready(Ok::<_, BoxError>(Response::builder().status(status).body(()).unwrap()))
        });
        let retries = crate::connect::retry::Retries::new(None, None);
        let service = tower::ServiceBuilder::new()
            .layer(tower::retry::RetryLayer::new(retries))
            .service(Authorize::new(server, credentials.clone()));
        let mut request = Request::new(Body::empty());
        *request.method_mut() = http::Method::POST;
        let status = service.oneshot(request).await.unwrap().status();
        let tried = tried.lock().unwrap().clone();
        (status.as_u16(), tried)
    };
    let tokens = |tokens: &[&str]| tokens.iter().map(|it| format!("Bearer {it}")).collect::<Vec<_>>();
    assert_eq!(send("Bearer two").await, (401, tokens(&["one"])), "the file still has the same token");
    std::fs::write(&path, "two").unwrap();
    assert_eq!(send("Bearer two").await, (200, tokens(&["one", "two"])));
    std::fs::write(&path, "three").unwrap();
    assert_eq!(send("Bearer four").await, (401, tokens(&["two", "three"])), "there is only one retry");
}

/// A client certificate and its key, as PEM.
fn pair() -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

#[tokio::test(start_paused = true)]
async fn client_certificate_files_are_read_again_when_they_change_and_after_a_401() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
    let (certificate, key) = pair();
    write("tls.crt", &certificate);
    write("tls.key", &key);
    let user = AuthInfo {
        client_certificate: Some(path("tls.crt")),
        client_key: Some(path("tls.key")),
        ..AuthInfo::default()
    };
    let identity = Identity::of(&user).unwrap();
    let generation = || {
        identity.refresh();
        identity.generation()
    };
    let first = generation();
    let (certificate, key) = pair();
    write("tls.crt", &certificate);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(generation(), first, "certificate and key do not match");
    write("tls.key", &key);
    assert_eq!(generation(), first, "the files are not read for every request");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(generation(), first + 1);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(generation(), first + 1, "the files did not change");
    let (certificate, key) = pair();
    write("tls.crt", &certificate);
    write("tls.key", &key);
    identity.expire();
    assert_eq!(generation(), first + 2);
    std::fs::remove_file(path("tls.key")).unwrap();
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(generation(), first + 2, "the last pair is kept");
}

/// A directory with a shell script as a plugin. Each run adds a line to `runs` and prints the content of `answer`.
struct Program(TempDir);

impl Program {
    fn new() -> Self {
        let program = Self(tempfile::tempdir().unwrap());
        program.script("cat answer");
        program
    }

    fn script(&self, end: &str) {
        let script = format!(
            "cd {}\necho \"$@\" >> runs\nprintf %s \"$KUBERNETES_EXEC_INFO\" > info\n\
             printf %s \"$FOR_IT\" > variable\n{end}\n",
            self.0.path().display()
        );
        std::fs::write(self.path("plugin"), script).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn prints(&self, status: &serde_json::Value) {
        let answer = json!({ "apiVersion": V1, "kind": "ExecCredential", "status": status });
        std::fs::write(self.path("answer"), answer.to_string()).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn runs(&self) -> usize {
        self.read("runs").lines().count()
    }

    fn config(&self) -> ExecConfig {
        ExecConfig {
            api_version: Some(V1.to_owned()),
            command: Some("sh".to_owned()),
            args: Some(vec![
                self.path("plugin").to_str().unwrap().to_owned(),
                "--for".to_owned(),
                "us".to_owned(),
            ]),
            interactive_mode: Some(ExecInteractiveMode::Never),
            ..ExecConfig::default()
        }
    }

    fn user(&self) -> AuthInfo {
        AuthInfo { exec: Some(self.config()), ..AuthInfo::default() }
    }
}

#[tokio::test]
async fn a_plugin_gets_the_cluster_info_and_returns_a_token() {
    let program = Program::new();
    program.prints(&json!({ "token": "one" }));
    let mut exec = program.config();
    exec.env = Some(vec![
        [("name".to_owned(), "FOR_IT".to_owned()), ("value".to_owned(), "a value".to_owned())].into(),
    ]);
    exec.provide_cluster_info = true;
    exec.cluster = Some(ExecAuthCluster {
        server: Some("https://a.example".to_owned()),
        certificate_authority_data: Some(b"PEM".to_vec()),
        config: Some(json!({ "audience": "it" })),
        insecure_skip_tls_verify: None,
        proxy_url: None,
        tls_server_name: None,
    });
    let credentials = of(&AuthInfo { exec: Some(exec), ..AuthInfo::default() }).unwrap();
    for _ in 0..3 {
        assert_eq!(header_of(&credentials).await, "Bearer one");
    }
    assert_eq!(program.read("runs"), "--for us\n", "a token without expiry is used forever");
    assert_eq!(program.read("variable"), "a value");
    let info: serde_json::Value = serde_json::from_str(&program.read("info")).unwrap();
    let cluster = json!({
        "server": "https://a.example", "certificate-authority-data": "UEVN", "config": {"audience": "it"},
    });
    let spec = json!({ "interactive": false, "cluster": cluster });
    assert_eq!(info, json!({ "apiVersion": V1, "kind": "ExecCredential", "spec": spec }));
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_a_minute_before_it_expires() {
    let program = Program::new();
    let start: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    program.prints(&json!({ "token": "one", "expirationTimestamp": "2026-01-01T00:10:00Z" }));
    let clock = Arc::new(TokioClock::starting_at(start));
    let credentials = Credentials::of(&program.user(), &Arc::default(), clock).unwrap();
    program.prints(&json!({ "token": "two", "expirationTimestamp": "2026-01-01T00:20:00Z" }));
    tokio::time::advance(Duration::from_secs(8 * 60 + 59)).await;
    assert_eq!((header_of(&credentials).await, program.runs()), ("Bearer one".to_owned(), 1));
    tokio::time::advance(Duration::from_secs(1)).await;
    // Concurrent requests wait for one run.
    let both = tokio::join!(header_of(&credentials), header_of(&credentials));
    assert_eq!(both, ("Bearer two".to_owned(), "Bearer two".to_owned()));
    assert_eq!(program.runs(), 2);

    program.script("echo 'no luck' >&2; exit 7");
    tokio::time::advance(Duration::from_secs(10 * 60 + 59)).await;
    assert_eq!(header_of(&credentials).await, "Bearer two", "the token is valid for another second");
    tokio::time::advance(Duration::from_secs(1)).await;
    let error = sent(&credentials, 200).await.unwrap_err().to_string();
    assert!(error.contains("exit status: 7") && error.ends_with("no luck"), "{error}");
}

#[tokio::test]
async fn a_token_that_the_server_refuses_is_not_sent_again() {
    let program = Program::new();
    program.prints(&json!({ "token": "one" }));
    let credentials = of(&program.user()).unwrap();
    program.prints(&json!({ "token": "two" }));
    assert_eq!(sent(&credentials, 401).await.unwrap().as_deref(), Some("Bearer one"));
    assert_eq!(header_of(&credentials).await, "Bearer two");
    assert_eq!(sent(&credentials, 403).await.unwrap().as_deref(), Some("Bearer two"));
    assert_eq!((header_of(&credentials).await, program.runs()), ("Bearer two".to_owned(), 2));
}

#[tokio::test]
async fn a_plugin_may_return_a_certificate_or_print_yaml() {
    let program = Program::new();
    let pair = || {
        let (certificate, key) = pair();
        json!({ "clientCertificateData": certificate, "clientKeyData": key })
    };
    let first = pair();
    program.prints(&first);
    let identity = Arc::new(Identity::default());
    let credentials = Credentials::of(&program.user(), &identity, Arc::new(SystemClock)).unwrap();
    let shown = || rustls::client::ResolvesClientCert::resolve(&*identity, &[], &[]).unwrap();
    let before = (identity.generation(), shown());
    assert_eq!(sent(&credentials, 401).await.unwrap(), None);
    assert_eq!(sent(&credentials, 401).await.unwrap(), None);
    assert_eq!(identity.generation(), before.0, "the certificate is the same");
    program.prints(&pair());
    assert_eq!(sent(&credentials, 200).await.unwrap(), None);
    assert!(identity.generation() > before.0 && shown().cert != before.1.cert);

    std::fs::write(program.path("answer"), "status:\n  token: from-yaml\n").unwrap();
    assert_eq!(header_of(&of(&program.user()).unwrap()).await, "Bearer from-yaml");
}

#[tokio::test]
async fn errors_of_a_plugin_are_reported() {
    let program = Program::new();
    let error = |exec: ExecConfig| {
        of(&AuthInfo { exec: Some(exec), ..AuthInfo::default() }).err().unwrap().to_string()
    };
    let gone = ExecConfig {
        command: Some("kubewright-has-no-such-plugin".to_owned()),
        install_hint: Some("apt install it".to_owned()),
        ..program.config()
    };
    assert_eq!(error(gone), "failed to run the exec plugin kubewright-has-no-such-plugin: apt install it");
    let no_command = ExecConfig { command: None, ..program.config() };
    assert!(error(no_command).contains("without a command"));
    let old = ExecConfig {
        api_version: Some("client.authentication.k8s.io/v1alpha1".to_owned()),
        ..program.config()
    };
    assert!(error(old).contains("use client.authentication.k8s.io/v1"));
    for (printed, said) in [
        ("", "neither JSON nor YAML"),
        ("{}", "no status"),
        (r#"{"status": {}}"#, "neither a token nor a certificate"),
        (r#"{"status": {"clientKeyData": "x"}}"#, "without a certificate"),
        (r#"{"status": {"token": "x", "expirationTimestamp": "soon"}}"#, "expirationTimestamp is invalid"),
        (
            r#"{"apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "x"}}"#,
            "it returned apiVersion",
        ),
    ] {
        std::fs::write(program.path("answer"), printed).unwrap();
        let error = error(program.config());
        assert!(error.contains(said), "{printed}: {error}");
    }
}

#[tokio::test]
async fn a_plugin_that_hangs_is_killed() {
    let program = Program::new();
    program.prints(&json!({ "token": "one" }));
    let plugin = Plugin::start(program.config(), Arc::default(), Arc::new(SystemClock)).unwrap();
    let plugin = Arc::new(plugin.within(Duration::from_millis(200)));
    program.script("exec sleep 600");
    plugin.was_refused(plugin.header().await.unwrap().as_ref());
    let error = plugin.header().await.unwrap_err();
    assert!(matches!(error, AuthError::Plugin(PluginError::Timeout { .. })), "{error}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_child_processes_of_a_plugin_that_hangs_are_killed() {
    let program = Program::new();
    program.prints(&json!({ "token": "one" }));
    // Repeat with a longer timeout if the script did not get that far.
    let mut within = Duration::from_millis(200);
    while !program.path("pid").exists() {
        program.script("cat answer");
        let plugin = Plugin::start(program.config(), Arc::default(), Arc::new(SystemClock)).unwrap();
        let plugin = Arc::new(plugin.within(within));
        program.script("sleep 600 & echo $! > starting; mv starting pid; wait");
        plugin.was_refused(plugin.header().await.unwrap().as_ref());
        let error = plugin.header().await.unwrap_err();
        assert!(matches!(error, AuthError::Plugin(PluginError::Timeout { .. })), "{error}");
        within *= 3;
    }
    let pid = rustix::process::Pid::from_raw(program.read("pid").trim().parse().unwrap()).unwrap();
    // It does not exist, or ends soon: a signal is delivered asynchronously.
    if let Ok(process) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
        let mut ends = [rustix::event::PollFd::new(&process, rustix::event::PollFlags::IN)];
        let limit = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
        let ended = rustix::event::poll(&mut ends, Some(&limit)).unwrap();
        assert_eq!(ended, 1, "the child process of the plugin still runs");
    }
}

#[tokio::test]
async fn dropping_a_request_does_not_start_a_second_plugin_run() {
    let program = Program::new();
    program.prints(&json!({ "token": "one" }));
    let plugin = Arc::new(Plugin::start(program.config(), Arc::default(), Arc::new(SystemClock)).unwrap());
    // The second run waits until the test releases it.
    program.prints(&json!({ "token": "two" }));
    for pipe in ["started", "go"] {
        let made = std::process::Command::new("mkfifo").arg(program.path(pipe)).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo of the coreutils");
    }
    program.script("echo > started; cat go; cat answer");
    plugin.was_refused(plugin.header().await.unwrap().as_ref());
    let dropped = tokio::spawn({
        let plugin = plugin.clone();
        async move { plugin.header().await }
    });
    let started = program.path("started");
    tokio::task::spawn_blocking(|| std::fs::read(started)).await.unwrap().unwrap();
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    // The next request does not start another run, and uses the result of this one.
    let waits = tokio::spawn({
        let plugin = plugin.clone();
        async move { plugin.header().await }
    });
    tokio::task::yield_now().await;
    assert_eq!(program.runs(), 2);
    std::fs::write(program.path("go"), "").unwrap();
    assert_eq!(waits.await.unwrap().unwrap().unwrap(), "Bearer two");
    assert_eq!(program.runs(), 2);
}
