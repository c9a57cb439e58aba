//! Admission policies as kubectl shows them: one that denies, one that warns, one that mutates.

use super::cluster::Cluster;

/// A ValidatingAdmissionPolicy for Deployments and its binding with these validation actions.
fn validating(actions: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: replicas}}
spec:
  matchConstraints:
    resourceRules:
    - {{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}}
  validations:
  - expression: object.spec.replicas <= 3
    messageExpression: \"'at most 3 replicas, not ' + string(object.spec.replicas)\"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: everywhere}}
spec: {{policyName: replicas, validationActions: [{actions}]}}
"
    )
}

#[test]
fn a_policy_denies_and_a_denied_update_changes_nothing() {
    let cluster = Cluster::with(&validating("Deny"));
    let denied = "ValidatingAdmissionPolicy 'replicas' with binding 'everywhere' denied request: at most 3 replicas, \
                  not 5";
    assert_eq!(
        cluster.kubectl("create deployment web --image=nginx --replicas=5").failure(),
        format!("error: failed to create deployment: deployments.apps \"web\" is forbidden: {denied}")
    );
    cluster.kubectl("create deployment web --image=nginx --replicas=3").result();
    let patch = r#"patch deployment web -p '{"spec":{"replicas":5}}'"#;
    assert_eq!(cluster.kubectl(patch).failure(), format!("The deployments \"web\" is invalid: : {denied}"));
    assert_eq!(cluster.kubectl("get deployment web -o jsonpath={.spec.replicas}").result(), "3");
    // A dry run is denied as well, and a deleted binding denies nothing.
    cluster.kubectl("create deployment dry --image=nginx --replicas=5 --dry-run=server").failure();
    cluster.kubectl("delete validatingadmissionpolicybinding everywhere").result();
    cluster.kubectl("create deployment free --image=nginx --replicas=5").result();
}

#[test]
fn a_policy_that_warns_prints_a_warning_and_stores_the_object() {
    let cluster = Cluster::with(&validating("Warn"));
    let created = cluster.kubectl("create deployment web --image=nginx --replicas=5").to_string();
    assert_eq!(
        created,
        "deployment.apps/web created\n--- stderr\nWarning: Validation failed for ValidatingAdmissionPolicy 'replicas' \
         with binding 'everywhere': at most 3 replicas, not 5\n"
    );
    assert_eq!(cluster.kubectl("get deployment web -o jsonpath={.spec.replicas}").result(), "5");
}

#[test]
fn a_mutating_policy_changes_the_stored_object() {
    let cluster = Cluster::with(
        "apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: team}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  matchConditions:
  - {name: without-team, expression: \"!has(object.metadata.labels) || !('team' in object.metadata.labels)\"}
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: \"Object{metadata: Object.metadata{labels: {'team': request.namespace}}}\"
  - patchType: JSONPatch
    jsonPatch:
      expression: \"[JSONPatch{op: 'add', path: '/data/checked', value: 'yes'}]\"
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: team}
",
    );
    cluster.kubectl("create configmap plain --from-literal=a=1").result();
    let show = |name: &str| {
        cluster
            .kubectl(&format!("get configmap {name} -o 'jsonpath={{.metadata.labels}} {{.data}}'"))
            .result()
    };
    assert_eq!(show("plain"), r#"{"team":"default"} {"a":"1","checked":"yes"}"#);
    cluster.create(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, labels: {team: a}}\ndata: {a: '1'}\n",
    );
    assert_eq!(show("own"), r#"{"team":"a"} {"a":"1"}"#);
}
