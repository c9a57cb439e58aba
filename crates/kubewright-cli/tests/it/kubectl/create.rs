//! `kubectl create`, `run`, `expose`, `autoscale` and `set`.
//!
//! `create KIND` and `autoscale` use protobuf, as typed clients of client-go do since 0.32.

use super::cluster::Cluster;
use super::objects::{SETTINGS, SETTINGS_AND_WEB};

#[test]
fn create_creates_every_document_of_a_file() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.feed("create -f -", SETTINGS_AND_WEB), @"
    configmap/settings created
    deployment.apps/web created
    ");
    insta::assert_snapshot!(cluster.feed("create -f -", SETTINGS_AND_WEB), @r#"
    --- stderr
    Error from server (AlreadyExists): error when creating "STDIN": configmaps "settings" already exists
    Error from server (AlreadyExists): error when creating "STDIN": deployments.apps "web" already exists
    --- exit status 1
    "#);
    let list = r#"{"apiVersion":"v1","kind":"List","items":[
        {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}},
        {"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"two-"}}]}"#;
    let created = cluster.feed("create -f - -o name", list).result();
    let [one, two] = created.lines().collect::<Vec<_>>()[..] else { panic!("{created}") };
    assert_eq!(one, "configmap/one");
    assert!(two.strip_prefix("configmap/two-").is_some_and(|suffix| suffix.len() == 5), "{two}");
}

#[test]
fn create_saves_the_last_applied_configuration_on_request() {
    let cluster = Cluster::start();
    cluster.feed("create --save-config -f -", SETTINGS).result();
    insta::assert_snapshot!(cluster.feed("apply -f -", SETTINGS), @"configmap/settings unchanged");
}

#[test]
fn a_server_dry_run_stores_nothing() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.feed("create --dry-run=server -f -", SETTINGS), @"configmap/settings created (server dry run)");
    insta::assert_snapshot!(cluster.kubectl("get configmaps"), @"
    --- stderr
    No resources found in default namespace.
    ");
    cluster.create(SETTINGS);
    insta::assert_snapshot!(cluster.session("
        label configmap settings tier=front --dry-run=server
        annotate configmap settings note=other --dry-run=server
        delete configmap settings --dry-run=server
        get configmap settings -o jsonpath={.data.colour},{.metadata.labels}
    "), @r#"
    $ kubectl label configmap settings tier=front --dry-run=server
    configmap/settings labeled (server dry run)
    $ kubectl annotate configmap settings note=other --dry-run=server
    configmap/settings annotated (server dry run)
    $ kubectl delete configmap settings --dry-run=server
    configmap "settings" deleted (server dry run)
    $ kubectl get configmap settings -o jsonpath={.data.colour},{.metadata.labels}
    blue,{"app":"web"}
    "#);
}

#[test]
fn create_generates_core_objects() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        create namespace team
        create configmap settings --from-literal=colour=blue --from-literal=size=large
        create secret generic password --from-literal=password=secret
        create serviceaccount robot
        create quota small --hard=pods=2,configmaps=10
        create service clusterip web --tcp=80:8080 --clusterip=10.0.0.100
        create service nodeport web-outside --tcp=80 --node-port=30080
        create service externalname elsewhere --external-name=example.com
        get namespace team
        get configmap,secret,serviceaccount,quota
        get service web elsewhere
        get service web-outside -o jsonpath={.spec.type},{.spec.ports}
        get secret password -o jsonpath={.type},{.data.password}
    "), @r#"
    $ kubectl create namespace team
    namespace/team created
    $ kubectl create configmap settings --from-literal=colour=blue --from-literal=size=large
    configmap/settings created
    $ kubectl create secret generic password --from-literal=password=secret
    secret/password created
    $ kubectl create serviceaccount robot
    serviceaccount/robot created
    $ kubectl create quota small --hard=pods=2,configmaps=10
    resourcequota/small created
    $ kubectl create service clusterip web --tcp=80:8080 --clusterip=10.0.0.100
    service/web created
    $ kubectl create service nodeport web-outside --tcp=80 --node-port=30080
    service/web-outside created
    $ kubectl create service externalname elsewhere --external-name=example.com
    service/elsewhere created
    $ kubectl get namespace team
    NAME   STATUS   AGE
    team   Active   <AGE>
    $ kubectl get configmap,secret,serviceaccount,quota
    NAME                 DATA   AGE
    configmap/settings   2      <AGE>

    NAME              TYPE     DATA   AGE
    secret/password   Opaque   1      <AGE>

    NAME                   AGE
    serviceaccount/robot   <AGE>

    NAME                  REQUEST   LIMIT   AGE
    resourcequota/small                     <AGE>
    $ kubectl get service web elsewhere
    NAME        TYPE           CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE
    web         ClusterIP      10.0.0.100   <none>        80/TCP    <AGE>
    elsewhere   ExternalName   <none>       example.com   <none>    <AGE>
    $ kubectl get service web-outside -o jsonpath={.spec.type},{.spec.ports}
    NodePort,[{"name":"80","nodePort":30080,"port":80,"protocol":"TCP","targetPort":80}]
    $ kubectl get secret password -o jsonpath={.type},{.data.password}
    Opaque,c2VjcmV0
    "#);
}

#[test]
fn create_generates_workloads() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        create deployment web --image=nginx:1.27 --replicas=3 --port=80
        create job once --image=busybox -- date
        create cronjob nightly --image=busybox --schedule='0 1 * * *' -- date
        create job from-nightly --from=cronjob/nightly
        create poddisruptionbudget web --selector=app=web --min-available=1
        create ingress web --rule=example.com/*=web:80
        create priorityclass high --value=1000 --description=first
        autoscale deployment web --min=2 --max=5
        get deployment,job,cronjob,poddisruptionbudget,ingress,horizontalpodautoscaler -o wide
        get priorityclass
    "), @"
    $ kubectl create deployment web --image=nginx:1.27 --replicas=3 --port=80
    deployment.apps/web created
    $ kubectl create job once --image=busybox -- date
    job.batch/once created
    $ kubectl create cronjob nightly --image=busybox --schedule='0 1 * * *' -- date
    cronjob.batch/nightly created
    $ kubectl create job from-nightly --from=cronjob/nightly
    job.batch/from-nightly created
    $ kubectl create poddisruptionbudget web --selector=app=web --min-available=1
    poddisruptionbudget.policy/web created
    $ kubectl create ingress web --rule=example.com/*=web:80
    ingress.networking.k8s.io/web created
    $ kubectl create priorityclass high --value=1000 --description=first
    priorityclass.scheduling.k8s.io/high created
    $ kubectl autoscale deployment web --min=2 --max=5
    horizontalpodautoscaler.autoscaling/web autoscaled
    $ kubectl get deployment,job,cronjob,poddisruptionbudget,ingress,horizontalpodautoscaler -o wide
    NAME                  READY   UP-TO-DATE   AVAILABLE   AGE   CONTAINERS   IMAGES       SELECTOR
    deployment.apps/web   0/3     0            0           <AGE> nginx        nginx:1.27   app=web

    NAME                     STATUS    COMPLETIONS   DURATION   AGE   CONTAINERS   IMAGES    SELECTOR
    job.batch/from-nightly   Running   0/1                      <AGE> nightly      busybox   batch.kubernetes.io/controller-uid=<UID>
    job.batch/once           Running   0/1                      <AGE> once         busybox   batch.kubernetes.io/controller-uid=<UID>

    NAME                    SCHEDULE    TIMEZONE   SUSPEND   ACTIVE   LAST SCHEDULE   AGE   CONTAINERS   IMAGES    SELECTOR
    cronjob.batch/nightly   0 1 * * *   <none>     False     0        <none>          <AGE> nightly      busybox   <none>

    NAME                             MIN AVAILABLE   MAX UNAVAILABLE   ALLOWED DISRUPTIONS   AGE
    poddisruptionbudget.policy/web   1               N/A               0                     <AGE>

    NAME                            CLASS    HOSTS         ADDRESS   PORTS   AGE
    ingress.networking.k8s.io/web   <none>   example.com             80      <AGE>

    NAME                                      REFERENCE        TARGETS              MINPODS   MAXPODS   REPLICAS   AGE
    horizontalpodautoscaler.autoscaling/web   Deployment/web   cpu: <unknown>/80%   2         5         0          <AGE>
    $ kubectl get priorityclass
    NAME                      VALUE        GLOBAL-DEFAULT   AGE   PREEMPTIONPOLICY
    high                      1000         false            <AGE> PreemptLowerPriority
    system-cluster-critical   2000000000   false            <AGE> PreemptLowerPriority
    system-node-critical      2000001000   false            <AGE> PreemptLowerPriority
    ");
}

#[test]
fn create_generates_roles_and_bindings() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        create role reader --verb=get,list --resource=pods,deployments.apps
        create rolebinding readers --role=reader --user=alice --serviceaccount=default:robot
        create clusterrole node-reader --verb=get --resource=nodes
        create clusterrolebinding node-readers --clusterrole=node-reader --group=ops
        get rolebindings -o wide
        get clusterrolebinding node-readers -o wide
        get role reader -o jsonpath={.rules}
    "), @r#"
    $ kubectl create role reader --verb=get,list --resource=pods,deployments.apps
    role.rbac.authorization.k8s.io/reader created
    $ kubectl create rolebinding readers --role=reader --user=alice --serviceaccount=default:robot
    rolebinding.rbac.authorization.k8s.io/readers created
    $ kubectl create clusterrole node-reader --verb=get --resource=nodes
    clusterrole.rbac.authorization.k8s.io/node-reader created
    $ kubectl create clusterrolebinding node-readers --clusterrole=node-reader --group=ops
    clusterrolebinding.rbac.authorization.k8s.io/node-readers created
    $ kubectl get rolebindings -o wide
    NAME      ROLE          AGE   USERS   GROUPS   SERVICEACCOUNTS
    readers   Role/reader   <AGE> alice            default/robot
    $ kubectl get clusterrolebinding node-readers -o wide
    NAME           ROLE                      AGE   USERS   GROUPS   SERVICEACCOUNTS
    node-readers   ClusterRole/node-reader   <AGE>         ops
    $ kubectl get role reader -o jsonpath={.rules}
    [{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]},{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get","list"]}]
    "#);
}

#[test]
fn run_creates_a_pod_with_defaults() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        run web --image=nginx:1.27 --port=80 --labels=app=web --env=COLOUR=blue
        get pods --show-labels
        get pod web -o jsonpath={.spec.restartPolicy},{.spec.dnsPolicy},{.spec.terminationGracePeriodSeconds},{.status.phase},{.status.qosClass}
        run web --image=nginx:1.27
    "), @r#"
    $ kubectl run web --image=nginx:1.27 --port=80 --labels=app=web --env=COLOUR=blue
    pod/web created
    $ kubectl get pods --show-labels
    NAME   READY   STATUS    RESTARTS   AGE   LABELS
    web    0/1     Pending   0          <AGE> app=web
    $ kubectl get pod web -o jsonpath={.spec.restartPolicy},{.spec.dnsPolicy},{.spec.terminationGracePeriodSeconds},{.status.phase},{.status.qosClass}
    Always,ClusterFirst,30,Pending,BestEffort
    $ kubectl run web --image=nginx:1.27
    --- stderr
    Error from server (AlreadyExists): pods "web" already exists
    --- exit status 1
    "#);
}

#[test]
fn expose_creates_a_service_with_a_cluster_ip() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.session("
        expose deployment web --port=80 --target-port=http --cluster-ip=10.0.0.100
        expose deployment web --name=web-outside --port=80 --type=NodePort --cluster-ip=10.0.0.101
        expose deployment web --name=web-headless --port=80 --cluster-ip=None
        get service web web-headless -o wide
        expose deployment web --name=again --port=80 --cluster-ip=10.0.0.100
    "), @r#"
    $ kubectl expose deployment web --port=80 --target-port=http --cluster-ip=10.0.0.100
    service/web exposed
    $ kubectl expose deployment web --name=web-outside --port=80 --type=NodePort --cluster-ip=10.0.0.101
    service/web-outside exposed
    $ kubectl expose deployment web --name=web-headless --port=80 --cluster-ip=None
    service/web-headless exposed
    $ kubectl get service web web-headless -o wide
    NAME           TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE   SELECTOR
    web            ClusterIP   10.0.0.100   <none>        80/TCP    <AGE> app=web
    web-headless   ClusterIP   None         <none>        80/TCP    <AGE> app=web
    $ kubectl expose deployment web --name=again --port=80 --cluster-ip=10.0.0.100
    --- stderr
    The Service "again" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.100"]: failed to allocate IP 10.0.0.100: provided IP is already allocated
    --- exit status 1
    "#);
    let port = cluster.kubectl("get service web-outside -o jsonpath={.spec.ports[0].nodePort}").result();
    assert!((30000..=32767).contains(&port.parse::<u16>().expect("a port")), "{port}");
}

#[test]
fn set_changes_the_pod_template() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.session("
        set image deployment/web web=nginx:1.28
        set env deployment/web COLOUR=blue
        set resources deployment web --limits=cpu=500m,memory=64Mi
        set serviceaccount deployment web robot
        set image deployment/web other=nginx:1.28
        get deployment web -o jsonpath={.spec.template.spec.containers[0].image},{.spec.template.spec.containers[0].env},{.spec.template.spec.containers[0].resources}
        get deployment web -o jsonpath={.spec.template.spec.serviceAccountName},{.metadata.generation}
    "), @r#"
    $ kubectl set image deployment/web web=nginx:1.28
    deployment.apps/web image updated
    $ kubectl set env deployment/web COLOUR=blue
    deployment.apps/web env updated
    $ kubectl set resources deployment web --limits=cpu=500m,memory=64Mi
    deployment.apps/web resource requirements updated
    $ kubectl set serviceaccount deployment web robot
    deployment.apps/web serviceaccount updated
    $ kubectl set image deployment/web other=nginx:1.28
    --- stderr
    error: unable to find container named "other"
    --- exit status 1
    $ kubectl get deployment web -o jsonpath={.spec.template.spec.containers[0].image},{.spec.template.spec.containers[0].env},{.spec.template.spec.containers[0].resources}
    nginx:1.28,[{"name":"COLOUR","value":"blue"}],{"limits":{"cpu":"500m","memory":"64Mi"}}
    $ kubectl get deployment web -o jsonpath={.spec.template.spec.serviceAccountName},{.metadata.generation}
    robot,5
    "#);
}

#[test]
fn expose_and_set_selector_change_the_selector_of_a_service() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.session("
        expose deployment web --port=80
        set selector service web app=other
        get service web -o jsonpath={.spec.selector}
    "), @r#"
    $ kubectl expose deployment web --port=80
    service/web exposed
    $ kubectl set selector service web app=other
    service/web selector updated
    $ kubectl get service web -o jsonpath={.spec.selector}
    {"app":"other"}
    "#);
}
