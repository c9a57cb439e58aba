//! Compares validation with recorded responses of kube-apiserver v1.36 and messages in its sources.

use serde_json::{Value, json};

use super::pod_template;
use crate::defaults;
use crate::kinds::rules;
use kubewright_apimachinery::field::{ErrorList, Path};
use kubewright_apimachinery::gvk::Gvk;

const MUTABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
    tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n";

fn gvk(kind: &str) -> Gvk<'_> {
    Gvk { group: "", version: "v1", kind }
}

fn create(gvk: Gvk<'_>, object: &Value) -> ErrorList {
    (rules(gvk).validate)(object)
}

fn update(gvk: Gvk<'_>, new: &Value, old: &Value) -> ErrorList {
    (rules(gvk).validate_update)(new, old)
}

fn update_subresource(gvk: Gvk<'_>, subresource: &str, new: &Value, old: &Value) -> ErrorList {
    (rules(gvk).validate_subresource)(subresource, new, old)
}

/// A valid, defaulted pod with `change` merged into its spec.
fn pod(change: &Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "nginx", "resources": {}}]});
    for (name, value) in change.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    let mut pod = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": spec});
    defaults::apply(gvk("Pod"), &mut pod);
    pod
}

/// A pod with `change` merged into its only container.
fn container(change: &Value) -> Value {
    let mut container = json!({"name": "c", "image": "nginx", "resources": {}});
    for (name, value) in change.as_object().into_iter().flatten() {
        container[name] = value.clone();
    }
    pod(&json!({"containers": [container]}))
}

fn messages(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn created(pod: &Value, expected: &[&str]) {
    assert_eq!(messages(&create(gvk("Pod"), pod)), expected);
}

#[track_caller]
fn updated(change: &Value, expected: &[&str]) {
    let old = pod(&Value::Null);
    assert_eq!(messages(&update(gvk("Pod"), &pod(change), &old)), expected);
}

#[test]
fn a_minimal_pod_is_valid() {
    created(&pod(&Value::Null), &[]);
}

#[test]
fn a_pod_needs_containers_with_names_and_images() {
    created(&pod(&json!({"containers": []})), &["spec.containers: Required value"]);
    created(
        &pod(&json!({"containers": [{"resources": {}}, {"name": "A", "image": " x", "resources": {}}]})),
        &[
            "spec.containers[0].name: Required value",
            "spec.containers[0].image: Required value",
            "spec.containers[1].name: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case \
             alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
             '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            "spec.containers[1].image: Invalid value: \" x\": must not have leading or trailing whitespace",
        ],
    );
}

#[test]
fn container_names_are_unique_across_all_types() {
    let one = json!({"name": "c", "image": "x", "resources": {}});
    created(
        &pod(&json!({"containers": [one, one], "initContainers": [one]})),
        &[
            "spec.containers[1].name: Duplicate value: \"c\"",
            "spec.initContainers[0].name: Duplicate value: \"c\"",
        ],
    );
}

#[test]
fn a_projected_token_needs_a_service_account() {
    let source = json!({"serviceAccountToken": {"path": "t"}});
    let volumes = json!([{"name": "a"}, {"name": "p", "projected": {"sources": [source]}}]);
    created(
        &pod(&json!({"volumes": volumes})),
        &["spec.volumes[1].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when \
           serviceAccountName is not set"],
    );
    created(&pod(&json!({"volumes": volumes, "serviceAccountName": "s"})), &[]);
}

#[test]
fn a_volume_needs_one_source_and_only_valid_volumes_can_be_mounted() {
    let mut template = json!({"spec": {
        "containers": [{
            "name": "c", "image": "x", "resources": {}, "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }],
        "volumes": [{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}],
    }});
    crate::core::pod::defaults::pod_template(&mut template);
    assert_eq!(
        messages(&pod_template(&template, &Path::new("spec").child("template"))),
        [
            "spec.template.spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type",
            "spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"v\"",
        ]
    );
}

#[test]
fn an_environment_variable_has_a_value_or_a_source() {
    created(
        &container(&json!({"env": [
            {"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "B", "valueFrom": {}},
            {"name": "", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}},
            {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "x"}}},
        ]})),
        &[
            "spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
            "spec.containers[0].env[1].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, \
             `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            "spec.containers[0].env[2].name: Required value",
            "spec.containers[0].env[2].valueFrom.fieldRef.fieldPath: Unsupported value: \"status.phase\": supported \
             values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \
             \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\"",
            "spec.containers[0].env[3].valueFrom.fieldRef.fieldPath: Invalid value: \"x\": error converting fieldPath: \
             field label not supported: x",
        ],
    );
}

#[test]
fn ports_need_valid_numbers_and_unique_names() {
    created(
        &container(&json!({"ports": [
            {"name": "a", "containerPort": 80, "hostPort": 80}, {"name": "a", "containerPort": 70000, "hostPort": 80},
            {"protocol": "X"},
        ]})),
        &[
            "spec.containers[0].ports[1].name: Duplicate value: \"a\"",
            "spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            "spec.containers[0].ports[2].containerPort: Required value",
            "spec.containers[0].ports[2].protocol: Unsupported value: \"X\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
            "spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//80\"",
        ],
    );
}

#[test]
fn requests_must_not_exceed_limits() {
    let resources = json!({
        "requests": {"cpu": "2", "example.com/gpu": "1", "x": "1", "memory": "-1"},
        "limits": {"cpu": "1", "hugepages-2Mi": "1Mi"},
    });
    created(
        &container(&json!({"resources": resources})),
        &[
            "spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: \"1Mi\": 1Mi is not positive integer \
             multiple of hugepages-2Mi",
            "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
            "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
            "spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: \"1Mi\": 1Mi is not positive integer \
             multiple of hugepages-2Mi",
            "spec.containers[0].resources.requests[memory]: Invalid value: \"-1\": must be greater than or equal to 0",
            "spec.containers[0].resources.requests[x]: Invalid value: \"x\": must be a standard resource type or fully \
             qualified",
            "spec.containers[0].resources.requests[x]: Invalid value: \"x\": must be a standard resource for containers",
        ],
    );
}

#[test]
fn probes_and_hooks_need_exactly_one_handler() {
    created(
        &container(&json!({
            "livenessProbe": {"exec": {"command": ["x"]}, "httpGet": {"port": "UPPER"}, "successThreshold": 2},
            "readinessProbe": {"periodSeconds": -1},
            "lifecycle": {"preStop": {"sleep": {"seconds": 31}}},
        })),
        &[
            "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than \
             terminationGracePeriodSeconds (30)",
            "spec.containers[0].livenessProbe.httpGet: Forbidden: may not specify more than 1 handler type",
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
            "spec.containers[0].readinessProbe: Required value: must specify a handler type",
            "spec.containers[0].readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
        ],
    );
}

#[test]
fn policies_must_be_supported_values() {
    created(
        &pod(&json!({"restartPolicy": "Sometimes", "dnsPolicy": "Mine", "preemptionPolicy": "x"})),
        &[
            "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
            "spec.dnsPolicy: Unsupported value: \"Mine\": supported values: \"ClusterFirstWithHostNet\", \
             \"ClusterFirst\", \"Default\", \"None\"",
            "spec.preemptionPolicy: Unsupported value: \"x\": supported values: \"PreemptLowerPriority\", \"Never\"",
        ],
    );
}

#[test]
fn security_contexts_are_validated() {
    let mut changed = container(&json!({"securityContext": {
        "privileged": true, "allowPrivilegeEscalation": false, "seccompProfile": {"type": "Localhost"},
    }}));
    changed["spec"]["securityContext"] =
        json!({"runAsUser": -1, "sysctls": [{"name": "net.core.somaxconn"}]});
    changed["spec"]["hostNetwork"] = json!(true);
    created(
        &changed,
        &[
            "spec.containers[0].securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp \
             type is Localhost",
            "spec.containers[0].securityContext: Invalid value: {\"Capabilities\":null,\"Privileged\":true,\
             \"SELinuxOptions\":null,\"WindowsOptions\":null,\"RunAsUser\":null,\"RunAsGroup\":null,\
             \"RunAsNonRoot\":null,\"ReadOnlyRootFilesystem\":null,\"AllowPrivilegeEscalation\":false,\
             \"ProcMount\":null,\"SeccompProfile\":{\"Type\":\"Localhost\",\"LocalhostProfile\":null},\
             \"AppArmorProfile\":null}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
            "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            "spec.securityContext.sysctls[0].name: Invalid value: \"net.core.somaxconn\": may not be specified when \
             'hostNetwork' is true",
        ],
    );
}

#[test]
fn scheduling_constraints_are_validated() {
    created(
        &pod(&json!({
            "nodeSelector": {"a": "-"},
            "tolerations": [{"operator": "Equal"}, {"key": "a", "operator": "In", "effect": "Never"}],
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}},
                "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
                    "weight": 0, "podAffinityTerm": {"topologyKey": "k", "labelSelector": {}},
                }]},
            },
            "topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "x", "labelSelector": {}}],
        })),
        &[
            "spec.nodeSelector: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric \
             characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
             'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: \
             must have at least one node selector term",
            "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must \
             be in the range 1-100",
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
            "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"x\": supported values: \
             \"DoNotSchedule\", \"ScheduleAnyway\"",
            "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which \
             means \"match all values and all keys\"",
            "spec.tolerations[1].operator: Unsupported value: \"In\": supported values: \"Equal\", \"Exists\"",
            "spec.tolerations[1].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \
             \"PreferNoSchedule\", \"NoExecute\"",
        ],
    );
}

#[test]
fn dns_config_allows_at_most_three_nameservers() {
    created(
        &pod(&json!({
            "dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1", "x", "1.1.1.1", "1.1.1.1"]},
            "hostAliases": [{"ip": "1.2.3", "hostnames": ["a"]}],
        })),
        &[
            "spec.dnsConfig.nameservers: Invalid value: [\"1.1.1.1\",\"x\",\"1.1.1.1\",\"1.1.1.1\"]: must not have more \
             than 3 nameservers",
            "spec.dnsConfig.nameservers[1]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or \
             2001:db8::ffff)",
            "spec.hostAliases[0].ip: Invalid value: \"1.2.3\": must be a valid IP address, (e.g. 10.9.8.7 or \
             2001:db8::ffff)",
        ],
    );
}

#[test]
fn only_sidecar_init_containers_can_have_probes() {
    let mut init =
        json!({"name": "i", "image": "x", "resources": {}, "livenessProbe": {"exec": {"command": ["x"]}}});
    let detail = "may not be set for init containers without restartPolicy=Always";
    let expected = format!("spec.initContainers[0].livenessProbe: Forbidden: {detail}");
    created(&pod(&json!({"initContainers": [init]})), &[&expected]);
    init["restartPolicy"] = json!("Always");
    created(&pod(&json!({"initContainers": [init]})), &[]);
}

#[test]
fn windows_pods_cannot_have_linux_fields() {
    let mut windows = pod(&json!({"os": {"name": "windows"}, "hostPID": true}));
    windows["spec"]["securityContext"] = json!({"fsGroup": 1});
    created(
        &windows,
        &[
            "spec.hostPID: Forbidden: cannot be set for a windows pod",
            "spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod",
        ],
    );
    let unknown = "spec.os: Unsupported value: \"plan9\": supported values: \"linux\", \"windows\"";
    created(&pod(&json!({"os": {"name": "plan9"}})), &[unknown]);
}

#[test]
fn pod_level_resources_must_cover_the_containers() {
    let mut changed = container(&json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}}));
    changed["spec"]["resources"] = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "3", "x.y/z": "1"}});
    created(
        &changed,
        &[
            "spec.resources.limits[x.y/z]: Unsupported value: \"x.y/z\": supported values: \"cpu\", \"hugepages-\", \
             \"memory\"",
            "spec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate container \
             requests of 2",
            "spec.resources.containers[0][cpu].limits: Invalid value: \"4\": must be less than or equal to pod limits of 3",
        ],
    );
}

#[test]
fn an_update_can_change_images_but_no_other_container_fields() {
    updated(
        &json!({"containers": [{"name": "c", "image": "other", "imagePullPolicy": "Always", "resources": {}}]}),
        &[],
    );
    let difference = "@@ -42,7 +42,7 @@\n  \"NodeSelector\": null,\n  \"ServiceAccountName\": \"\",\n  \
        \"AutomountServiceAccountToken\": null,\n- \"NodeName\": \"\",\n+ \"NodeName\": \"n\",\n  \"SecurityContext\": \
        {\n   \"HostNetwork\": false,\n   \"HostPID\": false,\n";
    updated(&json!({"nodeName": "n"}), &[&format!("spec: Forbidden: {MUTABLE}{difference}")]);
    let difference = "@@ -3,7 +3,7 @@\n  \"InitContainers\": null,\n  \"Containers\": [\n   {\n-   \"Name\": \"c\",\n+   \
        \"Name\": \"x\",\n    \"Image\": \"nginx\",\n    \"Command\": null,\n    \"Args\": null,\n";
    let renamed = json!({"containers": [{"name": "x", "image": "nginx", "resources": {}}]});
    updated(&renamed, &[&format!("spec: Forbidden: {MUTABLE}{difference}")]);
}

#[test]
fn containers_cannot_be_added_on_update() {
    let one = |name: &str| json!({"name": name, "image": "nginx", "resources": {}});
    updated(
        &json!({"containers": [one("c"), one("d")]}),
        &["spec.containers: Forbidden: pod updates may not add or remove containers"],
    );
}

#[test]
fn tolerations_can_be_added_and_a_deadline_shortened() {
    updated(&json!({"tolerations": [{"key": "a", "operator": "Exists"}], "activeDeadlineSeconds": 3}), &[]);
    let old = pod(&json!({"tolerations": [{"key": "a", "operator": "Exists"}], "activeDeadlineSeconds": 3}));
    let new = pod(&json!({"activeDeadlineSeconds": 3}));
    assert_eq!(
        messages(&update(gvk("Pod"), &new, &old)),
        ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"]
    );
    let new = pod(&json!({"tolerations": [{"key": "a", "operator": "Exists"}], "activeDeadlineSeconds": 4}));
    assert_eq!(
        messages(&update(gvk("Pod"), &new, &old)),
        ["spec.activeDeadlineSeconds: Invalid value: 4: must be less than or equal to previous value"]
    );
}

#[test]
fn scheduling_gates_can_only_be_removed_and_gated_pods_can_narrow_node_affinity() {
    let old = pod(&json!({"schedulingGates": [{"name": "a"}], "nodeSelector": {"x": "1"}}));
    let new = pod(&json!({"schedulingGates": [{"name": "a"}], "nodeSelector": {"x": "1", "y": "2"}}));
    assert_eq!(update(gvk("Pod"), &new, &old), []);
    let new = pod(&json!({"schedulingGates": [{"name": "b"}], "nodeSelector": {"y": "2"}}));
    assert_eq!(
        messages(&update(gvk("Pod"), &new, &old)),
        [
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'b'",
            "spec.nodeSelector: Invalid value: {\"y\":\"2\"}: only additions to spec.nodeSelector are allowed (no \
             mutations or deletions)",
        ]
    );
}

#[test]
fn ephemeral_containers_can_be_added_later_but_not_removed() {
    let ephemeral = json!({"name": "e", "image": "x", "resources": {}});
    let with = pod(&json!({"ephemeralContainers": [ephemeral]}));
    created(&with, &["spec.ephemeralContainers: Forbidden: cannot be set on create"]);
    let without = pod(&Value::Null);
    let check =
        |new: &Value, old: &Value| messages(&update_subresource(gvk("Pod"), "ephemeralcontainers", new, old));
    assert_eq!(check(&with, &without), [""; 0]);
    assert_eq!(
        check(&without, &with),
        ["spec.ephemeralContainers: Forbidden: existing ephemeral containers \"e\" may not be removed\n"]
    );
    let probed =
        json!({"name": "e", "image": "x", "resources": {}, "livenessProbe": {"exec": {"command": ["x"]}}});
    assert_eq!(
        check(&pod(&json!({"ephemeralContainers": [probed]})), &without),
        ["spec.ephemeralContainers[0].livenessProbe: Forbidden: cannot be set for an Ephemeral Container"]
    );
}

#[test]
fn resize_can_only_change_cpu_and_memory() {
    let with = |resources: &Value| {
        let mut pod = container(&json!({"resources": resources}));
        pod["status"] = json!({"qosClass": "Burstable"});
        pod
    };
    let old = with(&json!({"requests": {"cpu": "1", "memory": "1Gi"}}));
    let check =
        |resources: &Value| messages(&update_subresource(gvk("Pod"), "resize", &with(resources), &old));
    assert_eq!(check(&json!({"requests": {"cpu": "2", "memory": "1Gi"}})), [""; 0]);
    assert_eq!(
        check(&json!({"requests": {"cpu": "2"}})),
        ["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"]
    );
    assert_eq!(
        check(&json!({"requests": {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "1"}})),
        ["spec: Forbidden: only cpu and memory resources are mutable"]
    );
    let all = json!({"cpu": "1", "memory": "1Gi"});
    assert_eq!(
        check(&json!({"requests": all, "limits": all})),
        ["spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing"]
    );
}

#[test]
fn status_addresses_are_validated_and_the_qos_class_is_immutable() {
    let mut old = pod(&Value::Null);
    old["status"] = json!({"qosClass": "BestEffort"});
    let mut new = old.clone();
    new["status"] = json!({
        "qosClass": "Guaranteed", "podIPs": [{"ip": "bogus"}], "hostIP": "192.0.2.9",
        "hostIPs": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}],
    });
    assert_eq!(
        messages(&update_subresource(gvk("Pod"), "status", &new, &old)),
        [
            "status.qosClass: Invalid value: \"Guaranteed\": field is immutable",
            "status.podIPs[0]: Invalid value: \"bogus\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            "status.hostIPs[0].ip: Invalid value: \"192.0.2.1\": must be equal to `hostIP`",
            "status.hostIPs: Invalid value: [{\"IP\":\"192.0.2.1\"},{\"IP\":\"192.0.2.2\"}]: may specify no more than one \
             IP for each IP family",
        ]
    );
}

#[test]
fn a_terminated_container_cannot_run_again() {
    let mut old = pod(&json!({"restartPolicy": "OnFailure"}));
    old["status"] = json!({"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]});
    let mut new = old.clone();
    new["status"] = json!({"containerStatuses": [{"name": "c", "state": {"running": {}}}]});
    let check = |old: &Value| messages(&update_subresource(gvk("Pod"), "status", &new, old));
    let expected =
        "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state";
    assert_eq!(check(&old), [expected]);
    old["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] = json!(1);
    assert_eq!(check(&old), [""; 0]);
}

#[test]
fn deprecated_annotations_are_validated() {
    let mut object = pod(&Value::Null);
    object["metadata"]["annotations"] = json!({
        "container.apparmor.security.beta.kubernetes.io/x": "bogus",
        "controller.kubernetes.io/pod-deletion-cost": "+1",
        "kubernetes.io/config.mirror": "m",
        "seccomp.security.alpha.kubernetes.io/pod": "bogus",
    });
    created(
        &object,
        &[
            "metadata.annotations[kubernetes.io/config.mirror]: Invalid value: \"m\": must set spec.nodeName if mirror pod \
             annotation is set",
            "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: \"+1\": must be a 32bit \
             integer",
            "metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: \"bogus\": must be a valid \
             seccomp profile",
            "metadata.annotations[container.apparmor.security.beta.kubernetes.io/x]: Invalid value: \"x\": container not \
             found",
            "metadata.annotations[container.apparmor.security.beta.kubernetes.io/x]: Invalid value: \"bogus\": invalid \
             AppArmor profile name: \"bogus\"",
        ],
    );
}

#[test]
fn the_claim_template_of_an_ephemeral_volume_is_validated() {
    let volume = json!({"name": "e", "ephemeral": {"volumeClaimTemplate": {
        "metadata": {"name": "x"}, "spec": {"accessModes": ["Sometimes"], "resources": {"requests": {"storage": "0"}}},
    }}});
    let path = "spec.volumes[0].ephemeral.volumeClaimTemplate";
    created(
        &pod(&json!({"volumes": [volume]})),
        &[
            &format!("{path}.metadata.name: Forbidden: cannot be set"),
            &format!(
                "{path}.spec.accessModes: Unsupported value: \"Sometimes\": supported values: \"ReadOnlyMany\", \
                 \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\""
            ),
            &format!("{path}.spec.resources[storage]: Invalid value: \"0\": must be greater than zero"),
        ],
    );
}
