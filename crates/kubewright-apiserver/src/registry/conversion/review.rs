//! ConversionReviews: building requests and checking responses.

use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::object::Fields as _;
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
    let invalid =
        |why: String| format!("conversion webhook for {gvk} returned invalid object at index 0: {why}");
    let given = converted.str_at("apiVersion");
    if given != api_version {
        let given = if given.is_empty() { "/" } else { given };
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
    let metadata = restored_metadata(original.at("metadata"), converted.at("metadata"))
        .map_err(|why| format!("conversion webhook for {gvk} returned invalid metadata: {why}"))?;
    converted.set_at("metadata", metadata);
    Ok(converted)
}

fn restored_metadata(original: &Value, converted: &Value) -> Result<Value, String> {
    if converted.is_null() {
        return Err("missing metadata in converted object".to_owned());
    }
    let Some(given) = converted.as_object() else {
        return Err("invalid metadata of type string in converted object".to_owned());
    };
    let mut metadata = original.as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match given.get(field) {
            None | Some(Value::Null) => drop(metadata.remove(field)),
            Some(Value::Object(entries)) => {
                metadata.insert(field.to_owned(), Value::Object(checked(field, entries)?));
            }
            Some(_) => return Err(format!("invalid metadata.{field} of type string in converted object")),
        }
    }
    Ok(Value::Object(metadata))
}

/// Fails if a value is not a string.
fn checked(field: &str, entries: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    match entries.iter().find(|(_, value)| !value.is_string()) {
        None => Ok(entries.clone()),
        Some((key, _)) => Err(format!("metadata.{field}[{}]: Invalid value", quote(key))),
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
}
