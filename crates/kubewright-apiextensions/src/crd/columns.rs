//! Tables of custom resources: printer columns and cells.

use serde_json::{Value, json};

use super::jsonpath::{self, JsonPath};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::time;

/// The printer columns of a version.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    definitions: Vec<Value>,
    /// The columns after the name.
    own: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq)]
struct Column {
    kind: String,
    path: JsonPath,
}

impl Columns {
    /// Parses `additionalPrinterColumns`. Without any, the only column is the age. As upstream, stops at the
    /// first invalid path.
    pub fn of(columns: &[Value]) -> Self {
        // The default columns (name and creation time) have the descriptions needed here.
        let mut usual = standard();
        let name = usual.next().unwrap_or_default();
        let created = usual.next().unwrap_or_default();
        let age = [json!({
            "name": "Age",
            "type": "date",
            "description": created.at("description"),
            "jsonPath": ".metadata.creationTimestamp",
        })];
        let columns = if columns.is_empty() { &age } else { columns };
        let mut table = Self { definitions: vec![name], own: Vec::new() };
        for column in columns {
            let path = column.str_at("jsonPath");
            let Ok(parsed) = JsonPath::parse(path) else { break };
            let description = match column.str_at("description") {
                "" => format!("Custom resource definition column (in JSONPath format): {path}"),
                text => text.to_owned(),
            };
            table.definitions.push(json!({
                "name": column.str_at("name"),
                "type": column.str_at("type"),
                "format": column.str_at("format"),
                "description": description,
                "priority": column.int_at("priority").unwrap_or_default(),
            }));
            table.own.push(Column { kind: column.str_at("type").to_owned(), path: parsed });
        }
        table
    }

    /// The `columnDefinitions` of the Table.
    pub fn definitions(&self) -> &[Value] {
        &self.definitions
    }

    /// The paths of all fields that [`Columns::cells`] reads.
    pub fn paths(&self) -> Vec<Vec<&str>> {
        let own = self.own.iter().map(|column| column.path.fields());
        std::iter::once(vec!["metadata", "name"]).chain(own).collect()
    }

    /// The cells of one row. `now` is in seconds since the Unix epoch.
    pub fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        let own = self.own.iter().map(|column| column.cell(object, now));
        std::iter::once(object.str_at("metadata.name").into()).chain(own).collect()
    }
}

impl Column {
    /// The first value at the path; null if there is none or it has the wrong type.
    fn cell(&self, object: &Value, now: i64) -> Value {
        let found = self.path.find(object).unwrap_or_default();
        let Some(value) = found.first() else { return Value::Null };
        match (self.kind.as_str(), value) {
            ("string", value) => jsonpath::text(value).into(),
            ("boolean", Value::Bool(_)) | ("number", Value::Number(_)) => (*value).clone(),
            ("integer", Value::Number(number)) => whole(number),
            ("date", Value::String(text)) => date(text, now).into(),
            _ => Value::Null,
        }
    }
}

/// The default columns: name and creation time.
fn standard() -> impl Iterator<Item = Value> {
    let lines = include_str!("../../facts/columns.txt").lines();
    lines.filter_map(|line| line.strip_prefix('\t')).map(|line| {
        let mut cells = line.split('\t');
        let mut next = || cells.next().unwrap_or_default();
        let (name, ty, format, priority) = (next(), next(), next(), next());
        json!({
            "name": name,
            "type": ty,
            "format": format,
            "description": next().replace("\\n", "\n"),
            "priority": priority.parse::<i32>().unwrap_or_default(),
        })
    })
}

fn whole(number: &serde_json::Number) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "Go truncates it as well")]
    let cut = |number: f64| number as i64;
    number.as_i64().or_else(|| number.as_f64().map(cut)).into()
}

fn date(text: &str, now: i64) -> String {
    if !matches!(text, "" | "null") && time::parse_rfc3339(text).is_none() {
        return "<invalid>".to_owned();
    }
    time::age(text, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_the_type_of_their_column() {
        let column = |kind: &str, path: &str| json!({"name": "X", "type": kind, "jsonPath": path});
        let columns = Columns::of(&[
            column("string", ".spec.s"),
            column("string", ".spec.n"),
            column("string", ".spec.none"),
            column("string", ".spec.o"),
            column("string", ".spec.nosuch"),
            column("integer", ".spec.n"),
            column("integer", ".spec.f"),
            column("integer", ".spec.s"),
            column("number", ".spec.f"),
            column("boolean", ".spec.b"),
            column("boolean", ".spec.none"),
            column("date", ".spec.d"),
            column("date", ".spec.s"),
        ]);
        let object = json!({"metadata": {"name": "w"}, "spec": {
            "s": "x", "n": 3, "f": 2.75, "b": true, "none": null, "o": {"k": ["<"]}, "d": "1970-01-01T00:00:00Z"
        }});
        assert_eq!(
            columns.cells(&object, 120),
            [
                json!("w"),
                json!("x"),
                json!("3"),
                json!("<no value>"),
                json!(r#"{"k":["\u003c"]}"#),
                json!(null),
                json!(3),
                json!(2),
                json!(null),
                json!(2.75),
                json!(true),
                json!(null),
                json!("2m"),
                json!("<invalid>"),
            ]
        );
    }

    #[test]
    fn a_crd_without_columns_shows_the_age() {
        let columns = Columns::of(&[]);
        let names: Vec<&str> = columns.definitions().iter().map(|column| column.str_at("name")).collect();
        assert_eq!(names, ["Name", "Age"]);
        assert!(columns.definitions()[1].str_at("description").starts_with("CreationTimestamp is"));
        let object = json!({"metadata": {"name": "w", "creationTimestamp": "1970-01-01T00:00:00Z"}});
        assert_eq!(columns.cells(&object, 5), ["w", "5s"]);
    }

    #[test]
    fn paths_end_at_the_first_step_that_is_not_a_field() {
        let columns = [
            ".spec.a",
            ".status.conditions[?(@.type==\"Ready\")].status",
            "..name",
            ".metadata.labels.a\\.b",
        ];
        let columns = columns.map(|path| json!({"name": "X", "type": "string", "jsonPath": path}));
        let expected: [&[&str]; 5] = [
            &["metadata", "name"],
            &["spec", "a"],
            &["status", "conditions"],
            &[],
            &["metadata", "labels", "a.b"],
        ];
        assert_eq!(Columns::of(&columns).paths(), expected);
    }

    #[test]
    fn columns_stop_at_the_first_invalid_path() {
        let columns = Columns::of(&[
            json!({"name": "A", "type": "string", "jsonPath": ".a"}),
            json!({"name": "B", "type": "string", "jsonPath": ".b["}),
            json!({"name": "C", "type": "string", "jsonPath": ".c"}),
        ]);
        assert_eq!(columns.definitions().len(), 2);
    }
}
