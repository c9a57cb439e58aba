//! ConversionReviews: building requests and checking responses.

use kubewright_apimachinery::field::{Path, aggregate, quote};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::{json, meta};
use serde_json::{Map, Value, json};

/// A ConversionReview request for objects in another version.
pub(super) fn request(version: &str, uid: &str, objects: &[Value], api_version: &str) -> Value {
    let objects: Vec<Value> = objects.iter().map(super::sent).collect();
    json!({
        "kind": "ConversionReview",
        "apiVersion": format!("apiextensions.k8s.io/{version}"),
        "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": objects},
        // Go encodes the empty response like this.
        "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
    })
}

/// The objects of a valid response.
pub(super) fn converted(answer: &Value, version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let response = answer.at("response");
    if version == "v1" {
        let (api_version, kind) = (answer.str_at("apiVersion"), answer.str_at("kind"));
        if (api_version, kind) != ("apiextensions.k8s.io/v1", "ConversionReview") {
            let given =
                if api_version.contains('/') { api_version.to_owned() } else { format!("/{api_version}") };
            return Err(format!(
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got {given}, Kind={kind}"
            ));
        }
    }
    if response.is_null() {
        return Err("no response provided".to_owned());
    }
    if version == "v1" && response.str_at("uid") != uid {
        return Err(format!("expected response.uid={}, got {}", quote(uid), quote(response.str_at("uid"))));
    }
    let (status, message) = (response.str_at("result.status"), response.str_at("result.message"));
    match (status, message) {
        ("Success", _) => Ok(response.list_at("convertedObjects").to_vec()),
        (status, "") => Err(format!("response.result.status was '{status}', not 'Success'")),
        (_, message) => Err(message.to_owned()),
    }
}

/// A converted object with the metadata of the original: only labels and annotations may change.
pub(super) fn restored(
    gvk: &str,
    original: &Value,
    mut converted: Value,
    api_version: &str,
) -> Result<Value, String> {
    // The kind of an object without a valid apiVersion is unknown, too.
    let given = converted.str_at("apiVersion");
    if converted.str_at("kind").is_empty() || given.matches('/').count() > 1 {
        return Err(format!("Object 'Kind' is missing in '{}'", json::to_string(&converted)));
    }
    let invalid =
        |why: String| format!("conversion webhook for {gvk} returned invalid object at index 0: {why}");
    if given != api_version {
        return Err(invalid(format!("invalid groupVersion (expected {api_version}, received {given})")));
    }
    let (expected, received) = (original.str_at("kind"), converted.str_at("kind"));
    if expected != received {
        return Err(invalid(format!("invalid kind (expected {expected}, received {received})")));
    }
    for (field, path) in
        [("name", "metadata.name"), ("namespace", "metadata.namespace"), ("UID", "metadata.uid")]
    {
        let (expected, received) = (original.str_at(path), converted.str_at(path));
        if expected != received {
            return Err(format!(
                "conversion webhook for {gvk} returned invalid object: must have the same {field}: {expected} != \
                 {received}"
            ));
        }
    }
    let metadata = restored_metadata(original.at("metadata"), converted.get("metadata"))
        .map_err(|why| format!("conversion webhook for {gvk} returned invalid metadata: {why}"))?;
    converted.set_at("metadata", metadata);
    Ok(converted)
}

fn restored_metadata(original: &Value, converted: Option<&Value>) -> Result<Value, String> {
    let given = converted.ok_or("missing metadata in converted object")?;
    let Value::Object(given) = given else {
        return Err(format!("invalid metadata of type {} in converted object", go_type(given)));
    };
    let mut metadata = original.as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match given.get(field) {
            None | Some(Value::Null) => drop(metadata.remove(field)),
            Some(entries @ Value::Object(_)) => {
                check_entries(field, original.map_at(field), entries)?;
                metadata.insert(field.to_owned(), entries.clone());
            }
            Some(other) => {
                let given = go_type(other);
                return Err(format!("invalid metadata.{field} of type {given} in converted object"));
            }
        }
    }
    Ok(Value::Object(metadata))
}

/// Checks labels or annotations. Unchanged ones may be invalid.
fn check_entries(field: &str, original: &Map<String, Value>, converted: &Value) -> Result<(), String> {
    let mut entries = converted.as_object().into_iter().flatten();
    if let Some((key, value)) = entries.find(|(_, value)| !value.is_string()) {
        let given = go_type(value);
        return Err(format!("metadata.{field}[{key}] must be a string, but is {given} in converted object"));
    }
    if converted.as_object() == Some(original) {
        return Ok(());
    }
    let path = Path::new("metadata");
    let errors = match field {
        "labels" => meta::labels(converted, &path.child("labels")),
        // As upstream spells it.
        _ => meta::annotations(converted, &path.child("annotation")),
    };
    if errors.is_empty() { Ok(()) } else { Err(aggregate(&errors)) }
}

/// The Go type of a decoded value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "callers write the value in place")]
    fn answer(response: Value) -> Value {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response})
    }

    #[test]
    fn responses_are_checked_as_upstream_checks_them() {
        let error = |answer: Value| converted(&answer, "v1", "u").unwrap_err();
        assert_eq!(error(answer(Value::Null)), "no response provided");
        assert_eq!(error(answer(json!({"uid": "x"}))), "expected response.uid=\"u\", got \"x\"");
        let failed = json!({"uid": "u", "result": {"status": "Failed"}});
        assert_eq!(error(answer(failed)), "response.result.status was 'Failed', not 'Success'");
        let failed = json!({"uid": "u", "result": {"status": "Failed", "message": "why"}});
        assert_eq!(error(answer(failed)), "why");
        assert!(error(json!({"response": {}})).ends_with("got /, Kind="));
    }

    #[test]
    fn only_labels_and_annotations_of_the_metadata_change() {
        let original = json!({"apiVersion": "g/v1", "kind": "K",
            "metadata": {"name": "n", "uid": "u", "labels": {"a": "1"}, "finalizers": ["f"]}});
        let given = |metadata: Value| json!({"apiVersion": "g/v2", "kind": "K", "metadata": metadata});
        let restore = |converted| restored("g/v1, Kind=K", &original, converted, "g/v2");
        let kept =
            restore(given(json!({"name": "n", "uid": "u", "labels": {"b": "2"}, "finalizers": []}))).unwrap();
        assert_eq!(
            kept["metadata"],
            json!({"name": "n", "uid": "u", "labels": {"b": "2"}, "finalizers": ["f"]})
        );
        assert_eq!(
            restore(given(json!({"name": "other", "uid": "u"}))).unwrap_err(),
            "conversion webhook for g/v1, Kind=K returned invalid object: must have the same name: n != other"
        );
        assert_eq!(
            restore(json!({"apiVersion": "g/v1", "kind": "K"})).unwrap_err(),
            "conversion webhook for g/v1, Kind=K returned invalid object at index 0: invalid groupVersion (expected \
             g/v2, received g/v1)"
        );
    }

    #[test]
    fn a_converted_object_must_have_a_kind_and_the_desired_version() {
        let original = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}});
        let restore = |converted| restored("g/v1, Kind=K", &original, converted, "g/v2").unwrap_err();
        assert_eq!(
            restore(json!({"apiVersion": "g/v2"})),
            r#"Object 'Kind' is missing in '{"apiVersion":"g/v2"}'"#
        );
        assert_eq!(
            restore(json!({"apiVersion": "a/b/c", "kind": "K"})),
            r#"Object 'Kind' is missing in '{"apiVersion":"a/b/c","kind":"K"}'"#
        );
        let invalid = "conversion webhook for g/v1, Kind=K returned invalid object at index 0: invalid ";
        for given in ["", "v2"] {
            assert_eq!(
                restore(json!({"apiVersion": given, "kind": "K"})),
                format!("{invalid}groupVersion (expected g/v2, received {given})")
            );
        }
        assert_eq!(
            restore(json!({"apiVersion": "g/v2", "kind": "L"})),
            format!("{invalid}kind (expected K, received L)")
        );
    }

    #[test]
    fn converted_metadata_is_validated_if_it_changed() {
        let original = json!({"apiVersion": "g/v1", "kind": "K",
            "metadata": {"labels": {"a": "not valid"}, "annotations": {"not valid": "a"}}});
        let restore = |metadata: Value| {
            let converted = json!({"apiVersion": "g/v2", "kind": "K", "metadata": metadata});
            restored("g/v1, Kind=K", &original, converted, "g/v2")
        };
        assert!(restore(original["metadata"].clone()).is_ok());
        let error = |metadata| {
            let error = restore(metadata).unwrap_err();
            let start = "conversion webhook for g/v1, Kind=K returned invalid metadata: ";
            error.strip_prefix(start).expect(&error).to_owned()
        };
        let labels = error(json!({"labels": {"a": "not valid", "b": "1"}}));
        assert!(labels.starts_with("metadata.labels: Invalid value: \"not valid\": "), "{labels}");
        let several = error(json!({"labels": {"a": "not valid", "b": "also not valid"}}));
        assert!(several.starts_with("[metadata.labels: ") && several.ends_with(']'), "{several}");
        let annotations = error(json!({"annotations": {"not valid": "b"}}));
        assert!(
            annotations.starts_with("metadata.annotation: Invalid value: \"not valid\": "),
            "{annotations}"
        );
        for (value, given) in [
            (json!(1), "int64"),
            (json!(1.5), "float64"),
            (json!(true), "bool"),
            (json!(null), "<nil>"),
            (json!([]), "[]interface {}"),
            (json!({}), "map[string]interface {}"),
        ] {
            assert_eq!(
                error(json!({"labels": {"k": value}})),
                format!("metadata.labels[k] must be a string, but is {given} in converted object")
            );
        }
        assert_eq!(
            error(json!({"annotations": 1})),
            "invalid metadata.annotations of type int64 in converted object"
        );
        assert_eq!(error(json!([])), "invalid metadata of type []interface {} in converted object");
        assert_eq!(error(json!(null)), "invalid metadata of type <nil> in converted object");
        let missing = restored("k", &original, json!({"apiVersion": "g/v2", "kind": "K"}), "g/v2");
        assert!(missing.unwrap_err().ends_with("missing metadata in converted object"));
    }
}
