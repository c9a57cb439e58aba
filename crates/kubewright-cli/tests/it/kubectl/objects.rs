//! Shared test objects.

/// A ConfigMap and a Deployment, as two documents.
pub(crate) const SETTINGS_AND_WEB: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {colour: blue, size: large}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1.27
        ports: [{containerPort: 80, name: http}]
";

pub(crate) const SETTINGS: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {colour: blue, size: large}
";

/// Three pods: two pending, one running on `worker`.
pub(crate) const PODS: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {app: web, tier: front}}
spec: {containers: [{name: web, image: nginx:1.27}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b, labels: {app: web, tier: back}}
spec: {containers: [{name: web, image: nginx:1.28}, {name: log, image: busybox}]}
---
apiVersion: v1
kind: Pod
metadata: {name: c, labels: {app: db}}
spec: {nodeName: worker, containers: [{name: db, image: postgres:17}]}
";

pub(crate) const NODE: &str = "\
apiVersion: v1
kind: Node
metadata: {name: worker, labels: {kubernetes.io/hostname: worker, node-role.kubernetes.io/worker: \"\"}}
";

/// The status of an available Deployment.
pub(crate) const ROLLED_OUT: &str = r#"{"status":{"observedGeneration":1,"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2,"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable","message":"Deployment has minimum availability."}]}}"#;

/// A ConfigMap that is owned by another object.
pub(crate) fn owned(name: &str, api_version: &str, kind: &str, owner: &str, uid: &str) -> String {
    format!(
        "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  ownerReferences:
  - {{apiVersion: {api_version}, kind: {kind}, name: {owner}, uid: {uid}, controller: true, blockOwnerDeletion: true}}
"
    )
}
