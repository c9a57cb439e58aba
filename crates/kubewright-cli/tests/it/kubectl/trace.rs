//! What kubectl logs of its requests: no request that fails, and none that is made twice, goes unnoticed.

use super::cluster::Cluster;
use super::objects::{NODE, PODS, SETTINGS_AND_WEB};

#[test]
fn no_request_of_kubectl_fails_unseen() {
    let cluster = Cluster::with(&[NODE, PODS, SETTINGS_AND_WEB].join("---\n"));
    for line in [
        "get pods -v=8",
        "get all -A -v=8",
        "get deployment web -o yaml -v=8",
        "describe pod a -v=8",
        "describe deployment web -v=8",
        "describe namespace default -v=8",
        "describe service kubernetes -v=8",
        "events -v=8",
        "api-resources -v=8",
        "version -v=8",
        "label pod a x=y -v=8",
        "scale deployment web --replicas=3 -v=8",
        "set image deployment/web web=nginx:1.28 -v=8",
        "rollout restart deployment web -v=8",
        "expose deployment web --port=80 -v=8",
        "run one --image=nginx -v=8",
        "cordon worker -v=8",
    ] {
        let log = cluster.kubectl(line).log();
        let failed: Vec<&str> = statuses(&log).filter(|status| !status.starts_with('2')).collect();
        assert!(statuses(&log).count() > 0, "`{line}` shows no request\n{log}");
        assert!(failed.is_empty(), "`{line}` got {failed:?}\n{log}");
    }
}

#[test]
fn apply_and_delete_look_for_what_may_not_be_there_and_for_nothing_else() {
    let cluster = Cluster::start();
    let log = cluster.feed("apply --validate=false -f - -v=8", SETTINGS_AND_WEB).log();
    let failed = failures(&log);
    assert!(failed.iter().all(|failed| failed.starts_with("404 ")), "{failed:#?}");
    insta::assert_snapshot!(failed.join("\n").replace(&cluster.url, "https://SERVER"), @"
    404 https://SERVER/api/v1/namespaces/default/configmaps/settings
    404 https://SERVER/apis/apps/v1/namespaces/default/deployments/web
    ");
    let log = cluster.kubectl("delete deployment web -v=8").log();
    insta::assert_snapshot!(failures(&log).join("\n").replace(&cluster.url, "https://SERVER"), @"404 https://SERVER/apis/apps/v1/namespaces/default/deployments/web");
}

/// The status of every answer in a log, in the form of kubectl 1.32 and of later ones.
fn statuses(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter_map(|line| {
        let (_, status) = line.split_once("Response Status: ").or_else(|| line.split_once("\"Response\" status=\""))?;
        status.get(..3)
    })
}

/// What failed: status, and path of the request before it.
fn failures(log: &str) -> Vec<String> {
    let mut failed = Vec::new();
    let mut path = "";
    for line in log.lines() {
        if let Some(start) = line.find("https://").filter(|_| line.contains("round_trippers.go")) {
            path = line[start..].split(|end: char| end.is_whitespace() || end == '"').next().unwrap_or_default();
        }
        if let Some(status) = statuses(line).next().filter(|status| !status.starts_with('2')) {
            failed.push(format!("{status} {path}"));
        }
    }
    failed
}
