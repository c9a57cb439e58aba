//! The three-way merge that restores fields that a version cannot represent.

use serde_json::Value;

/// Restores the fields of `kept` that `shown` lacks and `edited` did not change.
///
/// `kept` is the complete object, `shown` is its conversion to the other version, and `edited` is the object that came
/// back. Where `edited` equals `shown`, the value of `kept` is used; otherwise the edited value is.
pub(super) fn restore(edited: &mut Value, shown: &Value, kept: &Value) {
    if edited == shown {
        edited.clone_from(kept);
        return;
    }
    match (edited, shown, kept) {
        (Value::Object(edited), Value::Object(shown), Value::Object(kept)) => {
            for (key, kept) in kept {
                match (edited.get_mut(key), shown.get(key)) {
                    (Some(edited), Some(shown)) => restore(edited, shown, kept),
                    (None, None) => {
                        edited.insert(key.clone(), kept.clone());
                    }
                    // Removed by the edit, or added by it.
                    (None, Some(_)) | (Some(_), None) => {}
                }
            }
        }
        (Value::Array(edited), Value::Array(shown), Value::Array(kept))
            if edited.len() == shown.len() && shown.len() == kept.len() =>
        {
            for ((edited, shown), kept) in edited.iter_mut().zip(shown).zip(kept) {
                restore(edited, shown, kept);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hidden_fields_are_restored_and_edits_are_kept() {
        let kept =
            json!({ "a": 1, "hidden": 2, "nested": { "x": 1, "hidden": 3 }, "list": [{ "n": 1, "h": 4 }] });
        let shown = json!({ "a": 1, "nested": { "x": 1 }, "list": [{ "n": 1 }] });
        let mut edited = json!({ "a": 5, "nested": { "x": 6 }, "list": [{ "n": 1 }] });
        restore(&mut edited, &shown, &kept);
        assert_eq!(
            edited,
            json!({ "a": 5, "hidden": 2, "nested": { "x": 6, "hidden": 3 }, "list": [{ "n": 1, "h": 4 }] })
        );
    }

    #[test]
    fn a_field_that_the_edit_removed_stays_removed() {
        let kept = json!({ "a": { "x": 1, "hidden": 2 }, "b": 1 });
        let shown = json!({ "a": { "x": 1 }, "b": 1 });
        let mut edited = json!({ "b": 1 });
        restore(&mut edited, &shown, &kept);
        assert_eq!(edited, json!({ "b": 1 }));
    }

    #[test]
    fn a_list_of_another_length_is_taken_from_the_edit() {
        let kept = json!({ "list": [{ "n": 1, "h": 4 }] });
        let shown = json!({ "list": [{ "n": 1 }] });
        let mut edited = json!({ "list": [{ "n": 1 }, { "n": 2 }] });
        restore(&mut edited, &shown, &kept);
        assert_eq!(edited, json!({ "list": [{ "n": 1 }, { "n": 2 }] }));
    }
}
