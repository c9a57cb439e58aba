//! Tests of resolved flags.

use super::*;
use crate::Operator;

fn settle(arguments: &[&str], watch_namespace: Option<&str>) -> Settings {
    let operator = Operator::new("guestbook", "1.2.3");
    let flags = operator.parse([&["guestbook"], arguments].concat()).expect("the flags are valid");
    let environment =
        Environment { watch_namespace: watch_namespace.map(str::to_owned), ..Environment::default() };
    flags.settle("guestbook", "guestbook.example.com", environment).expect("the flags are valid")
}

#[test]
fn the_command_line_is_consistent() {
    command::<crate::operator::NoFlags>("guestbook", "1.2.3", "").debug_assert();
}

#[test]
fn the_examples_of_the_help_parse() {
    let operator = Operator::new("guestbook", "1.2.3");
    let help = operator.help();
    let calls: Vec<&str> = help.lines().filter(|line| line.starts_with("  guestbook ")).collect();
    assert_eq!(calls.len(), 3);
    for call in calls {
        assert!(operator.parse(call.split_whitespace()).is_ok(), "{call}");
    }
}

#[test]
fn the_defaults_are_those_of_kubebuilder() {
    let Settings { logs, source, manager } = settle(&[], None);
    assert_eq!(manager.name, "guestbook");
    assert_eq!(manager.health_probe_bind_address.to_string(), ":8081");
    assert!(manager.metrics_bind_address.is_off());
    assert!(manager.pprof_bind_address.is_off());
    assert!(manager.debug_page_bind_address.is_off());
    assert!(manager.metrics_secure);
    assert!(manager.metrics_cert_path.is_none());
    assert_eq!((&*manager.metrics_cert_name, &*manager.metrics_cert_key), ("tls.crt", "tls.key"));
    assert!(manager.leader_election.is_none());
    assert_eq!(manager.graceful_shutdown_timeout, Some(Duration::from_secs(30)));
    assert!(manager.cache.namespaces.is_empty(), "all namespaces");
    assert_eq!(logs, logs::Options::default());
    assert_eq!(source, connect::Source::default());
}

#[test]
fn every_flag_sets_its_option() {
    let arguments = "--kubeconfig k --context c --namespace a,b --graceful-shutdown-timeout -1s \
                     --health-probe-bind-address=127.0.0.1:0 --metrics-bind-address=:8443 --metrics-secure=false --pprof-bind-address=127.0.0.1:6060 --debug-page-bind-address=127.0.0.1:8444 \
                     --metrics-cert-path certs --metrics-cert-name cert.pem --metrics-cert-key key.pem --log-level info,kube=warn --log-format text";
    let Settings { logs, source, manager } = settle(&arguments.split_whitespace().collect::<Vec<_>>(), None);
    assert_eq!(source, connect::Source { kubeconfig: Some("k".into()), context: Some("c".into()) });
    assert_eq!(manager.cache.namespaces, ["a", "b"]);
    assert_eq!(manager.graceful_shutdown_timeout, None);
    assert_eq!(manager.health_probe_bind_address.to_string(), "127.0.0.1:0");
    assert_eq!(manager.metrics_bind_address.to_string(), ":8443");
    assert_eq!(manager.pprof_bind_address.to_string(), "127.0.0.1:6060");
    assert_eq!(manager.debug_page_bind_address.to_string(), "127.0.0.1:8444");
    assert!(!manager.metrics_secure);
    assert_eq!(manager.metrics_cert_path, Some("certs".into()));
    assert_eq!((&*manager.metrics_cert_name, &*manager.metrics_cert_key), ("cert.pem", "key.pem"));
    assert_eq!(logs.format, logs::Format::Text);
    assert_eq!(logs.level.as_deref(), Some("info,kube=warn"));
}

#[test]
fn leader_election_flags_apply_only_with_leader_elect() {
    let lease = ["--leader-election-id=l", "--leader-election-namespace=n"];
    assert!(settle(&lease, None).manager.leader_election.is_none());
    assert!(settle(&["--leader-elect=false"], None).manager.leader_election.is_none());
    let times = [
        "--leader-elect",
        "--leader-election-lease-duration=1m",
        "--leader-election-renew-deadline=40s",
        "--leader-election-retry-period=5s",
    ];
    let election = settle(&[&lease[..], &times].concat(), None).manager.leader_election.unwrap();
    let wanted = LeaderElectionOptions {
        namespace: Some("n".to_owned()),
        lease_duration: Duration::from_mins(1),
        renew_deadline: Duration::from_secs(40),
        retry_period: Duration::from_secs(5),
        ..LeaderElectionOptions::new("l")
    };
    assert_eq!(election, wanted);
    let election = settle(&["--leader-elect"], None).manager.leader_election.unwrap();
    assert_eq!(election, LeaderElectionOptions::new("guestbook.example.com"));
}

#[test]
fn a_flag_overrides_the_environment() {
    let namespaces = |arguments: &[&str], watch| settle(arguments, watch).manager.cache.namespaces;
    assert_eq!(namespaces(&[], Some("a, b")), ["a", "b"]);
    assert_eq!(namespaces(&["--namespace", "c"], Some("a,b")), ["c"]);
    assert!(namespaces(&["--namespace="], Some("a,b")).is_empty(), "all namespaces");
    assert!(namespaces(&[], Some("")).is_empty(), "all namespaces");
    let flags = Operator::new("guestbook", "1.2.3").parse(["guestbook"]).unwrap();
    let environment = Environment { watch_namespace: Some("A".into()), ..Environment::default() };
    let error = flags.settle("guestbook", "guestbook", environment).err().expect("the namespace is invalid");
    assert_eq!(error.to_string(), "invalid WATCH_NAMESPACE");
}

#[test]
fn zap_flags_are_equivalent_to_ours() {
    let logs = |arguments: &[&str]| {
        let logs = settle(arguments, None).logs;
        (logs.format, logs.level)
    };
    let level = |level: &str| Some(level.to_owned());
    assert_eq!(logs(&["--zap-log-level=debug"]), (logs::Format::Auto, level("debug")));
    assert_eq!(logs(&["--zap-encoder=console"]), (logs::Format::Text, None));
    assert_eq!(logs(&["--zap-encoder=json", "--zap-devel"]), (logs::Format::Json, level("debug")));
    assert_eq!(logs(&["--zap-devel=true", "--zap-log-level=error"]), (logs::Format::Text, level("error")));
    assert_eq!(logs(&["--zap-devel=false"]), (logs::Format::Auto, None));
}

#[test]
fn webhooks_have_kubebuilders_flags_and_the_service_from_the_environment() {
    let webhooks = |arguments: &[&str]| settle(arguments, None).manager.webhooks;
    let usual = webhooks(&[]);
    assert_eq!(usual.bind_address.to_string(), ":9443");
    assert_eq!(usual.certificates, CertificateMode::SelfSigned);
    assert_eq!((usual.service_name.as_str(), usual.service_namespace), ("webhook-service", None));

    let files =
        webhooks(&["--webhook-cert-path", "/certs", "--webhook-cert-name", "a.crt", "--webhook-port=1"]);
    assert_eq!(files.bind_address.to_string(), ":1");
    let (certificate, key) = ("/certs/a.crt".into(), "/certs/tls.key".into());
    assert_eq!(files.certificates, CertificateMode::Files { certificate, key });
    assert_eq!(webhooks(&["--webhook-cert-mode=none"]).certificates, CertificateMode::None);

    assert_eq!((usual.extra_names.len(), usual.cluster_domain.as_str()), (0, "cluster.local"));
    let named = webhooks(&[
        "--webhook-cert-extra-name=hooks.example.com",
        "--webhook-cert-extra-name=*.example.org",
        "--webhook-cluster-domain=corp.local",
    ]);
    assert_eq!(named.extra_names, ["hooks.example.com", "*.example.org"]);
    assert_eq!(named.cluster_domain, "corp.local");
    for wrong in ["", "-a.b", "a..b", "a b", "https://a.b"] {
        let flag = format!("--webhook-cert-extra-name={wrong}");
        let error = crate::Operator::new("shop", "1").parse(["shop", &flag]).unwrap_err();
        assert!(error.to_string().contains("DNS name"), "{error}");
    }

    let environment = Environment {
        webhook_service_name: Some("shop-webhook-service".into()),
        pod_namespace: Some("shop-system".into()),
        ..Environment::default()
    };
    let flags = crate::Operator::new("shop", "1").parse(["shop"]).unwrap();
    let shop = flags.settle("shop", "shop", environment).unwrap().manager.webhooks;
    assert_eq!(shop.service_name, "shop-webhook-service");
    assert_eq!(shop.service_namespace.as_deref(), Some("shop-system"));
    let wrong = crate::Operator::new("shop", "1").parse(["shop", "--webhook-cert-mode=files"]);
    assert!(wrong.unwrap_err().to_string().contains("--webhook-cert-path"));
}
