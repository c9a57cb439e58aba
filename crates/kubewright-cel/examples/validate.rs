//! Validates a custom resource against the CEL rules of its schema and prints the API server's errors.
//!
//! ```console
//! cargo run -p kubewright-cel --example validate
//! ```

use kubewright_cel::rules::RuleSet;
use serde_json::json;

fn main() {
    let rules = RuleSet::compile(&json!({
        "type": "object",
        "properties": {"spec": {
            "type": "object",
            "x-kubernetes-validations": [
                {"rule": "self.minReplicas <= self.maxReplicas", "messageExpression":
                    "'minReplicas %d is larger than maxReplicas %d'.format([self.minReplicas, self.maxReplicas])"},
                {"rule": "self.image == oldSelf.image", "message": "image is immutable", "fieldPath": ".image"},
            ],
            "properties": {
                "minReplicas": {"type": "integer"},
                "maxReplicas": {"type": "integer"},
                "image": {"type": "string"},
            },
        }},
    }));
    let object = |min: i64, max: i64, image: &str| {
        json!({
            "apiVersion": "example.com/v1",
            "kind": "Web",
            "metadata": {"name": "shop"},
            "spec": {"minReplicas": min, "maxReplicas": max, "image": image},
        })
    };

    let old = object(1, 3, "shop:1");
    for (step, new) in [
        ("scale up", object(2, 3, "shop:1")),
        ("swap the bounds", object(3, 1, "shop:1")),
        ("change the image", object(1, 3, "shop:2")),
    ] {
        let outcome = rules.validate(&new, Some(&old));
        if outcome.errors.is_empty() {
            println!("{step}: valid");
        }
        for error in &outcome.errors {
            println!("{step}: {error}");
        }
    }
}
