//! Invalid types and their CRDs.

use serde_json::{Value, json};

use super::{check, guestbook, of_crd, rendered};

fn findings(spec: &Value) -> String {
    let (inventory, crds) = guestbook(spec);
    rendered(&inventory, &crds)
}

/// Findings about a valid CRD with a change.
fn changed(change: impl FnOnce(&mut Value)) -> String {
    let (_, mut crds) = guestbook(&json!({ "size": { "type": "integer" } }));
    let mut definition = crds.remove(0).1;
    change(&mut definition);
    let (inventory, crds) = of_crd(definition);
    rendered(&inventory, &crds)
}

#[test]
fn a_valid_type_has_no_findings() {
    assert_eq!(
        findings(&json!({
            "size": { "type": "integer", "format": "int32", "default": 1, "minimum": 0 },
            "level": { "type": "string", "enum": ["low", "high"] },
            "port": { "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] },
        })),
        ""
    );
}

#[test]
fn a_non_structural_schema_is_reported_with_its_field() {
    insta::assert_snapshot!(
        findings(&json!({
            "any": {},
            "list": { "type": "array" },
            "choice": { "type": "object", "oneOf": [{ "type": "string" }] },
        })),
        @"
        error[KW201] src/lib.rs:12 guestbook::v1::Guestbook spec.any: type: Required value: must not be empty for specified object fields
          help: every field needs exactly one type outside of `anyOf`, `oneOf` and `allOf`; otherwise use an int-or-string, an untyped value that preserves unknown fields, or a struct with optional fields
        error[KW201] src/lib.rs:12 guestbook::v1::Guestbook spec.choice: oneOf[0].type: Forbidden: must be empty to be structural
          help: every field needs exactly one type outside of `anyOf`, `oneOf` and `allOf`; otherwise use an int-or-string, an untyped value that preserves unknown fields, or a struct with optional fields
        error[KW201] src/lib.rs:12 guestbook::v1::Guestbook spec.list[]: Required value: must be specified
          help: every field needs exactly one type outside of `anyOf`, `oneOf` and `allOf`; otherwise use an int-or-string, an untyped value that preserves unknown fields, or a struct with optional fields
        "
    );
}

#[test]
fn rules_are_compiled() {
    insta::assert_snapshot!(
        findings(&json!({
            "size": { "type": "integer", "x-kubernetes-validations": [{ "rule": "self > '1'" }] },
            "name": { "type": "string", "x-kubernetes-validations": [{ "rule": "self.size()" }] },
        })),
        @"
        error[KW202] src/lib.rs:12 guestbook::v1::Guestbook spec.name: x-kubernetes-validations[0].rule: cel expression must evaluate to a bool
          help: write CEL that compiles against the schema; `self` is the value with the rule, and `has()` checks optional fields
        error[KW202] src/lib.rs:12 guestbook::v1::Guestbook spec.size: x-kubernetes-validations[0].rule: compilation failed: ERROR: <input>:1:6: found no matching overload for '_>_' applied to '(int, string)'
           | self > '1'
           | .....^
          help: write CEL that compiles against the schema; `self` is the value with the rule, and `has()` checks optional fields
        "
    );
}

#[test]
fn expensive_rules_are_reported() {
    let rule = json!([{ "rule": "self.all(a, self.all(b, a == b || a.contains(b)))" }]);
    insta::assert_snapshot!(
        findings(&json!({
            "names": { "type": "array", "items": { "type": "string" }, "x-kubernetes-validations": rule },
        })),
        @"
        error[KW203] src/lib.rs:12 guestbook::v1::Guestbook spec.names: x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
          help: limit the lists, maps and strings that the rule evaluates with a maximum length or number of items, or simplify the rule
        "
    );
}

#[test]
fn defaults_are_validated() {
    insta::assert_snapshot!(
        findings(&json!({
            "level": { "type": "string", "enum": ["low", "high"], "default": "medium" },
            "size": { "type": "integer", "default": "1" },
            "nested": { "type": "object", "properties": { "a": { "type": "integer" } }, "default": { "a": 1, "b": 2 } },
        })),
        @r#"
        error[KW204] src/lib.rs:12 guestbook::v1::Guestbook spec.level: default: Unsupported value: "medium": supported values: "low", "high"
          help: use a default that is valid for the schema
        error[KW204] src/lib.rs:12 guestbook::v1::Guestbook spec.nested: default: Invalid value: {"a":1,"b":2}: must not have unknown fields
          help: use a default that is valid for the schema
        error[KW204] src/lib.rs:12 guestbook::v1::Guestbook spec.size: default: Invalid value: "string":  in body must be of type integer: "string"
          help: use a default that is valid for the schema
        "#
    );
}

#[test]
fn keys_of_lists_are_required() {
    insta::assert_snapshot!(
        findings(&json!({
            "ports": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": { "type": "object", "properties": { "name": { "type": "string" } } },
            },
            "tags": { "type": "array", "x-kubernetes-list-type": "sets", "items": { "type": "string" } },
        })),
        @r#"
        error[KW205] src/lib.rs:12 guestbook::v1::Guestbook spec.ports[].name: default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property
          help: list map keys must be scalar fields that are required or have a default; items of a set must be scalar or atomic
        error[KW205] src/lib.rs:12 guestbook::v1::Guestbook spec.tags: x-kubernetes-list-type: Unsupported value: "sets": supported values: "atomic", "set", "map"
          help: list map keys must be scalar fields that are required or have a default; items of a set must be scalar or atomic
        "#
    );
}

#[test]
fn inconsistent_enums_are_reported() {
    insta::assert_snapshot!(
        findings(&json!({
            "level": { "type": "string", "enum": ["low", 1] },
            "maybe": { "type": "string", "enum": ["low"], "nullable": true },
            "never": { "type": "string", "enum": [] },
        })),
        @r#"
        warning[KW206] src/lib.rs:12 guestbook::v1::Guestbook spec.level: the `enum` value 1 is not of type string
          help: use values of the field's type
        warning[KW206] src/lib.rs:12 guestbook::v1::Guestbook spec.maybe: the field is nullable, but `enum` does not contain null, so null is rejected
          help: remove `nullable` and skip the field if it is `None` (`skip_serializing_if = "Option::is_none"`)
        warning[KW206] src/lib.rs:12 guestbook::v1::Guestbook spec.never: `enum` has no values, so nothing is valid
          help: add values, or remove it
        "#
    );
}

#[test]
fn dropped_keywords_and_formats_are_reported() {
    insta::assert_snapshot!(
        findings(&json!({
            "fixed": { "type": "string", "const": "x" },
            "list": { "type": "array", "items": { "type": "object", "properties": { "p": { "type": "string", "if": {} } } } },
            "size": { "type": "integer", "format": "uint32" },
        })),
        @"
        error[KW214] src/lib.rs:12 guestbook::v1::Guestbook spec.fixed: the API server does not support `const` and drops it, so it validates nothing
          help: use an `enum` with only that value
        error[KW214] src/lib.rs:12 guestbook::v1::Guestbook spec.list[].p: the API server does not support `if` and drops it, so it validates nothing
          help: use a CEL validation rule
        warning[KW213] src/lib.rs:12 guestbook::v1::Guestbook spec.size: the API server does not support the format `uint32`: it warns and validates nothing
          help: use `int32` or `int64`, with a minimum and a maximum
        "
    );
}

#[test]
fn patterns_are_compiled() {
    insta::assert_snapshot!(findings(&json!({ "name": { "type": "string", "pattern": "(?<!a)b" } })), @r#"
    error[KW209] src/lib.rs:12 guestbook::v1::Guestbook spec.name: pattern: Invalid value: "(?<!a)b": must be a valid regular expression, but isn't: error parsing regexp: invalid named capture: `(?<!a)b`
      help: use Go's RE2 syntax, which has no look-around and no back-references
    "#);
}

#[test]
fn paths_of_columns_and_scale_must_refer_to_fields() {
    let rendered = changed(|definition| {
        let version = &mut definition["spec"]["versions"][0];
        version["additionalPrinterColumns"] = json!([
            { "name": "Size", "type": "integer", "jsonPath": ".spec.sise" },
            { "name": "Kind", "type": "text", "jsonPath": "kind" },
        ]);
        version["subresources"] =
            json!({ "scale": { "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".spec.size" } });
    });
    insta::assert_snapshot!(rendered, @r#"
    warning[KW207] src/lib.rs:12 guestbook::v1::Guestbook: the column `Size` has the path `.spec.sise`, but the schema has no `sise` there: it stays empty
      help: fix `.spec.sise`; did you mean `size`?
    warning[KW211] src/lib.rs:12 guestbook::v1::Guestbook: `specReplicasPath` of the scale subresource is `.spec.replicas`, but the schema has no `replicas` there
      help: fix `.spec.replicas`; use names as in YAML, such as `readyReplicas` instead of `ready_replicas`
    error[KW207] src/lib.rs:12 guestbook::v1::Guestbook spec.additionalPrinterColumns[1].JSONPath: Invalid value: "kind": must be a simple json path starting with .
      help: use a path that starts with a dot, and the type string, integer, number, boolean or date
    error[KW207] src/lib.rs:12 guestbook::v1::Guestbook spec.additionalPrinterColumns[1].type: Invalid value: "text": must be one of boolean,date,integer,number,string
      help: use a path that starts with a dot, and the type string, integer, number, boolean or date
    error[KW211] src/lib.rs:12 guestbook::v1::Guestbook spec.subresources.scale.statusReplicasPath: Invalid value: ".spec.size": should be a json path under .status
      help: use the path of an existing field, such as `.spec.replicas`
    "#);
}

#[test]
fn names_and_versions_are_validated() {
    let rendered = changed(|definition| {
        definition["spec"]["group"] = "example".into();
        definition["spec"]["names"]["kind"] = "Guest book".into();
        definition["spec"]["versions"][0]["storage"] = false.into();
        definition["spec"]["versions"][0]["name"] = "1".into();
    });
    insta::assert_snapshot!(rendered, @r#"
    error[KW210] src/lib.rs:12 guestbook::v1::Guestbook metadata.name: Invalid value: "guestbooks.example.com": must be spec.names.plural+"."+spec.group
      help: use Kubernetes' naming: a group with a dot, lower-case plurals, kinds in CamelCase
    error[KW210] src/lib.rs:12 guestbook::v1::Guestbook spec.group: Invalid value: "example": should be a domain with at least one dot
      help: use Kubernetes' naming: a group with a dot, lower-case plurals, kinds in CamelCase
    error[KW210] src/lib.rs:12 guestbook::v1::Guestbook spec.names.kind: Invalid value: "Guest book": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
      help: use Kubernetes' naming: a group with a dot, lower-case plurals, kinds in CamelCase
    error[KW212] src/lib.rs:12 guestbook::v1::Guestbook spec.versions: must have exactly one version marked as storage version
      help: make exactly one version the storage version, and give each a unique name such as `v1beta1`
    error[KW212] src/lib.rs:12 guestbook::v1::Guestbook spec.versions[0].name: Invalid value: "1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
      help: make exactly one version the storage version, and give each a unique name such as `v1beta1`
    "#);
}

#[test]
fn other_errors_are_reported_with_a_general_code() {
    let rendered = changed(|definition| {
        definition["spec"]["conversion"] = json!({ "strategy": "Webhook" });
        definition["spec"]["colour"] = "red".into();
    });
    insta::assert_snapshot!(rendered, @"
    error[KW200] src/lib.rs:12 guestbook::v1::Guestbook spec.colour: unknown field, which the API server drops
      help: change the type so that the API server accepts its CRD
    error[KW200] src/lib.rs:12 guestbook::v1::Guestbook spec.conversion.conversionReviewVersions: Required value
      help: change the type so that the API server accepts its CRD
    error[KW200] src/lib.rs:12 guestbook::v1::Guestbook spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook
      help: change the type so that the API server accepts its CRD
    ");
}

#[test]
fn a_crd_too_large_for_kubectl_apply_is_reported() {
    let (inventory, mut crds) =
        guestbook(&json!({ "size": { "type": "integer", "description": "x".repeat(262_144) } }));
    let findings = check(&inventory, &crds);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].to_string().contains("262144"), "{}", findings[0]);
    crds[0].1["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({ "type": "object", "description": "x".repeat(261_000) });
    assert_eq!(check(&inventory, &crds), []);
}

#[test]
fn an_error_in_a_version_is_reported_for_its_type() {
    let (mut inventory, mut crds) = guestbook(&json!({ "size": { "type": "integer" } }));
    let mut old = crds[0].1.clone();
    old["spec"]["versions"][0]["name"] = "v1alpha1".into();
    old["spec"]["versions"][0]["storage"] = false.into();
    old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({});
    let version = old["spec"]["versions"][0].clone();
    crds[0].1["spec"]["versions"].as_array_mut().unwrap().push(version);
    inventory.declared.push(crate::declare::Declared::Kind(crate::declare::Kind {
        item: super::item("guestbook::v1alpha1::Guestbook", 99),
        definition: old,
        findings: Vec::new(),
    }));
    insta::assert_snapshot!(rendered(&inventory, &crds), @"
    error[KW201] src/lib.rs:99 guestbook::v1alpha1::Guestbook spec: type: Required value: must not be empty for specified object fields
      help: every field needs exactly one type outside of `anyOf`, `oneOf` and `allOf`; otherwise use an int-or-string, an untyped value that preserves unknown fields, or a struct with optional fields
    ");
}

/// A Guestbook with v1, which is served, and the storage version v2.
fn two_versions(v1: &Value, v2: &Value, change: impl FnOnce(&mut Value)) -> String {
    changed(|definition| {
        let mut old = definition["spec"]["versions"][0].clone();
        let mut new = old.clone();
        old["storage"] = false.into();
        new["name"] = "v2".into();
        for (version, spec) in [(&mut old, v1), (&mut new, v2)] {
            version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = spec.clone();
        }
        definition["spec"]["versions"] = json!([old, new]);
        change(definition);
    })
}

#[test]
fn fields_missing_from_the_storage_version_are_an_error() {
    let text = json!({ "type": "string" });
    let entry = |properties: Value| json!({ "type": "array", "items": { "type": "object", "properties": properties } });
    let v1 = json!({
        "size": text, "title": text,
        "entries": entry(json!({ "by": text, "at": text })),
        "labels": { "type": "object", "additionalProperties": text },
    });
    let v2 = json!({ "title": text, "foo": text, "entries": entry(json!({ "by": text })) });
    insta::assert_snapshot!(two_versions(&v1, &v2, |_| {}), @"
    error[KW215] src/lib.rs:12 guestbook::v1::Guestbook: the storage version Guestbook v2 lacks `spec.entries[].at`, `spec.labels`, `spec.size` of the served version v1: without conversion, these fields of v1 objects are dropped on write
      help: add the fields to v2; or make v1 the storage version, with `storage = false` in the `#[kube(...)]` of v2; or stop serving v1 when no client needs it
    ");
    assert_eq!(two_versions(&v2, &v2, |_| {}), "");
    // A version that is not served loses no fields, and a conversion webhook keeps them.
    assert_eq!(two_versions(&v1, &v2, |it| it["spec"]["versions"][0]["served"] = false.into()), "");
    let webhook = |it: &mut Value| {
        it["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"], "clientConfig": { "url": "https://example.com/convert" },
        }});
    };
    assert_eq!(two_versions(&v1, &v2, webhook), "");
}

#[test]
fn a_storage_version_that_preserves_unknown_fields_loses_none() {
    let v1 = json!({ "options": { "type": "object", "properties": { "a": { "type": "string" } } } });
    let open = json!({ "options": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    assert_eq!(two_versions(&v1, &open, |_| {}), "");
    let map = json!({ "options": { "type": "object", "additionalProperties": { "type": "string" } } });
    assert_eq!(two_versions(&v1, &map, |_| {}), "");
}

#[test]
fn fields_below_a_field_that_a_preserving_schema_specifies_are_lost() {
    let open = "x-kubernetes-preserve-unknown-fields";
    let object = |names: &[&str]| {
        let properties = names.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" })));
        json!({ "type": "object", "properties": Value::Object(properties.collect()) })
    };
    let with = |mut schema: Value| {
        schema[open] = true.into();
        schema
    };
    let two = |served: Value, stored: Value| {
        let found = two_versions(&json!({ "x": served }), &json!({ "x": stored }), |_| {});
        let lost = found.split_once(" lacks ").and_then(|(_, rest)| rest.split_once(" of the served"));
        assert_eq!(lost.is_none(), !found.contains("KW215"), "{found}");
        lost.map(|(lost, _)| lost.to_owned()).unwrap_or_default()
    };
    let below = |name: &str, schema: Value| {
        let mut outer = object(&[]);
        outer["properties"][name] = schema;
        outer
    };
    let list = |item: Value| json!({ "type": "array", "items": item });
    // Unknown names are kept. The content of specified names is not.
    assert_eq!(two(below("a", object(&["b", "c"])), with(below("a", object(&["b"])))), "`spec.x.a.c`");
    assert_eq!(two(below("other", object(&["b"])), with(below("a", object(&["b"])))), "");
    // The items of a preserving list preserve unknown fields, too, but not below the fields that they specify.
    assert_eq!(two(list(object(&["b", "c"])), with(list(object(&["b"])))), "");
    assert_eq!(two(list(list(object(&["b", "c"]))), with(list(list(object(&["b"]))))), "");
    let nested = |names| list(below("a", object(names)));
    assert_eq!(two(nested(&["b", "c"]), with(nested(&["b"]))), "`spec.x[].a.c`");
    // A map of anything keeps all names, but its values have no schema and lose all fields.
    let map = |values: Value| json!({ "type": "object", "additionalProperties": values });
    assert_eq!(two(map(json!({ "type": "string" })), map(true.into())), "");
    assert_eq!(two(map(object(&["b"])), map(true.into())), "`spec.x[*].b`");
    // A storage version that specifies all fields drops the unknown fields of an open one.
    assert_eq!(two(with(object(&["b"])), object(&["b"])), "`spec.x.*`");
}
