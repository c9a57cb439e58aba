//! Requests in kubectl's log: some failures are not reported to the user.

use super::cluster::{Answer, Cluster};
use super::objects::{NODE, PODS, SETTINGS_AND_WEB};

#[test]
fn no_request_fails_silently() {
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
fn only_expected_requests_are_not_found() {
    let cluster = Cluster::start();
    let apply = "apply -f - -v=8";
    insta::assert_snapshot!(failures(&cluster, cluster.feed(apply, SETTINGS_AND_WEB)), @"
    404 /api/v1/namespaces/default/configmaps/settings
    404 /apis/apps/v1/namespaces/default/deployments/web
    ");
    insta::assert_snapshot!(failures(&cluster, cluster.feed(apply, &SETTINGS_AND_WEB.replace("1.27", "1.28"))), @"");
    insta::assert_snapshot!(failures(&cluster, cluster.kubectl("delete deployment web -v=8")), @"404 /apis/apps/v1/namespaces/default/deployments/web");
}

/// The status of every response in a log, in the formats of kubectl 1.32 and later.
fn statuses(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter_map(|line| {
        let (_, status) =
            line.split_once("Response Status: ").or_else(|| line.split_once("\"Response\" status=\""))?;
        status.get(..3)
    })
}

/// The failed requests in order: status and path.
#[track_caller]
fn failures(cluster: &Cluster, answer: Answer) -> String {
    let log = answer.log();
    let mut failed = Vec::new();
    let mut path = "";
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once(&cluster.url) {
            path = rest.split(|end: char| end.is_whitespace() || end == '"').next().unwrap_or_default();
        }
        let failure = statuses(line).find(|status| !status.starts_with('2'));
        failed.extend(failure.map(|status| format!("{status} {path}")));
    }
    failed.join("\n")
}
