//! Credentials issued by the server: service account tokens and client certificates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use super::cluster::Cluster;
use super::process::{Ended, Process};
use crate::run::{command, kubectl};

/// A server with a data directory. A second one on the same directory has the same state.
struct Server {
    process: Process,
    url: String,
    kubeconfig: PathBuf,
}

impl Server {
    fn start(dir: &Path) -> Self {
        let kubeconfig = dir.join("kubeconfig");
        let mut command = command("apiserver --port 0");
        command.arg("--data-dir").arg(dir.join("data")).arg("--kubeconfig").arg(&kubeconfig);
        let mut process = Process::start(&mut command, "");
        let ready = process.line_with("ready https://");
        let url = ready.split_whitespace().nth(1).expect("the line has the address").to_owned();
        Self { process, url, kubeconfig }
    }

    fn kubectl(&self, arguments: &[&str]) -> Ended {
        let mut command = kubectl();
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments);
        Process::start(&mut command, "").end()
    }

    /// Like [`Server::kubectl`], with a token instead of the admin certificate.
    fn kubectl_with_token(&self, token: &str, arguments: &[&str]) -> Ended {
        let mut command = kubectl();
        command.args(["--kubeconfig", "/dev/null", "--insecure-skip-tls-verify", "--server", &self.url]);
        command.args(["--token", token]).args(arguments);
        Process::start(&mut command, "").end()
    }

    fn stop(mut self) {
        let asked = Command::new("kill").arg("-TERM").arg(self.process.id().to_string()).status();
        assert!(asked.unwrap().success());
        assert_eq!(self.process.end().status, Some(0));
    }
}

#[test]
fn a_token_survives_a_restart_and_is_invalid_without_its_service_account() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    assert_eq!(server.kubectl(&["create", "serviceaccount", "robot"]).status, Some(0));
    let token = server.kubectl(&["create", "token", "robot"]).stdout.trim().to_owned();
    let whoami = ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"];
    let robot = "system:serviceaccount:default:robot";
    assert_eq!(server.kubectl_with_token(&token, &whoami).stdout, robot);
    server.stop();

    let server = Server::start(dir.path());
    assert_eq!(server.kubectl_with_token(&token, &whoami).stdout, robot);
    assert_eq!(server.kubectl(&["delete", "serviceaccount", "robot"]).status, Some(0));
    let refused = server.kubectl_with_token(&token, &whoami);
    assert_eq!(refused.status, Some(1));
    assert!(
        refused.stderr.contains("Unauthorized") || refused.stderr.contains("must be logged in"),
        "{}",
        refused.stderr
    );
    server.stop();
}

#[test]
fn an_approved_certificate_authenticates_its_user_with_all_groups() {
    let cluster = Cluster::start();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "dev");
    params.distinguished_name.push(DnType::CustomDnType(vec![2, 5, 4, 10]), "ops");
    params.distinguished_name.push(DnType::CommonName, "jane");
    let request = STANDARD.encode(params.serialize_request(&key).unwrap().pem().unwrap());
    cluster.create(&format!(
        "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {{name: jane}}\nspec:\n  \
         request: {request}\n  signerName: kubernetes.io/kube-apiserver-client\n  usages: [client auth]\n"
    ));
    assert_eq!(cluster.kubectl("get csr jane -o jsonpath={.status}").result(), "{}");
    let requester = "get csr jane -o jsonpath={.spec.username}";
    assert_eq!(cluster.kubectl(requester).result(), "admin");
    let patch = r#"patch csr jane --type=merge -p '{"spec":{"username":"system:node:a"}}'"#;
    cluster.kubectl(patch).output();
    assert_eq!(cluster.kubectl(requester).result(), "admin", "only the server sets the requester");
    cluster.kubectl("certificate approve jane").result();
    let certificate = cluster.kubectl("get csr jane -o jsonpath={.status.certificate}").result();

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("jane.crt"), STANDARD.decode(certificate).unwrap()).unwrap();
    fs::write(path("jane.key"), key.serialize_pem()).unwrap();
    cluster
        .kubectl(&format!(
            "config set-credentials jane --client-certificate={} --client-key={} --embed-certs",
            path("jane.crt"),
            path("jane.key")
        ))
        .result();
    let whoami = "--user jane auth whoami -o jsonpath={.status.userInfo.username},{.status.userInfo.groups}";
    assert_eq!(cluster.kubectl(whoami).result(), r#"jane,["dev","ops","system:authenticated"]"#);
}
