//! Invalid CRDs and their errors.

use serde_json::{Value, json};

use super::super::strategy::{complete, prepare_create, prepare_update, set_defaults};
use super::{validate_create, validate_status_update, validate_update};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;
use kubewright_cel::rules::{CompiledRule, Rules, Schema};

/// A fake compiler: `old` uses `oldSelf`, `bad` does not compile, `dear` is expensive, everything else is
/// valid.
struct Fake;

impl Rules for Fake {
    fn compile(&self, schema: Schema, _resource_root: bool) -> Vec<CompiledRule> {
        let rules = schema.rules.iter();
        rules
            .map(|rule| CompiledRule {
                error: (rule.expression == "bad").then(|| "compilation failed".to_owned()),
                max_cost: if rule.expression == "dear" { 9_000_000 } else { 1 },
                max_cardinality: 1000,
                uses_old_self: rule.expression == "old",
                message_expression: (!rule.message_expression.is_empty()).then_some(Ok(1)),
            })
            .collect()
    }

    fn evaluate(&self, schema: Schema, value: &Value, _resource_root: bool, path: &Path) -> ErrorList {
        let fails = schema.rules.iter().any(|rule| rule.expression == "never");
        if fails { vec![FieldError::invalid(path, value.clone(), "failed rule: never")] } else { Vec::new() }
    }
}

fn widgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", &json!({"type": "object"}))],
        }
    })
}

fn version(name: &str, schema: &Value) -> Value {
    json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}})
}

fn with_schema(schema: &Value) -> Value {
    let mut object = widgets();
    object.set_at("spec.versions", json!([version("v1", schema)]));
    object
}

/// A CRD whose `spec` has this schema.
fn with_spec(schema: &Value) -> Value {
    with_schema(&json!({"type": "object", "properties": {"spec": schema}}))
}

fn texts(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn created(mut object: Value) -> Vec<String> {
    complete(&mut object).unwrap();
    set_defaults(&mut object);
    prepare_create(&mut object);
    texts(&validate_create(&object, &Fake))
}

/// The errors of a schema at `spec`, without the path to it.
fn of_spec(schema: &Value) -> Vec<String> {
    let errors = created(with_spec(schema));
    errors
        .iter()
        .map(|error| error.replace("spec.validation.openAPIV3Schema.properties[spec]", "~"))
        .collect()
}

fn stored(mut object: Value) -> Value {
    set_defaults(&mut object);
    prepare_create(&mut object);
    object.set_at("metadata.resourceVersion", "1");
    super::super::settle(&mut object, [], "now");
    object
}

fn updated(mut new: Value, old: &Value) -> Vec<String> {
    set_defaults(&mut new);
    new.set_at("metadata.resourceVersion", "1");
    prepare_update(&mut new, old);
    texts(&validate_update(&new, old, &Fake))
}

#[test]
fn a_minimal_crd_is_valid() {
    assert_eq!(created(widgets()), [""; 0]);
}

#[test]
fn group_scope_and_names_are_required() {
    let mut object = widgets();
    object.set_at(
        "spec",
        json!({"group": "example", "scope": "Global", "names": {"shortNames": ["W"]}, "versions": []}),
    );
    insta::assert_snapshot!(created(object).join("\n"), @r#"
    metadata.name: Invalid value: "widgets.example.com": must be spec.names.plural+"."+spec.group
    spec.group: Invalid value: "example": should be a domain with at least one dot
    spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"
    spec.versions: Invalid value: []: must have exactly one version marked as storage version
    spec.names.plural: Required value
    spec.names.singular: Required value
    spec.names.kind: Required value
    spec.names.listKind: Required value
    spec.names.shortNames[0]: Invalid value: "W": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
    status.storedVersions: Invalid value: null: must have at least one stored version
    "#);
}

#[test]
fn kind_and_list_kind_must_differ() {
    let mut object = widgets();
    object.set_at("spec.names.listKind", "Widget");
    assert_eq!(
        created(object),
        ["spec.names.listKind: Invalid value: \"Widget\": kind and listKind may not be the same"]
    );
}

#[test]
fn versions_are_unique_and_exactly_one_is_the_storage_version() {
    let mut object = widgets();
    let mut again = version("v1", &json!({"type": "object", "description": "<again>"}));
    again.set_at("subresources", json!({"status": {}}));
    object.list_mut("spec.versions").unwrap().push(again);
    let errors = created(object);
    assert_eq!(errors.len(), 2);
    assert!(errors[0].ends_with("must contain unique version names"), "{}", errors[0]);
    assert!(errors[1].ends_with("must have exactly one version marked as storage version"), "{}", errors[1]);
    for part in [
        r#"[{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":null,"Schema":{"OpenAPIV3Schema":{"ID":"","#,
        r#""Description":"\u003cagain\u003e","Type":"object","Nullable":false,"#,
        r#""Subresources":{"Status":{},"Scale":null},"AdditionalPrinterColumns":null,"SelectableFields":null}]"#,
    ] {
        assert!(errors[0].contains(part), "{part} in {}", errors[0]);
    }
}

#[test]
fn deprecation_warnings_are_validated() {
    let warned = |deprecated: bool, warning: &str| {
        let mut object = widgets();
        let version = &mut object.list_mut("spec.versions").unwrap()[0];
        version.set_at("deprecated", deprecated);
        version.set_at("deprecationWarning", warning);
        created(object).iter().map(|error| error.rsplit_once(": ").unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(warned(true, "use v2, naïvely \u{301}"), [""; 0]);
    assert_eq!(warned(false, "use v2"), ["can only be set for deprecated versions"]);
    assert_eq!(warned(true, ""), ["must not be an empty string"]);
    assert_eq!(
        warned(true, "a\nb"),
        ["must only contain printable UTF-8 characters; non-printable character found at index 1"]
    );
    assert_eq!(warned(true, &"a".repeat(257)), ["must be <= 256 characters long"]);
}

#[test]
fn a_conversion_webhook_needs_a_client_config_and_a_known_review_version() {
    let converted = |conversion: Value| {
        let mut object = widgets();
        object.set_at("spec.conversion", conversion);
        created(object)
    };
    let webhook = |config: Value, versions: Value| {
        converted(json!({
            "strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": versions}
        }))
    };
    let service = json!({"service": {"namespace": "a", "name": "b", "path": "/convert"}});
    assert_eq!(webhook(service, json!(["v2", "v1"])), [""; 0]);
    assert_eq!(
        converted(json!({"strategy": "Webhook"})),
        [
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.conversionReviewVersions: Required value"
        ]
    );
    assert_eq!(
        webhook(json!({}), json!(["v2", "v2"])),
        [
            "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required",
            "spec.conversion.conversionReviewVersions[1]: Invalid value: \"v2\": duplicate version",
            "spec.conversion.conversionReviewVersions: Invalid value: [\"v2\",\"v2\"]: must include at least one of v1, v1beta1"
        ]
    );
    assert_eq!(
        webhook(json!({"service": {"namespace": "", "name": "x", "port": 0, "path": "x//"}}), json!(["v1"])),
        [
            "spec.conversion.webhookClientConfig.service.name: Required value",
            "spec.conversion.webhookClientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
            "spec.conversion.webhookClientConfig.service.path: Invalid value: \"x//\": must start with a '/'",
            "spec.conversion.webhookClientConfig.service.path: Invalid value: \"x//\": segment[0] may not be empty",
            "spec.conversion.webhookClientConfig.service.path: Invalid value: \"x//\": segment[1] may not be empty"
        ]
    );
    let mut none = json!({"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}});
    none.set_at("webhook.clientConfig.url", "https://example.com");
    assert_eq!(
        converted(none),
        [
            "spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook",
            "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook"
        ]
    );
    assert_eq!(
        converted(json!({"strategy": "Magic"})),
        ["spec.conversion.strategy: Unsupported value: \"Magic\": supported values: \"None\", \"Webhook\""]
    );
}

#[test]
fn values_shared_by_all_versions_have_one_path() {
    let columns = json!([{"name": "A", "type": "string", "jsonPath": "a"}]);
    let mut object = widgets();
    object.set_at(
        "spec.versions",
        json!([version("v1", &json!({"type": "object"})), version("v2", &json!({"type": "object"}))]),
    );
    for version in object.list_mut("spec.versions").unwrap() {
        version.set_at("additionalPrinterColumns", columns.clone());
    }
    let detail = "must be a simple json path starting with .";
    assert_eq!(
        created(object.clone()),
        [format!("spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"a\": {detail}")]
    );
    object.list_mut("spec.versions").unwrap()[0].remove_at("additionalPrinterColumns");
    assert_eq!(
        created(object),
        [format!("spec.versions[1].additionalPrinterColumns[0].JSONPath: Invalid value: \"a\": {detail}")]
    );
}

#[test]
fn the_root_schema_is_restricted_with_a_status_subresource() {
    let with_status = |schema: Value| {
        let mut object = with_schema(&schema);
        object.list_mut("spec.versions").unwrap()[0].set_at("subresources", json!({"status": {}}));
        created(object)
    };
    assert_eq!(with_status(json!({"type": "object", "description": "d", "required": ["spec"]})), [""; 0]);
    let errors = with_status(json!({"type": "object", "maxProperties": 3}));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with(
        "spec.validation.openAPIV3Schema: Invalid value: {\"ID\":\"\",\"Schema\":\"\",\"Ref\":null,"
    ));
    assert!(errors[0].ends_with("\"XValidations\":null}: only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled"), "{}", errors[0]);
}

#[test]
fn constrained_fields_must_be_declared_outside_of_junctors() {
    let clause = json!({"properties": {"spec": {"properties": {"b": {"items": {"minimum": 1}}}}}});
    let schema =
        |spec: Value| json!({"type": "object", "anyOf": [clause.clone()], "properties": {"spec": spec}});
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let complete = json!({"type": "object", "properties": {"b": list}});
    assert_eq!(created(with_schema(&schema(complete))), [""; 0]);
    assert_eq!(
        created(with_schema(&schema(json!({"type": "object"})))),
        [
            "spec.validation.openAPIV3Schema.properties[spec].properties[b]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[0].properties[spec].properties[b]"
        ]
    );
    assert_eq!(
        of_spec(
            &json!({"type": "object", "not": {"properties": {"metadata": {}}}, "properties": {"metadata": {"type": "object"}}})
        ),
        ["~.not.properties[metadata]: Forbidden: must not be specified in a nested context"]
    );
    let int_or_string = json!({
        "x-kubernetes-int-or-string": true,
        "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "x"}]
    });
    assert_eq!(of_spec(&int_or_string), [""; 0]);
}

#[test]
fn lists_of_schemas_are_rejected_everywhere() {
    let items = json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "array", "items": [{"type": "string"}]}}}});
    assert_eq!(
        of_spec(&items),
        ["~.items.properties[a].items: Forbidden: items must be a schema object and not an array"]
    );
}

#[test]
fn defaults_are_validated_also_in_metadata_of_embedded_resources() {
    let embedded = |name: &str| {
        of_spec(&json!({
            "type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {
                "apiVersion": {"type": "string"}, "kind": {"type": "string"},
                "metadata": {"type": "object", "properties": {"name": {"type": "string", "default": name}}}
            }
        }))
    };
    assert_eq!(embedded("fine"), [""; 0]);
    let errors = embedded("not/fine");
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].starts_with(
            "~.properties[metadata].properties[name].default: Invalid value: \"not/fine\": must result in valid metadata: metadata.name: Invalid value: \"not/fine\": "
        ),
        "{}",
        errors[0]
    );
}

#[test]
fn a_default_must_meet_the_rules_of_its_schema() {
    let schema = json!({"type": "object", "default": {}, "x-kubernetes-validations": [{"rule": "never"}]});
    assert_eq!(of_spec(&schema), ["~.default: Invalid value: {}: failed rule: never"]);
}

#[test]
fn the_structure_of_rules_is_validated() {
    let rules = json!([
        {"rule": " "},
        {"rule": "a", "message": " "},
        {"rule": "a", "message": "b\nc"},
        {"rule": "a\nb"},
        {"rule": "a\nb", "message": "fine"},
        {"rule": "a", "messageExpression": " ", "reason": "Odd"},
        {"rule": "a", "fieldPath": ".nosuch"},
        {"rule": "a", "fieldPath": ".a"},
    ]);
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": rules});
    insta::assert_snapshot!(of_spec(&schema).join("\n"), @r#"
    ~.x-kubernetes-validations[0].rule: Required value: rule is not specified
    ~.x-kubernetes-validations[1].message: Invalid value: " ": must be non-empty if specified
    ~.x-kubernetes-validations[2].message: Invalid value: "b\nc": must not contain line breaks
    ~.x-kubernetes-validations[3].message: Required value: message must be specified if rule contains line breaks
    ~.x-kubernetes-validations[5].messageExpression: Required value: messageExpression must be non-empty if specified
    ~.x-kubernetes-validations[5].reason: Unsupported value: "Odd": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"
    ~.x-kubernetes-validations[6].fieldPath: Invalid value: ".nosuch": must be a valid path
    "#);
}

#[test]
fn compile_errors_of_rules_have_their_path() {
    let rules = |rules: Value| json!({"type": "string", "x-kubernetes-validations": rules});
    assert_eq!(
        of_spec(&rules(json!([{"rule": "bad", "message": "<"}]))),
        [
            r#"~.x-kubernetes-validations[0].rule: Invalid value: {"Rule":"bad","Message":"\u003c","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed"#
        ]
    );
    assert_eq!(
        of_spec(&json!({"type": "array", "items": rules(json!([{"rule": "old"}]))})),
        [
            "~.items.x-kubernetes-validations[0].rule: Invalid value: \"old\": oldSelf cannot be used on the uncorrelatable portion of the schema within ~"
        ]
    );
    assert_eq!(
        of_spec(&rules(json!([{"rule": "new", "optionalOldSelf": true}]))),
        [
            "~.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
        ]
    );
}

#[test]
fn expensive_rules_are_rejected() {
    let dear = |max_items: Value| {
        let mut schema = json!({"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "dear"}]}});
        schema.set_at("maxItems", max_items);
        of_spec(&schema)
    };
    let hint = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)";
    assert_eq!(dear(json!(1)), [""; 0]);
    assert_eq!(
        dear(json!(2)),
        [format!(
            "~.items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 1.8x {hint}"
        )]
    );
    assert_eq!(
        dear(Value::Null),
        [
            format!("~.items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {hint}"),
            "~.items.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema".to_owned(),
            format!("spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of 90.0x {hint}"),
        ]
    );
}

#[test]
fn selectable_fields_are_limited_to_a_few_scalars() {
    let fields: Value = (0..9).map(|i| json!({"jsonPath": format!(".spec.f{i}")})).collect();
    let properties: serde_json::Map<String, Value> =
        (0..9).map(|i| (format!("f{i}"), json!({"type": "string"}))).collect();
    let mut object = with_spec(&json!({"type": "object", "properties": properties}));
    object.list_mut("spec.versions").unwrap()[0].set_at("selectableFields", fields);
    assert_eq!(created(object.clone()), ["spec.selectableFields: Too many: 9: must have at most 8 items"]);
    let old = stored(object.clone());
    assert_eq!(updated(object, &old), [""; 0], "what is stored may stay");
}

#[test]
fn protected_groups_are_validated() {
    let mut object = widgets();
    object.set_at("metadata.name", "widgets.x.k8s.io");
    object.set_at("spec.group", "x.k8s.io");
    assert_eq!(
        created(object.clone()),
        [
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"
        ]
    );
    object.set_at("metadata.annotations", json!({"api-approved.kubernetes.io": "unapproved, a test"}));
    assert_eq!(created(object), [""; 0]);
}

#[test]
fn new_crds_cannot_preserve_unknown_fields() {
    let mut object = widgets();
    object.set_at("spec.preserveUnknownFields", true);
    assert_eq!(
        created(object.clone()),
        [
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        ]
    );
    let old = stored(object.clone());
    assert_eq!(updated(object, &old), [""; 0], "an old definition may");
}

#[test]
fn kind_and_scope_are_immutable_once_established() {
    let mut old = stored(widgets());
    let mut new = widgets();
    new.set_at("spec.scope", "Cluster");
    new.set_at("spec.names.kind", "Thing");
    assert_eq!(
        updated(new.clone(), &old),
        [
            "spec.scope: Invalid value: \"Cluster\": field is immutable",
            "spec.names.kind: Invalid value: \"Thing\": field is immutable"
        ]
    );
    old.set_at("status.conditions", json!([]));
    assert_eq!(updated(new, &old), [""; 0]);
}

#[test]
fn an_update_may_keep_violations_of_the_stored_crd() {
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}});
    let old = stored(with_spec(&set));
    assert_eq!(updated(with_spec(&set), &old), [""; 0]);
    assert_eq!(created(with_spec(&set)).len(), 1);
}

#[test]
fn accepted_names_are_validated() {
    let old = stored(widgets());
    let mut new = old.clone();
    new.set_at("status.acceptedNames.plural", "Widgets!");
    let errors = texts(&validate_status_update(&new, &old));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("status.acceptedNames.plural: Invalid value: \"Widgets!\": a DNS-1035"));
}
