//! Who kubectl is, and what it may do.
//!
//! Reviews and token requests go out as protobuf, as all typed clients of client-go send it since 0.32.

use super::cluster::{Answer, Cluster};

#[test]
fn whoami_is_the_administrator_of_the_kubeconfig() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.kubectl("auth whoami -o jsonpath={.status.userInfo.username},{.status.userInfo.groups}"), @r#"admin,["system:masters","system:authenticated"]"#);
}

#[test]
fn can_i_says_yes_to_the_administrator() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        auth can-i create pods
        auth can-i delete nodes
        auth can-i get /healthz
        auth can-i '*' '*' --all-namespaces
    "), @"
    $ kubectl auth can-i create pods
    yes
    $ kubectl auth can-i delete nodes
    yes
    --- stderr
    Warning: resource 'nodes' is not namespace scoped

    $ kubectl auth can-i get /healthz
    yes
    $ kubectl auth can-i '*' '*' --all-namespaces
    yes
    ");
}

#[test]
fn can_i_lists_what_the_administrator_may_do() {
    let cluster = Cluster::start();
    let list = cluster.kubectl("auth can-i --list").result();
    let lines: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(lines.contains(&vec!["*.*", "[]", "[]", "[*]"]), "{list}");
    assert!(lines.contains(&vec!["[*]", "[]", "[*]"]), "{list}");
}

#[test]
fn a_token_of_a_service_account_is_that_account() {
    let cluster = Cluster::with("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot}\n");
    let token = cluster.kubectl("create token robot --duration=1h").result();
    insta::assert_snapshot!(
        as_bearer(&cluster, &token, "auth whoami -o jsonpath={.status.userInfo.username},{.status.userInfo.groups}"),
        @r#"system:serviceaccount:default:robot,["system:serviceaccounts","system:serviceaccounts:default","system:authenticated"]"#
    );
    insta::assert_snapshot!(cluster.kubectl("create token nobody"), @r#"
    --- stderr
    error: failed to create token: serviceaccounts "nobody" not found
    --- exit status 1
    "#);
}

#[test]
fn a_token_that_nobody_issued_is_refused() {
    let cluster = Cluster::start();
    let failure = as_bearer(&cluster, "nonsense", "get namespaces").failure();
    assert!(failure.starts_with("error: You must be logged in to the server"), "{failure}");
}

/// Runs kubectl with a token in place of the administrator's certificate.
fn as_bearer(cluster: &Cluster, token: &str, line: &str) -> Answer {
    let connect = format!("--kubeconfig /dev/null --server {} --insecure-skip-tls-verify", cluster.url);
    cluster.kubectl(&format!("{connect} --token {} {line}", token.trim_end()))
}
