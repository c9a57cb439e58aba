//! `kubectl describe`.

use super::cluster::Cluster;
use super::objects::{NODE, PODS, SETTINGS_AND_WEB};

/// Checks that lines are present in this order. Column widths and other lines differ between kubectl
/// versions.
#[track_caller]
fn check(cluster: &Cluster, line: &str, expected: &str) {
    let shown = cluster.kubectl(line).to_string();
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines = shown.lines().map(squeeze);
    for wanted in expected.lines().map(squeeze).filter(|line| !line.is_empty()) {
        assert!(lines.any(|line| line == wanted), "no {wanted:?}, or not there, in\n{shown}");
    }
}

#[test]
fn describe_shows_a_pod_and_its_events() {
    let cluster = Cluster::with(PODS);
    cluster.create(&event(&cluster, "c", "Normal", "Pulled", "Container image already present"));
    check(
        &cluster,
        "describe pod c",
        "
        Name:         c
        Namespace:    default
        Priority:     0
        Node:         worker/
        Labels:       app=db
        Annotations:  <none>
        Status:       Pending
        Containers:
          db:
            Image:        postgres:17
            Environment:  <none>
        QoS Class:        BestEffort
        Tolerations:      node.kubernetes.io/not-ready:NoExecute op=Exists for 300s
                          node.kubernetes.io/unreachable:NoExecute op=Exists for 300s
        Events:
          Type    Reason  Age    From     Message
          Normal  Pulled  <AGE>  kubelet  Container image already present
    ",
    );
}

#[test]
fn describe_shows_a_deployment_and_its_replica_sets() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    check(
        &cluster,
        "describe deployment web",
        "
        Name:                   web
        Namespace:              default
        CreationTimestamp:      <TIME>
        Labels:                 app=web
        Selector:               app=web
        Replicas:               2 desired | 0 updated | 0 total | 0 available | 0 unavailable
        StrategyType:           RollingUpdate
        MinReadySeconds:        0
        RollingUpdateStrategy:  25% max unavailable, 25% max surge
        Pod Template:
          Labels:  app=web
          Containers:
           web:
            Image:         nginx:1.27
            Port:          80/TCP
            Host Port:     0/TCP
        Events:            <none>
    ",
    );
}

#[test]
fn describe_shows_a_service_and_its_endpoints() {
    let cluster = Cluster::with(SERVICE);
    check(
        &cluster,
        "describe service web",
        "
        Name:                     web
        Namespace:                default
        Selector:                 app=web
        Type:                     NodePort
        IP Family Policy:         SingleStack
        IP Families:              IPv4
        IP:                       10.0.0.100
        IPs:                      10.0.0.100
        Port:                     http  80/TCP
        TargetPort:               8080/TCP
        NodePort:                 http  30080/TCP
        Endpoints:                10.1.0.1:8080,10.1.0.2:8080
        Session Affinity:         None
        External Traffic Policy:  Cluster
        Internal Traffic Policy:  Cluster
        Events:                   <none>
    ",
    );
}

const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  clusterIP: 10.0.0.100
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080, nodePort: 30080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.1.0.1]}, {addresses: [10.1.0.2]}]
";

#[test]
fn describe_shows_a_node_and_its_pods() {
    let cluster = Cluster::with(&[NODE, PODS].join("---\n"));
    let status = r#"{"status":{"addresses":[{"type":"InternalIP","address":"10.2.0.1"}],"capacity":{"cpu":"4","memory":"8Gi","pods":"110"},"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"kubelet is posting ready status"}],"nodeInfo":{"kubeletVersion":"v1.36.4","osImage":"Linux"}}}"#;
    cluster.kubectl(&format!("patch node worker --subresource=status -p '{status}'")).result();
    check(
        &cluster,
        "describe node worker",
        "
        Name:               worker
        Roles:              worker
        Labels:             kubernetes.io/hostname=worker
                            node-role.kubernetes.io/worker=
        CreationTimestamp:  <TIME>
        Taints:             node.kubernetes.io/not-ready:NoSchedule
        Unschedulable:      false
        Addresses:
          InternalIP:  10.2.0.1
        Capacity:
          cpu:     4
          memory:  8Gi
          pods:    110
        Allocatable:
          cpu:     4
        System Info:
          OS Image:                   Linux
          Kubelet Version:            v1.36.4
        Non-terminated Pods:          (1 in total)
          default                     c       0 (0%)        0 (0%)      0 (0%)           0 (0%)         <AGE>
        Events:              <none>
    ",
    );
}

#[test]
fn describe_shows_a_namespace_and_its_limits() {
    let cluster = Cluster::with(LIMITS);
    let status = r#"{"status":{"hard":{"pods":"2"},"used":{"pods":"0"}}}"#;
    cluster.kubectl(&format!("patch resourcequota small --subresource=status -p {status}")).result();
    check(
        &cluster,
        "describe namespace default",
        "
        Name:         default
        Labels:       kubernetes.io/metadata.name=default
        Annotations:  <none>
        Status:       Active
        Resource Quotas
          Name:     small
          Resource  Used  Hard
          pods      0     2
        Resource Limits
         Type       Resource  Min  Max  Default Request  Default Limit  Max Limit/Request Ratio
         Container  cpu       -    1    100m             200m           -
    ",
    );
}

const LIMITS: &str = "\
apiVersion: v1
kind: ResourceQuota
metadata: {name: small}
spec: {hard: {pods: 2}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec: {limits: [{type: Container, max: {cpu: 1}, default: {cpu: 200m}, defaultRequest: {cpu: 100m}}]}
";

#[test]
fn describe_shows_all_other_bootstrap_kinds() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    check(
        &cluster,
        "describe configmap settings",
        "
        Name:         settings
        Namespace:    default
        Data
        colour:
        blue
    ",
    );
    check(
        &cluster,
        "describe clusterrole cluster-admin",
        "
        Name:         cluster-admin
        PolicyRule:
          *.*        []                 []              [*]
                     [*]                []              [*]
    ",
    );
    check(
        &cluster,
        "describe priorityclass system-node-critical",
        "
        Name:              system-node-critical
        Value:             2000001000
        GlobalDefault:     false
    ",
    );
}

#[test]
fn events_are_listed_and_filtered_by_object() {
    let cluster = Cluster::with(PODS);
    insta::assert_snapshot!(cluster.kubectl("events"), @"
    --- stderr
    No events found in default namespace.
    ");
    cluster.create(&event(&cluster, "a", "Normal", "Pulled", "Container image already present"));
    cluster.create(&event(&cluster, "b", "Warning", "Failed", "Something else"));
    insta::assert_snapshot!(cluster.session("
        events
        events --for pod/a
        events --types=Warning
        get events
        get events -o wide --field-selector reason=Pulled
        get events.events.k8s.io -o name
        get events.events.k8s.io -o jsonpath={.items[*].note}
    "), @"
    $ kubectl events
    LAST SEEN   TYPE      REASON   OBJECT   MESSAGE
    <AGE>       Normal    Pulled   Pod/a    Container image already present
    <AGE>       Warning   Failed   Pod/b    Something else
    $ kubectl events --for pod/a
    LAST SEEN   TYPE     REASON   OBJECT   MESSAGE
    <AGE>       Normal   Pulled   Pod/a    Container image already present
    $ kubectl events --types=Warning
    LAST SEEN   TYPE      REASON   OBJECT   MESSAGE
    <AGE>       Warning   Failed   Pod/b    Something else
    $ kubectl get events
    LAST SEEN   TYPE      REASON   OBJECT   MESSAGE
    <AGE>       Normal    Pulled   pod/a    Container image already present
    <AGE>       Warning   Failed   pod/b    Something else
    $ kubectl get events -o wide --field-selector reason=Pulled
    LAST SEEN   TYPE     REASON   OBJECT   SUBOBJECT   SOURCE    MESSAGE                           FIRST SEEN   COUNT   NAME
    <AGE>       Normal   Pulled   pod/a                kubelet   Container image already present   <AGE>        1       a.pulled
    $ kubectl get events.events.k8s.io -o name
    event.events.k8s.io/a.pulled
    event.events.k8s.io/b.failed
    $ kubectl get events.events.k8s.io -o jsonpath={.items[*].note}
    Container image already present Something else
    ");
}

/// An event of a pod, as a kubelet reports it.
fn event(cluster: &Cluster, pod: &str, kind: &str, reason: &str, message: &str) -> String {
    let uid = cluster.kubectl(&format!("get pod {pod} -o jsonpath={{.metadata.uid}}")).result();
    let name = reason.to_lowercase();
    format!(
        "\
apiVersion: v1
kind: Event
metadata: {{name: {pod}.{name}}}
type: {kind}
reason: {reason}
message: {message}
involvedObject: {{apiVersion: v1, kind: Pod, name: {pod}, namespace: default, uid: {uid}}}
source: {{component: kubelet}}
firstTimestamp: 2026-01-01T00:00:00Z
lastTimestamp: 2026-01-01T00:00:00Z
count: 1
"
    )
}
