//! Round trips of values.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[track_caller]
fn survives(value: &Value) -> String {
    let text = document(value);
    assert_eq!(&read(&text), value, "\n{text}");
    text
}

#[test]
fn a_manifest_equals_that_of_controller_gen() {
    let value = json!({
        "kind": "Thing",
        "apiVersion": "v1",
        "spec": {
            "versions": [
                {"name": "v1", "served": true, "list": [["a", "b"], []], "empty": {}},
                {"schema": {"description": "One line.\nAnother: line.\n\n  code", "maximum": 1.5}},
            ],
            "pattern": "^[a-z]{1,3}$",
            "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
            "text": "Colon: here",
        },
    });
    insta::assert_snapshot!(survives(&value), @r#"
    ---
    apiVersion: v1
    kind: Thing
    spec:
      jsonPath: .status.conditions[?(@.type=="Ready")].status
      pattern: ^[a-z]{1,3}$
      text: 'Colon: here'
      versions:
      - empty: {}
        list:
        - - a
          - b
        - []
        name: v1
        served: true
      - schema:
          description: |-
            One line.
            Another: line.

              code
          maximum: 1.5
    "#);
}

#[test]
fn strings_that_yaml_would_misinterpret_are_quoted() {
    let tricky = [
        "",
        "~",
        "null",
        "Null",
        "yes",
        "No",
        "ON",
        "off",
        "y",
        "N",
        "true",
        "False",
        "1",
        "-1",
        "+1",
        "1e3",
        "1.5",
        ".5",
        "1_000",
        "0x1",
        "0b1",
        "0o7",
        "07",
        "12:30:45",
        "1:2",
        ".inf",
        "-.Inf",
        ".nan",
        "2024-01-01",
        "2024-01-01T00:00:00Z",
        "<<",
        "=",
    ];
    for text in tricky {
        let printed = survives(&json!({ "k": text }));
        assert_eq!(printed, format!("---\nk: \"{text}\"\n"));
        survives(&json!({ text: "k" }));
    }
}

#[test]
fn unusual_strings_round_trip() {
    let odd = [
        ": ",
        "a: b",
        "a:",
        "a #b",
        "#a",
        " a",
        "a ",
        "a\tb",
        "'",
        "\"",
        "it's",
        "- a",
        "-",
        "--- a",
        "...",
        "? a",
        "|",
        ">",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a",
        "[a",
        "{a",
        "a]",
        ",a",
        "\u{feff}",
        "\u{2028}",
        "\u{85}",
        "\r\n",
        "\\",
        "\0",
        "käse",
        "日本語",
        "🦀",
        "a\nb",
        "a\nb\n",
        "a\nb\n\n",
        "\na",
        " a\nb",
        "a\n ",
        "a\n  b\nc",
        "a\n\tb",
        "a \nb",
        "a\r\nb",
        "\n",
        "# a\n# b",
        "---\nb",
        "a\n---",
    ];
    for text in odd {
        survives(&json!({ "k": [text, { "in": text }], text: 1 }));
        survives(&json!(text));
    }
}

#[test]
fn ordinary_strings_are_not_quoted() {
    for text in
        ["v1", "1Gi", "1.2.3", "10.0.0.0/8", "a-b", "-a", "x:y", "Yes, sir", "2024", "None", "2024-a-1"]
    {
        let quoted = document(&json!({ "k": text })).contains(['"', '\'']);
        assert_eq!(quoted, text == "2024", "{text}");
    }
}

fn values() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[ -~\\n\\t]{0,12}", "\\PC{0,6}", "[a-c:# '\"\\n-]{0,10}"];
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1000i32..1000).prop_map(|n| json!(f64::from(n) / 8.0)),
        text.clone().prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_value_round_trips(value in values()) {
        let text = document(&value);
        let back: Result<Value, _> = serde_saphyr::from_str(&text);
        prop_assert!(back.as_ref().is_ok_and(|back| same(back, &value)), "{back:?}\n{value:?}\n{text}");
    }
}

/// JSON does not distinguish integers and floats.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|o| same(value, o)))
        }
        _ => one == other,
    }
}
