//! Tests of importing CRDs.

use kubewright_apiextensions::custom::{self, CrdValidation};
use serde_json::{Value, json};

use super::*;

const ODD: &str = include_str!("../../../testdata/crds/odd.yaml");
const CRON_JOB: &str = include_str!("../../../testdata/crds/cronjob.yaml");
const MARKDOWN_VIEW: &str = include_str!("../../../testdata/crds/markdown_view.yaml");

fn chosen(text: &str, kind: &str) -> Chosen {
    let wanted = Wanted { kind: Some(kind.to_owned()), ..Wanted::default() };
    choose(&crds(text).unwrap(), &wanted).unwrap().remove(0)
}

/// The relevant parts of a schema: fields, types, required fields and enums.
fn outline(schema: &Value) -> Value {
    let mut made = json!({});
    for key in ["type", "enum", "required", "nullable", "x-kubernetes-preserve-unknown-fields"] {
        if let Some(value) = schema.get(key) {
            made[key] = value.clone();
        }
    }
    if let Some(Value::Array(required)) = made.get_mut("required") {
        required.sort_by_key(|name| name.as_str().unwrap_or_default().to_owned());
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(key) {
            made[key] = outline(inner);
        }
    }
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if !["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            made["properties"][name] = outline(field);
        }
    }
    made
}

fn schema_of(definition: &Value) -> &Value {
    &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

#[test]
fn the_regenerated_crd_has_the_same_fields_types_and_enums() {
    for (text, kind) in
        [(ODD, "Oddity"), (ODD, "Root"), (CRON_JOB, "CronJob"), (MARKDOWN_VIEW, "MarkdownView")]
    {
        let given = chosen(text, kind).definition;
        let made = generate(&given, true);
        assert_eq!(made.lost, Vec::<String>::new(), "{kind}");
        assert_eq!(outline(schema_of(&made.definition)), outline(schema_of(&given)), "{kind}");
        for what in ["scope", "group"] {
            assert_eq!(made.definition["spec"][what], given["spec"][what], "{kind}: {what}");
        }
    }
}

/// Applies defaulting, pruning and validation. Returns the object and the number of errors.
fn stored(definition: &Value, mut object: Value) -> (Value, usize) {
    let compiled = CrdValidation::compile(definition).unwrap();
    let (_, version) = compiled.versions.first_key_value().unwrap();
    custom::prune(&version.schema, &mut object);
    custom::apply_defaults(&version.schema, &mut object);
    let wrong = custom::validate(&version.schema, &object).len();
    (object, wrong)
}

#[test]
fn the_regenerated_crd_accepts_and_stores_the_same_objects() {
    let given = chosen(ODD, "Oddity").definition;
    let made = generate(&given, true).definition;
    let good = json!({
        "apiVersion": "lab.example.com/v1",
        "kind": "Oddity",
        "metadata": { "name": "one" },
        "spec": {
            "type": "a", "fn": 3, "strategy": "Allow", "nothing": null, "kebab-case": "a\"1", "$ref": "x",
            "clusterIPs": ["10.0.0.1"], "4th": 8, "a.b/c": "off", "port": "http", "size": "1Gi", "UPPER": 0.75,
            "anything": [1, { "a": null }], "anyObject": { "a": 1 }, "empty": { "gone": 1 }, "unknown": true,
            "embedded": { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" }, "spec": { "a": 1 } },
            "known": { "other": "x", "kept": true }, "nested": { "a": [{ "name": "b", "type": "c", "d": 1 }] },
            "steps": [{ "name": "a", "kind": "one" }], "selector": { "matchLabels": { "a": "b" } },
        },
    });
    assert_eq!(stored(&made, good.clone()), stored(&given, good.clone()));
    assert_eq!(stored(&given, good.clone()).1, 0);
    for (field, wrong) in [
        ("type", json!("")),
        ("strategy", json!("Never")),
        ("policy", json!("C")),
        ("level", json!(4)),
        ("UPPER", json!(0.5)),
        ("clusterIPs", json!(["not an address"])),
        ("labels", json!({ "a": "" })),
        ("nested", json!({ "a": [{}] })),
        ("kebab-case", json!("A")),
        ("snake_case", json!("second")),
        ("steps", json!([])),
        ("port", json!(true)),
        ("maybe", json!(1)),
    ] {
        let mut object = good.clone();
        object["spec"][field] = wrong;
        let (ours, theirs) = (stored(&made, object.clone()), stored(&given, object));
        assert!(theirs.1 > 0, "{field} should be refused");
        assert_eq!(ours, theirs, "{field}");
    }
}

#[test]
fn the_storage_version_is_selected_by_default() {
    assert_eq!(chosen(ODD, "Oddity").version, "v1");
    let other = Wanted { version: Some("v1alpha1".into()), kind: Some("Oddity".into()), ..Wanted::default() };
    let chosen = choose(&crds(ODD).unwrap(), &other).unwrap().remove(0);
    assert_eq!(chosen.version, "v1alpha1");
    let made = generate(&chosen.definition, false);
    assert!(made.code.contains("deprecated = \"use v1\"") && made.code.contains("storage = false"));
    assert_eq!(made.lost, ["x-kubernetes-preserve-unknown-fields of the root"]);
}

#[test]
fn lists_and_files_with_other_objects_are_read() {
    let list = "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap}, \
                {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}]}";
    assert_eq!(crds(list).unwrap().len(), 1);
    assert_eq!(crds(ODD).unwrap().len(), 2);
    let all = choose(&crds(ODD).unwrap(), &Wanted::default()).unwrap();
    assert_eq!(all.iter().map(|chosen| chosen.kind.as_str()).collect::<Vec<_>>(), ["Oddity", "Root"]);
}

#[test]
fn unsupported_features_are_reported() {
    let text = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things, listKind: Things}
  scope: Namespaced
  conversion: {strategy: Webhook}
  versions:
  - name: v1
    storage: true
    served: true
    schema:
      openAPIV3Schema:
        type: object
        description: "It is so:\n\n\tcode"
        properties:
          metadata: {type: object, properties: {name: {type: string, maxLength: 10}}}
          spec:
            type: object
            required: [ghost]
            anyOf: [{properties: {a: {minimum: 1}}}]
            properties:
              a: {type: integer}
              list: {type: array, items: {x-kubernetes-int-or-string: true, maxLength: 3}}
          status: {type: object}
"#;
    let made = generate(&chosen(text, "Thing").definition, true);
    insta::assert_snapshot!(made.lost.join("\n"), @"
    optional spec
    description of the kind (contains code)
    status without the status subresource (now a subresource)
    schema of metadata
    conversion webhook
    list kind Things
    anyOf of spec
    maxLength of spec.list[]
    undefined required field ghost of spec
    ");
}

#[test]
fn contradictory_flags_are_rejected() {
    let refused = |wanted: &Wanted| choose(&crds(ODD).unwrap(), wanted).unwrap_err().to_string();
    let oddity = || Wanted { kind: Some("Oddity".into()), ..Wanted::default() };
    let told = [
        refused(&Wanted { group: Some("other".into()), ..Wanted::default() }),
        refused(&Wanted { kind: Some("Order".into()), ..Wanted::default() }),
        refused(&Wanted { version: Some("v3".into()), ..oddity() }),
        refused(&Wanted { plural: Some("odds".into()), ..oddity() }),
        refused(&Wanted { namespaced: Some(true), ..oddity() }),
    ];
    insta::assert_snapshot!(told.join("\n"), @"
    the file does not define other
    the file does not define Order
    lab.example.com, Oddity has no version v3
    the plural of lab.example.com, Oddity is oddities, not odds
    lab.example.com, Oddity is cluster-scoped
    ");
    let group = Wanted { group: Some("lab".into()), ..oddity() };
    assert_eq!(choose(&crds(ODD).unwrap(), &group).unwrap().len(), 1);
}

#[test]
fn item_types_have_singular_names_and_equal_types_are_shared() {
    let text = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: orders.example.com}
spec:
  group: example.com
  names: {kind: Order, plural: orders}
  scope: Namespaced
  versions:
  - name: v1
    storage: true
    served: true
    schema:
      openAPIV3Schema:
        type: object
        required: [metadata, spec]
        properties:
          spec:
            type: object
            properties:
              billingAddress: &address
                type: object
                description: Where the invoice goes.
                properties: {city: {type: string}, zip: {type: string}}
              shippingAddress:
                <<: *address
                description: Where the goods go.
              entries:
                type: array
                items: {type: object, description: One line., properties: {name: {type: string}}}
              priority: &level {type: string, enum: [Low, High]}
              boxes:
                type: array
                items: {type: object, properties: {priority: *level, width: {type: integer}}}
";
    let given = chosen(text, "Order").definition;
    let made = generate(&given, true);
    assert_eq!(made.lost, Vec::<String>::new());
    let types: Vec<&str> = made
        .code
        .lines()
        .filter(|line| {
            line.starts_with("pub struct") || line.starts_with("pub enum") || line.contains(": Option<")
        })
        .map(|line| line.trim().trim_end_matches(" {"))
        .collect();
    insta::assert_snapshot!(types.join("\n"), @"
    pub struct OrderSpec
    pub billing_address: Option<OrderAddress>,
    pub boxes: Option<Vec<OrderBox>>,
    pub entries: Option<Vec<OrderEntry>>,
    pub priority: Option<OrderPriority>,
    pub shipping_address: Option<OrderAddress>,
    pub struct OrderAddress
    pub city: Option<String>,
    pub zip: Option<String>,
    pub struct OrderBox
    pub priority: Option<OrderPriority>,
    pub width: Option<i64>,
    pub enum OrderPriority
    pub struct OrderEntry
    pub name: Option<String>,
    ");
    assert_eq!(schema_of(&made.definition)["required"], json!(["metadata", "spec"]));
    let attribute = r#"attr = "cfg_attr(true, schemars(extend(\"required\" = [\"metadata\", \"spec\"])))""#;
    assert!(made.code.contains(attribute), "{}", made.code);
    assert_eq!(outline(schema_of(&made.definition)), outline(schema_of(&given)));
}
