//! Prints objects like upstream's internal Go types.
//!
//! Upstream validates internal structs without JSON names. Printed values therefore have Go's field names,
//! all fields, and `null` for absent ones. `internal.txt` lists these structs: a name and its fields in Go's
//! order, `Name:TYPE`, or `Name=json:TYPE` if the JSON name is not the field name with a lower-case first
//! letter.
//!
//! | type | absent value |
//! |---|---|
//! | `s` `b` `i` `x` `q` | `""`, `false`, `0`, `0`, `"0"` |
//! | `*` `*T` `[]` `[T]` `{}` | `null` |
//! | `T` | the struct with all fields absent |
//! | `~` before one of these | the field is omitted (types with JSON names) |
//! | `+T` | the fields of `T` are inlined |

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use serde_json::Value;

use super::diff;
use kubewright_apimachinery::object::Fields as _;

static STRUCTS: LazyLock<HashMap<&str, &str>> =
    LazyLock::new(|| include_str!("internal.txt").lines().filter_map(|line| line.split_once(' ')).collect());

/// The diff of two values of the struct `name`, as upstream appends it to messages.
pub(crate) fn difference(name: &str, old: &Value, new: &Value) -> String {
    diff::unified(&indented(name, old), &indented(name, new))
}

/// The value on one line, as printed in errors.
pub(crate) fn compact(name: &str, value: &Value) -> String {
    let mut out = Printer { text: String::new(), depth: 0, indent: false };
    out.structure(name, value);
    out.text
}

fn indented(name: &str, value: &Value) -> String {
    let mut out = Printer { text: String::new(), depth: 0, indent: true };
    out.structure(name, value);
    out.text
}

struct Printer {
    text: String,
    depth: usize,
    indent: bool,
}

impl Printer {
    fn structure(&mut self, name: &str, value: &Value) {
        let moved;
        let value = if name == "PodSpec" {
            moved = with_host_fields(value);
            &moved
        } else {
            value
        };
        self.open('{');
        let mut first = true;
        self.fields(name, value, &mut first);
        self.close('}', first);
    }

    fn fields(&mut self, name: &str, value: &Value, first: &mut bool) {
        for field in STRUCTS.get(name).copied().unwrap_or_default().split(' ') {
            if field == "+metadata" {
                self.fields("ObjectMeta", value.at("metadata"), first);
            } else if let Some(inlined) = field.strip_prefix('+') {
                self.fields(inlined, value, first);
            } else if let Some((names, types)) = field.split_once(':') {
                let (go, json) = match names.split_once('=') {
                    Some((go, json)) => (go, json.to_owned()),
                    None => (names, lower_first(names)),
                };
                let value = value.at(&json);
                match types.strip_prefix('~') {
                    Some(_) if value.is_null() => {}
                    ty => {
                        self.key(go, first);
                        self.value(ty.unwrap_or(types), value);
                    }
                }
            }
        }
    }

    fn value(&mut self, ty: &str, value: &Value) {
        match ty {
            "s" => self.json(if value.is_null() { &EMPTY } else { value }),
            "b" => self.json(if value.is_null() { &FALSE } else { value }),
            "i" | "x" => self.json(if value.is_null() { &ZERO } else { value }),
            "q" => self.json(if value.is_null() { &NO_QUANTITY } else { value }),
            "*" | "[]" | "{}" => self.json(value),
            _ => {
                let pointer = ty.strip_prefix('*');
                let element = ty.strip_prefix('[').and_then(|ty| ty.strip_suffix(']'));
                if value.is_null() && (pointer.is_some() || element.is_some()) {
                    self.text.push_str("null");
                } else if let Some(element) = element {
                    self.list(value.as_array().map_or(&[], Vec::as_slice), |out, item| {
                        out.structure(element, item);
                    });
                } else {
                    self.structure(pointer.unwrap_or(ty), value);
                }
            }
        }
    }

    /// A value without Go names. Strings are escaped like in Go's encoder, including HTML.
    fn json(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                self.open('{');
                let mut first = true;
                for (key, value) in map {
                    self.key(key, &mut first);
                    self.json(value);
                }
                self.close('}', first);
            }
            Value::Array(items) => self.list(items, Self::json),
            other => {
                let text = other.to_string();
                for c in text.chars() {
                    match c {
                        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                            // Writing to a string cannot fail.
                            let _ = write!(self.text, "\\u{:04x}", c as u32);
                        }
                        c => self.text.push(c),
                    }
                }
            }
        }
    }

    fn list(&mut self, items: &[Value], print: impl Fn(&mut Self, &Value)) {
        self.open('[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            self.line();
            print(self, item);
        }
        self.close(']', items.is_empty());
    }

    fn open(&mut self, bracket: char) {
        self.text.push(bracket);
        self.depth += 1;
    }

    fn close(&mut self, bracket: char, empty: bool) {
        self.depth -= 1;
        if !empty {
            self.line();
        }
        self.text.push(bracket);
    }

    fn key(&mut self, key: &str, first: &mut bool) {
        if !*first {
            self.text.push(',');
        }
        *first = false;
        self.line();
        self.json(&Value::from(key));
        self.text.push_str(if self.indent { ": " } else { ":" });
    }

    fn line(&mut self) {
        if self.indent {
            self.text.push('\n');
            self.text.extend(std::iter::repeat_n(' ', self.depth));
        }
    }
}

static EMPTY: Value = Value::String(String::new());
static FALSE: Value = Value::Bool(false);
static ZERO: LazyLock<Value> = LazyLock::new(|| Value::from(0));
static NO_QUANTITY: LazyLock<Value> = LazyLock::new(|| Value::from("0"));

/// Moves host fields to the security context, as in the internal type.
fn with_host_fields(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for name in ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"] {
        if let Some(value) = spec.remove_at(name) {
            spec.set_at(&format!("securityContext.{name}"), value);
        }
    }
    spec
}

fn lower_first(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_referenced_type_is_in_the_table() {
        for (name, fields) in STRUCTS.iter() {
            for field in fields.split(' ') {
                let ty =
                    field.split_once(':').map_or(field, |(_, ty)| ty).trim_matches(['~', '*', '[', ']', '+']);
                let known =
                    ["s", "b", "i", "x", "q", "{}", "metadata", ""].contains(&ty) || STRUCTS.contains_key(ty);
                assert!(known, "{name}: {field}");
            }
        }
    }

    #[test]
    fn a_struct_prints_all_fields_with_gos_names() {
        let taint = json!({"key": "a", "effect": "NoSchedule"});
        assert_eq!(
            compact("Taint", &taint),
            r#"{"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}"#
        );
    }

    #[test]
    fn types_with_json_names_keep_them_and_their_order() {
        let term =
            json!({"labelSelector": {"matchLabels": {"a": "b"}, "matchExpressions": []}, "topologyKey": "k"});
        let printed = compact("PodAffinityTerm", &term);
        assert!(printed.starts_with(r#"{"LabelSelector":{"matchLabels":{"a":"b"},"matchExpressions":[]},"#));
    }

    #[test]
    fn html_is_escaped_like_in_go() {
        assert_eq!(
            compact("Sysctl", &json!({"name": "<a>&"})),
            r#"{"Name":"\u003ca\u003e\u0026","Value":""}"#
        );
    }

    #[test]
    fn the_diff_of_a_pod_has_context_lines() {
        let pod = |policy: &str| {
            json!({
                "containers": [{"name": "c", "image": "nginx", "resources": {}}], "restartPolicy": policy,
                "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "securityContext": {},
            })
        };
        let expected = concat!(
            "@@ -35,7 +35,7 @@\n   }\n  ],\n  \"EphemeralContainers\": null,\n- \"RestartPolicy\": \"Always\",\n",
            "+ \"RestartPolicy\": \"Never\",\n  \"TerminationGracePeriodSeconds\": 30,\n",
            "  \"ActiveDeadlineSeconds\": null,\n  \"DNSPolicy\": \"ClusterFirst\",\n"
        );
        assert_eq!(difference("PodSpec", &pod("Always"), &pod("Never")), expected);
    }

    #[test]
    fn host_fields_are_in_the_security_context() {
        let old = json!({"securityContext": {}});
        let new = json!({"securityContext": {}, "hostNetwork": true});
        let difference = difference("PodSpec", &old, &new);
        assert!(
            difference.contains(
                "  \"SecurityContext\": {\n-  \"HostNetwork\": false,\n+  \"HostNetwork\": true,\n"
            )
        );
    }
}
