//! Admission plugins, as users of kubectl see them.

use super::cluster::Cluster;

const POD: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: i}]}
";

#[test]
fn a_restricted_namespace_refuses_a_privileged_pod() {
    let cluster = Cluster::start();
    cluster.kubectl("label namespace default pod-security.kubernetes.io/enforce=restricted").result();
    let privileged = POD.replace("image: i", "image: i, securityContext: {privileged: true}");
    insta::assert_snapshot!(cluster.feed("create -f -", &privileged).failure(), @r#"Error from server (Forbidden): error when creating "STDIN": pods "p" is forbidden: violates PodSecurity "restricted:latest": privileged (container "c" must not set securityContext.privileged=true), allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"#);
}

#[test]
fn a_limit_range_sets_the_defaults_of_a_pod() {
    let cluster = Cluster::with(
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: r}\nspec:\n  limits: [{type: Container, default: {cpu: 500m}, \
         defaultRequest: {cpu: 100m}}]\n",
    );
    cluster.create(POD);
    insta::assert_snapshot!(cluster.kubectl("get pod p -o jsonpath={.spec.containers[0].resources}"), @r#"{"limits":{"cpu":"500m"},"requests":{"cpu":"100m"}}"#);
}

#[test]
fn a_pod_gets_its_service_account_with_token_and_pull_secrets() {
    let cluster = Cluster::with_flags(" --enable-admission-plugins ServiceAccount");
    let failure = cluster.feed("create -f -", POD).failure();
    assert!(
        failure.ends_with(
            "error looking up service account default/default: serviceaccount \"default\" not found"
        ),
        "{failure}"
    );
    cluster.create(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default}\nimagePullSecrets: [{name: pull}]\n",
    );
    cluster.create(POD);
    insta::assert_snapshot!(cluster.session("
        get pod p -o jsonpath={.spec.serviceAccountName},{.spec.imagePullSecrets}
        get pod p -o jsonpath={.spec.volumes[0].projected.sources[0].serviceAccountToken}
        get pod p -o jsonpath={.spec.containers[0].volumeMounts[0].mountPath}
    "), @r#"
    $ kubectl get pod p -o jsonpath={.spec.serviceAccountName},{.spec.imagePullSecrets}
    default,[{"name":"pull"}]
    $ kubectl get pod p -o jsonpath={.spec.volumes[0].projected.sources[0].serviceAccountToken}
    {"expirationSeconds":3607,"path":"token"}
    $ kubectl get pod p -o jsonpath={.spec.containers[0].volumeMounts[0].mountPath}
    /var/run/secrets/kubernetes.io/serviceaccount
    "#);
}
