//! Mistakes in types, as their definitions show them.

use serde_json::{Value, json};

use super::{check, guestbook, of_definition, told};

fn findings(spec: &Value) -> String {
    let (declarations, definitions) = guestbook(spec);
    told(&declarations, &definitions)
}

/// The definition of a good kind, with something changed.
fn changed(change: impl FnOnce(&mut Value)) -> String {
    let (_, mut definitions) = guestbook(&json!({ "size": { "type": "integer" } }));
    let mut definition = definitions.remove(0).1;
    change(&mut definition);
    let (declarations, definitions) = of_definition(definition);
    told(&declarations, &definitions)
}

#[test]
fn a_good_type_is_good() {
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
fn a_schema_that_is_not_structural_is_told_with_its_field() {
    insta::assert_snapshot!(
        findings(&json!({
            "any": {},
            "list": { "type": "array" },
            "choice": { "type": "object", "oneOf": [{ "type": "string" }] },
        })),
        @r"
        error[KW201] src/lib.rs:12 guestbook::v1::Guestbook spec.any: type: Required value: must not be empty for specified object fields
          help: every field needs one type that is known outside `anyOf` and its like; for what has none, use an int-or-string, an untyped value that preserves unknown fields, or a struct with optional fields
        error[KW201] src/lib.rs:12 guestbook::v1::Guestbook spec.choice: oneOf[0].type: Forbidden: must be empty to be structural
          help: every field needs one type that is known outside `anyOf` and its like; for what has none, use an int-or-string, an untyped value that preserves unknown fields, or a struct with optional fields
        error[KW201] src/lib.rs:12 guestbook::v1::Guestbook spec.list[]: Required value: must be specified
          help: every field needs one type that is known outside `anyOf` and its like; for what has none, use an int-or-string, an untyped value that preserves unknown fields, or a struct with optional fields
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
        @r"
        error[KW202] src/lib.rs:12 guestbook::v1::Guestbook spec.name: x-kubernetes-validations[0].rule: cel expression must evaluate to a bool
          help: write CEL that compiles against the schema; `self` is the value that the rule stands at, and `has()` asks for optional fields
        error[KW202] src/lib.rs:12 guestbook::v1::Guestbook spec.size: x-kubernetes-validations[0].rule: compilation failed: ERROR: <input>:1:6: found no matching overload for '_>_' applied to '(int, string)'
           | self > '1'
           | .....^
          help: write CEL that compiles against the schema; `self` is the value that the rule stands at, and `has()` asks for optional fields
        "
    );
}

#[test]
fn rules_that_cost_too_much_are_told() {
    let rule = json!([{ "rule": "self.all(a, self.all(b, a == b || a.contains(b)))" }]);
    insta::assert_snapshot!(
        findings(&json!({
            "names": { "type": "array", "items": { "type": "string" }, "x-kubernetes-validations": rule },
        })),
        @r"
        error[KW203] src/lib.rs:12 guestbook::v1::Guestbook spec.names: x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
          help: bound what the rule goes through, with a length or a number of items on the lists, maps and strings above it, or write a rule that does less
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
          help: write a default that the schema itself accepts
        error[KW204] src/lib.rs:12 guestbook::v1::Guestbook spec.nested: default: Invalid value: {"a":1,"b":2}: must not have unknown fields
          help: write a default that the schema itself accepts
        error[KW204] src/lib.rs:12 guestbook::v1::Guestbook spec.size: default: Invalid value: "string":  in body must be of type integer: "string"
          help: write a default that the schema itself accepts
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
          help: let the keys of the list be fields of its items that are required or have a default, and no more than scalars; items of a set are scalars or atomic
        error[KW205] src/lib.rs:12 guestbook::v1::Guestbook spec.tags: x-kubernetes-list-type: Unsupported value: "sets": supported values: "atomic", "set", "map"
          help: let the keys of the list be fields of its items that are required or have a default, and no more than scalars; items of a set are scalars or atomic
        "#
    );
}

#[test]
fn enums_that_say_something_else_are_told() {
    insta::assert_snapshot!(
        findings(&json!({
            "level": { "type": "string", "enum": ["low", 1] },
            "maybe": { "type": "string", "enum": ["low"], "nullable": true },
            "never": { "type": "string", "enum": [] },
        })),
        @r#"
        warning[KW206] src/lib.rs:12 guestbook::v1::Guestbook spec.level: 1 is among the values of `enum`, and no string
          help: write values of the field's type
        warning[KW206] src/lib.rs:12 guestbook::v1::Guestbook spec.maybe: the field is nullable, and null is not among the values of `enum`: it is refused all the same
          help: leave out `nullable` and skip the field when it is none (`skip_serializing_if = "Option::is_none"`)
        warning[KW206] src/lib.rs:12 guestbook::v1::Guestbook spec.never: `enum` has no values: nothing is valid
          help: give it values, or leave it out
        "#
    );
}

#[test]
fn dropped_keywords_and_formats_are_told() {
    insta::assert_snapshot!(
        findings(&json!({
            "fixed": { "type": "string", "const": "x" },
            "list": { "type": "array", "items": { "type": "object", "properties": { "p": { "type": "string", "if": {} } } } },
            "size": { "type": "integer", "format": "uint32" },
        })),
        @r"
        error[KW214] src/lib.rs:12 guestbook::v1::Guestbook spec.fixed: the API server does not know `const`, and drops it: nothing is validated by it
          help: write an `enum` with that value alone
        error[KW214] src/lib.rs:12 guestbook::v1::Guestbook spec.list[].p: the API server does not know `if`, and drops it: nothing is validated by it
          help: write the same as a validation rule in CEL
        warning[KW213] src/lib.rs:12 guestbook::v1::Guestbook spec.size: the API server does not know the format `uint32`, and warns of it: nothing is validated
          help: use `int32` or `int64`, with a minimum and a maximum
        "
    );
}

#[test]
fn patterns_are_compiled() {
    insta::assert_snapshot!(findings(&json!({ "name": { "type": "string", "pattern": "(?<!a)b" } })), @r#"
    error[KW209] src/lib.rs:12 guestbook::v1::Guestbook spec.name: pattern: Invalid value: "(?<!a)b": must be a valid regular expression, but isn't: error parsing regexp: invalid named capture: `(?<!a)b`
      help: write a regular expression of Go's RE2: it has no look-around and no back-references
    "#);
}

#[test]
fn paths_of_columns_and_of_the_scale_lead_to_fields() {
    let told = changed(|definition| {
        let version = &mut definition["spec"]["versions"][0];
        version["additionalPrinterColumns"] = json!([
            { "name": "Size", "type": "integer", "jsonPath": ".spec.sise" },
            { "name": "Kind", "type": "text", "jsonPath": "kind" },
        ]);
        version["subresources"] =
            json!({ "scale": { "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".spec.size" } });
    });
    insta::assert_snapshot!(told, @r#"
    warning[KW207] src/lib.rs:12 guestbook::v1::Guestbook: the column `Size` shows `.spec.sise`, and the schema has no `sise` there: it stays empty
      help: correct `.spec.sise`; did you mean `size`?
    warning[KW211] src/lib.rs:12 guestbook::v1::Guestbook: `specReplicasPath` of the scale is `.spec.replicas`, and the schema has no `replicas` there
      help: correct `.spec.replicas`: names are as in YAML, so `readyReplicas` and not `ready_replicas`
    error[KW207] src/lib.rs:12 guestbook::v1::Guestbook spec.additionalPrinterColumns[1].JSONPath: Invalid value: "kind": must be a simple json path starting with .
      help: write a path that starts with a dot and a type of string, integer, number, boolean or date
    error[KW207] src/lib.rs:12 guestbook::v1::Guestbook spec.additionalPrinterColumns[1].type: Invalid value: "text": must be one of boolean,date,integer,number,string
      help: write a path that starts with a dot and a type of string, integer, number, boolean or date
    error[KW211] src/lib.rs:12 guestbook::v1::Guestbook spec.subresources.scale.statusReplicasPath: Invalid value: ".spec.size": should be a json path under .status
      help: write the path of a field that the schema has: `.spec.replicas`
    "#);
}

#[test]
fn names_and_versions_are_checked() {
    let told = changed(|definition| {
        definition["spec"]["group"] = "example".into();
        definition["spec"]["names"]["kind"] = "Guest book".into();
        definition["spec"]["versions"][0]["storage"] = false.into();
        definition["spec"]["versions"][0]["name"] = "1".into();
    });
    insta::assert_snapshot!(told, @r#"
    error[KW210] src/lib.rs:12 guestbook::v1::Guestbook metadata.name: Invalid value: "guestbooks.example.com": must be spec.names.plural+"."+spec.group
      help: write names as Kubernetes has them: a group with a dot, plurals in lower case, kinds in CamelCase
    error[KW210] src/lib.rs:12 guestbook::v1::Guestbook spec.group: Invalid value: "example": should be a domain with at least one dot
      help: write names as Kubernetes has them: a group with a dot, plurals in lower case, kinds in CamelCase
    error[KW210] src/lib.rs:12 guestbook::v1::Guestbook spec.names.kind: Invalid value: "Guest book": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
      help: write names as Kubernetes has them: a group with a dot, plurals in lower case, kinds in CamelCase
    error[KW212] src/lib.rs:12 guestbook::v1::Guestbook spec.versions: must have exactly one version marked as storage version
      help: let exactly one version be stored, and give each a name of its own, as `v1beta1`
    error[KW212] src/lib.rs:12 guestbook::v1::Guestbook spec.versions[0].name: Invalid value: "1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
      help: let exactly one version be stored, and give each a name of its own, as `v1beta1`
    "#);
}

#[test]
fn what_has_no_code_of_its_own_is_told_all_the_same() {
    let told = changed(|definition| {
        definition["spec"]["conversion"] = json!({ "strategy": "Webhook" });
        definition["spec"]["colour"] = "red".into();
    });
    insta::assert_snapshot!(told, @r"
    error[KW200] src/lib.rs:12 guestbook::v1::Guestbook spec.colour: the API server does not know this field, and drops it
      help: change the type so that an API server accepts its definition
    error[KW200] src/lib.rs:12 guestbook::v1::Guestbook spec.conversion.conversionReviewVersions: Required value
      help: change the type so that an API server accepts its definition
    error[KW200] src/lib.rs:12 guestbook::v1::Guestbook spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook
      help: change the type so that an API server accepts its definition
    ");
}

#[test]
fn a_definition_too_large_for_kubectl_apply_is_told() {
    let (declarations, mut definitions) =
        guestbook(&json!({ "size": { "type": "integer", "description": "x".repeat(262_144) } }));
    let findings = check(&declarations, &definitions);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].to_string().contains("262144"), "{}", findings[0]);
    definitions[0].1["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({ "type": "object", "description": "x".repeat(261_000) });
    assert_eq!(check(&declarations, &definitions), []);
}

#[test]
fn an_error_in_one_version_is_of_the_type_of_that_version() {
    let (mut declarations, mut definitions) = guestbook(&json!({ "size": { "type": "integer" } }));
    let mut old = definitions[0].1.clone();
    old["spec"]["versions"][0]["name"] = "v1alpha1".into();
    old["spec"]["versions"][0]["storage"] = false.into();
    old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({});
    let version = old["spec"]["versions"][0].clone();
    definitions[0].1["spec"]["versions"].as_array_mut().unwrap().push(version);
    declarations.declared.push(crate::declare::Declared::Kind(crate::declare::Kind {
        item: super::item("guestbook::v1alpha1::Guestbook", 99),
        definition: old,
        findings: Vec::new(),
    }));
    insta::assert_snapshot!(told(&declarations, &definitions), @r"
    error[KW201] src/lib.rs:99 guestbook::v1alpha1::Guestbook spec: type: Required value: must not be empty for specified object fields
      help: every field needs one type that is known outside `anyOf` and its like; for what has none, use an int-or-string, an untyped value that preserves unknown fields, or a struct with optional fields
    ");
}

/// A Guestbook of two versions: v1, which is not stored, and v2, which is.
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
fn fields_that_the_stored_version_lacks_are_an_error() {
    let text = json!({ "type": "string" });
    let entry = |properties: Value| json!({ "type": "array", "items": { "type": "object", "properties": properties } });
    let v1 = json!({
        "size": text, "title": text,
        "entries": entry(json!({ "by": text, "at": text })),
        "labels": { "type": "object", "additionalProperties": text },
    });
    let v2 = json!({ "title": text, "foo": text, "entries": entry(json!({ "by": text })) });
    insta::assert_snapshot!(two_versions(&v1, &v2, |_| {}), @r"
    error[KW215] src/lib.rs:12 guestbook::v1::Guestbook: Guestbook v2 is stored and lacks `spec.entries[].at`, `spec.labels`, `spec.size` of v1, which is served: without conversion these fields of v1 objects are dropped when the objects are written
      help: add the fields to v2; or store v1, with `storage = false` in the `#[kube(...)]` of v2; or stop serving v1, once no object and no client needs it
    ");
    assert_eq!(two_versions(&v2, &v2, |_| {}), "");
    // A version that is not served cannot lose fields, and a conversion webhook keeps them itself.
    assert_eq!(two_versions(&v1, &v2, |it| it["spec"]["versions"][0]["served"] = false.into()), "");
    let webhook = |it: &mut Value| {
        it["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"], "clientConfig": { "url": "https://example.com/convert" },
        }});
    };
    assert_eq!(two_versions(&v1, &v2, webhook), "");
}

#[test]
fn a_stored_version_that_keeps_unknown_fields_loses_none() {
    let v1 = json!({ "options": { "type": "object", "properties": { "a": { "type": "string" } } } });
    let open = json!({ "options": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    assert_eq!(two_versions(&v1, &open, |_| {}), "");
    let map = json!({ "options": { "type": "object", "additionalProperties": { "type": "string" } } });
    assert_eq!(two_versions(&v1, &map, |_| {}), "");
}
