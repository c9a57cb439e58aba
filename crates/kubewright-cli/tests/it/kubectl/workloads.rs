//! kubectl on a whole cluster (`--controllers all`).

use super::cluster::Cluster;

/// A field of each pod that is not terminating, such as the image.
fn of_pods(field: &str) -> String {
    format!(
        "get pods -o go-template='{{{{range .items}}}}{{{{if not .metadata.deletionTimestamp}}}}{field} {{{{end}}}}{{{{end}}}}'"
    )
}

const IMAGE: &str = "{{(index .spec.containers 0).image}}";
const NAME: &str = "{{.metadata.name}}";
const NODE: &str = "{{.spec.nodeName}}";

#[track_caller]
fn rolled_out(cluster: &Cluster) {
    let said = cluster.kubectl("rollout status deployment web --timeout=50s").output();
    assert!(said.ends_with("deployment \"web\" successfully rolled out\n"), "{said}");
}

fn sorted(words: &str) -> Vec<&str> {
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.sort_unstable();
    words
}

#[test]
fn a_deployment_is_scaled_updated_and_rolled_back() {
    let cluster = Cluster::with_nodes(2);
    cluster.kubectl("create deployment web --image=web:1 --replicas=3").result();
    rolled_out(&cluster);
    for size in [1, 3] {
        cluster.kubectl(&format!("scale deployment web --replicas={size}")).result();
        cluster
            .kubectl(&format!(
                "wait --for=jsonpath={{.status.readyReplicas}}={size} deployment web --timeout=50s"
            ))
            .output();
        cluster.until(&of_pods(NAME), |names| sorted(names).len() == size);
    }
    insta::assert_snapshot!(cluster.kubectl("get deployment web"), @"
    NAME   READY   UP-TO-DATE   AVAILABLE   AGE
    web    3/3     3            3           <AGE>
    ");
    cluster.kubectl("set image deployment web web=web:2").result();
    rolled_out(&cluster);
    assert_eq!(sorted(&cluster.kubectl(&of_pods(IMAGE)).result()), ["web:2"; 3]);
    cluster.kubectl("rollout undo deployment web").result();
    rolled_out(&cluster);
    assert_eq!(sorted(&cluster.kubectl(&of_pods(IMAGE)).result()), ["web:1"; 3]);
    insta::assert_snapshot!(cluster.kubectl("rollout history deployment web"), @"
    deployment.apps/web
    REVISION  CHANGE-CAUSE
    2         <none>
    3         <none>
    ");
}

#[test]
fn deleting_a_deployment_deletes_or_orphans_its_pods() {
    let cluster = Cluster::with_nodes(1);
    let create = || {
        cluster.kubectl("create deployment web --image=web:1 --replicas=2").result();
        rolled_out(&cluster);
    };
    create();
    cluster.kubectl("delete deployment web --cascade=background").output();
    cluster.until("get replicasets,pods -o name", str::is_empty);

    create();
    cluster.kubectl("delete deployment web --cascade=foreground").output();
    assert_eq!(cluster.kubectl("get replicasets,pods -o name").output(), "");

    create();
    let names = cluster.kubectl(&of_pods(NAME)).result();
    cluster.kubectl("delete deployment web --cascade=orphan").output();
    let owners = "get replicasets -o jsonpath={.items[*].metadata.ownerReferences}";
    assert_eq!(cluster.kubectl(owners).result(), "", "nobody owns the replica set");
    cluster.kubectl("delete replicaset --all --cascade=orphan").output();
    let owners = "get pods -o jsonpath={.items[*].metadata.ownerReferences}";
    assert_eq!(cluster.kubectl(owners).result(), "", "nobody owns the pods");
    create();
    assert_eq!(sorted(&cluster.kubectl(&of_pods(NAME)).result()), sorted(&names), "they were adopted");
}

#[test]
fn an_image_pull_error_stops_a_rollout() {
    let cluster = Cluster::with_nodes(1);
    cluster.create(WEB);
    rolled_out(&cluster);
    cluster.kubectl("set image deployment web web=web:broken").result();
    let failed = cluster.kubectl("rollout status deployment web --timeout=50s");
    assert_eq!(failed.failure(), "error: deployment \"web\" exceeded its progress deadline");
    cluster.until("get pods", |pods| pods.contains("ImagePullBackOff"));
    assert_eq!(sorted(&cluster.kubectl(&of_pods(IMAGE)).result()), ["web:1", "web:1", "web:broken"]);
    cluster.kubectl("rollout undo deployment web").result();
    rolled_out(&cluster);
    assert_eq!(sorted(&cluster.kubectl(&of_pods(IMAGE)).result()), ["web:1"; 2]);
}

#[test]
fn a_cron_job_creates_a_job_with_logs() {
    let cluster = Cluster::with_nodes(1);
    cluster.create(REPORT);
    cluster.kubectl("create job now --from=cronjob/report").result();
    cluster.kubectl("wait --for=condition=complete job/now --timeout=50s").output();
    insta::assert_snapshot!(cluster.session("
        logs job/now
        logs job/now --tail=1
        get job now -o jsonpath={.status.succeeded},{.metadata.ownerReferences[0].kind}
    "), @"
    $ kubectl logs job/now
    begun
    12 reports
    $ kubectl logs job/now --tail=1
    12 reports
    $ kubectl get job now -o jsonpath={.status.succeeded},{.metadata.ownerReferences[0].kind}
    1,CronJob
    ");
}

#[test]
fn kubectl_creates_cron_jobs_and_jobs() {
    let cluster = Cluster::with_nodes(1);
    insta::assert_snapshot!(cluster.session("
        create cronjob tick --image=web:1 --schedule='*/5 * * * *'
        create job once --image=web:1
        get cronjob tick -o jsonpath={.spec.schedule},{.spec.concurrencyPolicy},{.spec.suspend}
    "), @"
    $ kubectl create cronjob tick --image=web:1 --schedule='*/5 * * * *'
    cronjob.batch/tick created
    $ kubectl create job once --image=web:1
    job.batch/once created
    $ kubectl get cronjob tick -o jsonpath={.spec.schedule},{.spec.concurrencyPolicy},{.spec.suspend}
    */5 * * * *,Allow,false
    ");
    cluster.kubectl("wait --for=condition=complete job/once --timeout=50s").output();
    cluster.kubectl("delete job once").output();
    cluster.until("get pods -o name", str::is_empty);
}

#[test]
fn logs_are_followed_until_the_pod_is_deleted() {
    let cluster = Cluster::with_nodes(1);
    cluster.create(PODS);
    cluster.kubectl("wait --for=condition=Ready pod talker --timeout=50s").output();
    let mut logs = cluster.background("logs talker -c main -f");
    logs.line_with("hello");
    cluster
        .feed(
            "patch pod talker --patch-file=/dev/stdin",
            "metadata: {annotations: {kubewright.dev/logs: \"hello\\nworld\"}}",
        )
        .result();
    logs.line_with("world");
    cluster.kubectl("delete pod talker --now").output();
    insta::assert_snapshot!(logs.end(), @"
    hello
    world
    ");
    cluster.until("get pod slow -o jsonpath={.status.containerStatuses[0].state.waiting.reason}", |why| {
        why == "ContainerCreating"
    });
    insta::assert_snapshot!(cluster.session("
        logs slow
        logs slow -c nope
        logs slow --previous
    "), @r#"
    $ kubectl logs slow
    --- stderr
    Error from server (BadRequest): container "web" in pod "slow" is waiting to start: ContainerCreating
    --- exit status 1
    $ kubectl logs slow -c nope
    --- stderr
    error: container nope is not valid for pod slow
    --- exit status 1
    $ kubectl logs slow --previous
    --- stderr
    Error from server (BadRequest): previous terminated container "web" in pod "slow" not found
    --- exit status 1
    "#);
}

#[test]
fn a_drained_node_gets_pods_after_uncordon() {
    let cluster = Cluster::with_nodes(2);
    cluster.kubectl("create deployment web --image=web:1 --replicas=4").result();
    rolled_out(&cluster);
    assert_eq!(sorted(&cluster.kubectl(&of_pods(NODE)).result()), ["node-1", "node-1", "node-2", "node-2"]);
    let drained = cluster.kubectl("drain node-1 --timeout=50s").output();
    assert!(drained.ends_with("node/node-1 drained\n"), "{drained}");
    rolled_out(&cluster);
    assert_eq!(sorted(&cluster.kubectl(&of_pods(NODE)).result()), ["node-2"; 4]);
    cluster.kubectl("cordon node-2").result();
    cluster.kubectl("uncordon node-1").result();
    cluster.kubectl("scale deployment web --replicas=5").result();
    rolled_out(&cluster);
    let nodes = cluster.kubectl(&of_pods(NODE)).result();
    assert_eq!(sorted(&nodes), ["node-1", "node-2", "node-2", "node-2", "node-2"]);
}

#[test]
fn drain_respects_disruption_budgets() {
    let cluster = Cluster::with_nodes(2);
    cluster.kubectl("create deployment web --image=web:1 --replicas=2").result();
    cluster.kubectl("create poddisruptionbudget web --selector=app=web --min-available=2").result();
    rolled_out(&cluster);
    let mut drain = cluster.background("drain node-1 --timeout=50s");
    drain.line_with("Cannot evict pod as it would violate the pod's disruption budget.");
    cluster.kubectl("scale deployment web --replicas=3").result();
    drain.line_with("node/node-1 drained");
    assert_eq!(sorted(&cluster.until(&of_pods(NODE), |nodes| sorted(nodes).len() == 3)), ["node-2"; 3]);
}

#[test]
fn describe_shows_the_events_of_a_pod() {
    let cluster = Cluster::with_nodes(1);
    cluster.kubectl("run web --image=web:1").result();
    let told = cluster.until("describe pod web", |told| told.contains("Started container web"));
    let events = told.split("Events:").nth(1).unwrap_or_default();
    for (reason, message) in [
        ("Scheduled", "Successfully assigned default/web to node-1"),
        ("Pulled", "Container image \"web:1\" already present on machine"),
        ("Created", "Created container: web"),
        ("Started", "Started container web"),
    ] {
        assert!(
            events.lines().any(|line| line.contains(reason) && line.ends_with(message)),
            "no {reason} in {events}"
        );
    }
}

#[test]
fn every_namespace_has_the_root_ca_config_map() {
    let cluster = Cluster::with_nodes(1);
    cluster.kubectl("create namespace team").result();
    let told = cluster.until(
        "get configmaps -n team --field-selector metadata.name=kube-root-ca.crt -o jsonpath={.items[*].data.ca\\.crt}",
        |told| !told.is_empty(),
    );
    let own = "config view --raw -o go-template='{{index (index .clusters 0).cluster \"certificate-authority-data\" | base64decode}}'";
    assert_eq!(told, cluster.kubectl(own).result());
}

const WEB: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  progressDeadlineSeconds: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {kubewright.dev/bad-images: web:broken}
    spec: {containers: [{name: web, image: 'web:1'}]}
";

const REPORT: &str = "\
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: 0 0 1 1 *
  jobTemplate:
    spec:
      template:
        metadata: {annotations: {kubewright.dev/logs: \"begun\\n12 reports\"}}
        spec: {restartPolicy: Never, containers: [{name: report, image: 'report:1'}]}
";

const PODS: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: talker, annotations: {kubewright.dev/logs: hello}}
spec: {containers: [{name: main, image: 'web:1'}, {name: side, image: 'web:1'}]}
---
apiVersion: v1
kind: Pod
metadata: {name: slow, annotations: {kubewright.dev/start-delay: 10m}}
spec: {containers: [{name: web, image: 'web:1'}]}
";

/// Containers are simulated: commands that need a process fail with the reason.
#[test]
fn commands_that_need_a_process_say_that_pods_are_simulated() {
    let cluster = Cluster::with_nodes(1);
    cluster.kubectl("run web --image=web:1 --port=80").result();
    cluster.kubectl("wait --for=condition=Ready pod/web --timeout=50s").output();
    let why =
        "is not supported: the containers of this Pod are simulated and run no process; use a real cluster";
    for (line, subresource) in [
        ("exec web -- date", "exec"),
        ("attach web", "attach"),
        ("port-forward pod/web :80", "portforward"),
        ("cp web:/etc/hosts hosts", "exec"),
    ] {
        let failure = cluster.kubectl(line).failure();
        assert!(failure.contains(&format!("{subresource} {why}")), "kubectl {line}: {failure}");
    }
    let failure = cluster.kubectl("exec web -c sidecar -- date").failure();
    assert!(failure.contains("container sidecar is not valid for pod web"), "{failure}");
    cluster.create(
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "idle"},
            "spec": {"nodeSelector": {"no": "node"}, "containers": [{"name": "idle", "image": "idle"}]}}"#,
    );
    let failure = cluster.kubectl("exec idle -- date").failure();
    assert!(failure.contains("pod idle does not have a host assigned"), "{failure}");
}
