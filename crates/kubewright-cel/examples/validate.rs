//! Validates a custom resource against the CEL rules of its schema and prints the API server's errors.
//!
//! ```console
//! cargo run -p kubewright-cel --example validate
//! ```

use kubewright_cel::rules::{Rule, RuleSet, Schema};
use serde_json::json;

fn main() {
    let spec = Schema::object([
        ("minReplicas", Schema::of_type("integer")),
        ("maxReplicas", Schema::of_type("integer")),
        ("image", Schema::of_type("string")),
    ])
    .with_rule(Rule {
        message_expression:
            "'minReplicas %d is larger than maxReplicas %d'.format([self.minReplicas, self.maxReplicas])"
                .to_owned(),
        ..Rule::new("self.minReplicas <= self.maxReplicas")
    })
    .with_rule(Rule {
        message: "image is immutable".to_owned(),
        field_path: ".image".to_owned(),
        ..Rule::new("self.image == oldSelf.image")
    });
    let rules = RuleSet::compile(Schema::object([("spec", spec)]));
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
