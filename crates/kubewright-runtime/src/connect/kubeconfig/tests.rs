//! Tests of kubeconfigs.

use kube::config::ExecInteractiveMode;
use serde_json::json;
use tempfile::TempDir;

use super::*;

const WHOLE: &str = r"
apiVersion: v1
kind: Config
preferences: {}
current-context: one
clusters:
- name: c
  cluster:
    server: https://one.example:6443
    certificate-authority: ca.pem
    insecure-skip-tls-verify: false
    tls-server-name: kubernetes
    proxy-url: http://proxy.example:3128
    disable-compression: true
    extensions:
    - name: client.authentication.k8s.io/exec
      extension: {audience: it, level: 3}
contexts:
- name: one
  context: {cluster: c, user: u, namespace: mine}
- name: two
  context: {cluster: c}
- name: three
  context: {cluster: gone, user: u}
users:
- name: u
  user:
    username: me
    password: 0123
    token: t
    tokenFile: tokens/token
    client-certificate: /etc/me.pem
    client-key: me.key
    as: somebody
    as-uid: '7'
    as-groups: [a, b]
    as-user-extra: {scopes: [view]}
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/login
      args: [--quiet, 1]
      env:
      - name: A
        value: b
      installHint: install it
      interactiveMode: Never
      provideClusterInfo: true
";

fn pem() -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    rcgen::CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap().pem()
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// The configuration of the file `config` in a directory.
fn config_in(folder: &TempDir) -> Result<Config, KubeconfigError> {
    Kubeconfig::read(&folder.path().join("config"))?.config(None, &Environment::default())
}

/// The error of a file, without its path.
fn wrong(text: &str) -> String {
    let folder = folder(&[("config", text)]);
    let error = config_in(&folder).unwrap_err().to_string();
    error.strip_prefix(&*folder.path().join("config").to_string_lossy()).unwrap_or(&error).to_owned()
}

fn cluster(name: &str, server: &str) -> String {
    format!("clusters: [{{name: {name}, cluster: {{server: '{server}'}}}}]\n")
}

#[test]
fn every_field_is_read() {
    let pem = pem();
    let folder = folder(&[("config", WHOLE), ("ca.pem", &pem)]);
    let at = |name: &str| Some(folder.path().join(name).to_str().unwrap().to_owned());
    let config = config_in(&folder).unwrap();
    assert_eq!(config.cluster_url, "https://one.example:6443");
    assert_eq!(config.default_namespace, "mine");
    assert_eq!(config.tls_server_name.as_deref(), Some("kubernetes"));
    assert_eq!(config.proxy_url.unwrap(), "http://proxy.example:3128");
    assert_eq!(config.root_cert.unwrap().len(), 1);
    assert!(config.disable_compression && !config.accept_invalid_certs);
    let user = config.auth_info;
    let secret = |secret: Option<secrecy::SecretString>| {
        secret.map(|secret| secrecy::ExposeSecret::expose_secret(&secret).to_owned()).unwrap()
    };
    assert_eq!((user.username.as_deref(), &*secret(user.password)), (Some("me"), "0123"));
    assert_eq!((secret(user.token), user.token_file), ("t".to_owned(), at("tokens/token")));
    assert_eq!((user.client_certificate.as_deref(), user.client_key), (Some("/etc/me.pem"), at("me.key")));
    assert_eq!((user.impersonate.as_deref(), user.impersonate_uid.as_deref()), (Some("somebody"), Some("7")));
    assert_eq!(user.impersonate_groups.unwrap(), ["a", "b"]);
    assert_eq!(user.impersonate_user_extra.unwrap()["scopes"], ["view"]);
    let exec = user.exec.unwrap();
    assert_eq!(exec.api_version.as_deref(), Some("client.authentication.k8s.io/v1"));
    assert_eq!(
        (exec.command, exec.args.unwrap()),
        (at("./bin/login"), vec!["--quiet".to_owned(), "1".to_owned()])
    );
    assert_eq!((&*exec.env.unwrap()[0]["name"], exec.install_hint.as_deref()), ("A", Some("install it")));
    assert_eq!(exec.interactive_mode, Some(ExecInteractiveMode::Never));
    let cluster = exec.cluster.unwrap();
    assert_eq!(cluster.config, Some(json!({"audience": "it", "level": 3})));
    assert_eq!(cluster.certificate_authority_data, Some(pem.into_bytes()));
    assert_eq!(cluster.insecure_skip_tls_verify, Some(false));
}

#[test]
fn a_missing_user_means_no_credentials_and_a_missing_cluster_is_an_error() {
    let folder = folder(&[("config", WHOLE), ("ca.pem", &pem())]);
    let kubeconfig = Kubeconfig::read(&folder.path().join("config")).unwrap();
    let environment = Environment::default();
    let config = kubeconfig.config(Some("two"), &environment).unwrap();
    assert_eq!(config.default_namespace, "default");
    assert!(config.auth_info.token.is_none() && config.auth_info.exec.is_none());
    let error = kubeconfig.config(Some("three"), &environment).unwrap_err();
    assert_eq!(error.to_string(), r#"context "three" refers to cluster "gone", which does not exist"#);
    let error = kubeconfig.config(Some("four"), &environment).unwrap_err();
    assert!(matches!(error, KubeconfigError::Context(context) if context == "four"));
}

#[test]
fn errors_have_their_line() {
    let beginning = "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n";
    for (text, expected) in [
        ("not: [yaml", ":1: "),
        ("just text\n", ":1: this is not a kubeconfig"),
        ("kind: Pod\n", ":1: kind: expected `kind: Config`"),
        ("a: 1\ncontexts: {}\n", ":2: contexts: expected a list"),
        ("contexts:\n- context: {}\n", ":2: entry of contexts has no name"),
        ("", "no current context"),
        (&format!("{beginning}clusters: [{{name: c, cluster: {{}}}}]\n"), ":3: this cluster has no server"),
        (&format!("{beginning}{}", cluster("c", "no url")), ":3: server: \"no url\" is not a URL"),
        (
            &format!(
                "{beginning}clusters:\n- name: c\n  cluster:\n    server: https://a\n    certificate-authority: gone.pem\n"
            ),
            ":7: certificate-authority: ",
        ),
        (
            &format!("{beginning}{}users:\n- name: u\n  user:\n    token: [a]\n", cluster("c", "https://a")),
            ":7: token: expected text",
        ),
        (
            &format!(
                "{beginning}{}users:\n- name: u\n  user:\n    exec:\n      interactiveMode: Sometimes\n",
                cluster("c", "https://a")
            ),
            ":8: interactiveMode: expected Never, IfAvailable or Always",
        ),
    ] {
        let error = wrong(text);
        assert!(error.starts_with(expected), "{text}\n{error}");
    }
}

#[test]
fn of_several_files_the_first_value_wins() {
    let first = format!("current-context: x\n{}", cluster("c", "https://first"));
    let second = format!(
        "current-context: y\n{}contexts: [{{name: x, context: {{cluster: c}}}}]\n",
        cluster("c", "https://second")
    );
    let folder = folder(&[("first", &first), ("second", &second)]);
    let files = ["first", "gone", "", "second"].map(|name| match name {
        "" => PathBuf::new(),
        name => folder.path().join(name),
    });
    let environment =
        Environment { kubeconfig: Some(std::env::join_paths(files).unwrap()), ..Environment::default() };
    let config = Kubeconfig::find(&environment).unwrap().config(None, &environment).unwrap();
    assert_eq!(config.cluster_url, "https://first");

    let environment =
        Environment { kubeconfig: Some(folder.path().join("gone").into()), ..Environment::default() };
    let error = Kubeconfig::find(&environment).err().unwrap();
    assert!(matches!(error, KubeconfigError::Read { path, .. } if path == folder.path().join("gone")));
}

#[test]
fn without_kubeconfig_the_home_directory_is_used() {
    let home = tempfile::tempdir().unwrap();
    let mut environment = Environment { kubeconfig: Some(OsString::new()), ..Environment::default() };
    assert!(matches!(Kubeconfig::find(&environment), Err(KubeconfigError::Home)));
    environment.home = Some(home.path().to_owned());
    assert!(matches!(Kubeconfig::find(&environment), Err(KubeconfigError::Read { .. })));
    std::fs::create_dir(home.path().join(".kube")).unwrap();
    let text = format!(
        "current-context: x\ncontexts: [{{name: x, context: {{cluster: c}}}}]\n{}",
        cluster("c", "https://a")
    );
    // UTF-16 with a byte order mark, as Windows editors write it.
    let mut bytes = vec![0xff, 0xfe];
    bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    std::fs::write(home.path().join(".kube/config"), bytes).unwrap();
    let config = Kubeconfig::find(&environment).unwrap().config(None, &environment).unwrap();
    assert_eq!(config.cluster_url, "https://a");
}
