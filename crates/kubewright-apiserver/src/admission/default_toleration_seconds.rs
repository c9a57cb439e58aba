//! DefaultTolerationSeconds: pods tolerate not-ready and unreachable nodes for five minutes.

use kubewright_apimachinery::object::Fields as _;
use serde_json::{Value, json};

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

pub(super) struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn admit<'a>(
        &'a self,
        _cluster: &'a Cluster,
        attributes: &'a mut Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        if attributes.is_for("", "pods") {
            add_tolerations(&mut attributes.object);
        }
        Admission::ALLOWED
    }
}

const TOLERATION_SECONDS: i64 = 300;

fn add_tolerations(pod: &mut Value) {
    let mut tolerations = pod.list_at("spec.tolerations").to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|toleration| {
            let given = toleration.str_at("key");
            let effect = toleration.str_at("effect");
            (given == key || given.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if !tolerated {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
    pod.set_at("spec.tolerations", tolerations);
}
