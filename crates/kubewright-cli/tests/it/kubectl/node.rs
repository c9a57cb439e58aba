//! `kubectl cordon`, `drain` and `taint`: a node and what runs there.

use super::cluster::Cluster;
use super::objects::{NODE, PODS};

#[test]
fn cordon_and_uncordon_switch_scheduling_off_and_on() {
    let cluster = Cluster::with(NODE);
    insta::assert_snapshot!(cluster.session("
        cordon worker
        cordon worker
        get nodes
        get nodes --field-selector spec.unschedulable=true -o name
        uncordon worker
        get nodes
        cordon nope
    "), @"");
}

#[test]
fn taint_adds_and_changes_and_removes() {
    let cluster = Cluster::with(NODE);
    insta::assert_snapshot!(cluster.session("
        taint node worker node.kubernetes.io/not-ready-
        taint node worker dedicated=db:NoSchedule
        taint node worker dedicated=web:NoSchedule
        taint node worker dedicated=web:NoSchedule --overwrite
        get node worker -o jsonpath={.spec.taints}
        taint node worker dedicated-
        get node worker -o jsonpath={.spec.taints}
    "), @"");
}

#[test]
fn drain_evicts_and_waits_until_the_node_has_ended_the_pods() {
    let cluster = Cluster::with(&[NODE, PODS].join("---\n"));
    insta::assert_snapshot!(cluster.kubectl("drain worker"), @"");
    let mut drain = cluster.background("drain worker --force");
    drain.line_with("evicting pod default/c");
    let mut watch = cluster.background("get pod c -w");
    watch.line_with("Terminating");
    // The kubelet's part.
    cluster.kubectl("delete --raw /api/v1/namespaces/default/pods/c?gracePeriodSeconds=0").result();
    insta::assert_snapshot!(drain.end(), @"");
    insta::assert_snapshot!(cluster.kubectl("get pods -o name"), @"");
}

#[test]
fn an_eviction_is_refused_while_a_budget_forbids_it() {
    let cluster = Cluster::with(&[PODS, BUDGET].join("---\n"));
    let evict = "create --raw /api/v1/namespaces/default/pods/a/eviction -f -";
    let eviction = r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"a","namespace":"default"}}"#;
    insta::assert_snapshot!(cluster.feed(evict, eviction), @"");
    let status = r#"{"status":{"observedGeneration":1,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1,"disruptionsAllowed":ALLOWED}}"#;
    let allow = |allowed| {
        let patch = status.replace("ALLOWED", allowed);
        cluster.kubectl(&format!("patch poddisruptionbudget web --subresource=status --type=merge -p {patch}")).result();
    };
    allow("0");
    insta::assert_snapshot!(cluster.feed(evict, eviction), @"");
    allow("1");
    insta::assert_snapshot!(cluster.feed(evict, eviction), @"");
    insta::assert_snapshot!(cluster.session("
        get pods -o name
        get poddisruptionbudgets
    "), @"");
}

const BUDGET: &str = "\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {tier: front}}}
";
