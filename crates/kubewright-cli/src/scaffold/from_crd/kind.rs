//! The kind as a whole: names, printer columns and subresources.

use serde_json::{Map, Value, json};

use super::code::{self, Head};
use super::item::{Field, has_code, tidy};
use super::marks::literal;
use super::model::Model;
use super::{Generated, sample};
use crate::scaffold::{manifests, names};

/// Fields that kube's derive adds to every kind.
const COMMON: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Generates the types of a CRD with one version.
pub(crate) fn generate(definition: &Value, stored: bool) -> Generated {
    let from = From::new(definition);
    let mut model = Model::new(from.kind);
    model.share(&[&from.schema["properties"]["spec"], &from.schema["properties"]["status"]]);
    let (root, spec) = from.spec(&mut model);
    let status = from.status(&mut model);
    let mut lost = from.lost(status.is_some(), root == Root::Spec);
    lost.extend(std::mem::take(&mut model.lost));
    let (schema, about) = from.schema(root, &spec, status.as_ref());
    let kube = from.attributes(root, &spec, stored, status.is_some(), &about);
    let whose = format!("{} {}", names::article(from.kind), from.kind);
    let spec_name = format!("{}Spec", from.kind);
    let head = Head {
        about: &format!(
            "{}, version {} of {}.",
            from.kind,
            from.text("/spec/versions/0/name"),
            from.text("/spec/group")
        ),
        spec: &spec_name,
        kube,
        whose: &whose,
    };
    let code = code::file(&model, &head);
    let has_conditions = model.find(&format!("{}Status", from.kind)).is_some_and(|status| {
        let is_conditions = |field: &Field| field.name == "conditions" && field.rust == "Vec<Condition>";
        status.has_default && status.fields.iter().any(is_conditions)
    });
    let definition = from.definition(&schema, stored, status.is_some());
    let fields = match root {
        Root::Spec => Map::from_iter([("spec".to_owned(), sample::value(&spec.into()))]),
        Root::Fields => sample::value(&spec.into()).as_object().cloned().unwrap_or_default(),
    };
    let mut object = json!({
        "apiVersion": format!("{}/{}", from.text("/spec/group"), from.text("/spec/versions/0/name")),
        "kind": from.kind,
        "metadata": { "name": "sample" },
    });
    if let Value::Object(object) = &mut object {
        object.extend(fields.clone());
    }
    Generated {
        is_sample_taken: sample::is_taken(&definition, &object),
        code,
        definition,
        sample: fields,
        has_conditions,
        lost,
    }
}

/// Where the fields of a kind are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    Spec,
    /// Beside the metadata, without a spec.
    Fields,
}

/// A CRD to import.
struct From<'a> {
    definition: &'a Value,
    kind: &'a str,
    schema: &'a Value,
}

impl<'a> From<'a> {
    fn new(definition: &'a Value) -> Self {
        let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap_or(&Value::Null);
        Self { definition, kind: text("/spec/names/kind"), schema }
    }

    fn text(&self, pointer: &str) -> &'a str {
        self.definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn version(&self) -> &'a Value {
        self.definition.pointer("/spec/versions/0").unwrap_or(&Value::Null)
    }

    fn properties(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let properties = self.schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        properties.filter(|(name, _)| !COMMON.contains(&name.as_str()) && *name != "status")
    }

    /// The spec type. A kind without a spec, or with other fields beside it, gets one struct with all fields.
    fn spec(&self, model: &mut Model) -> (Root, Map<String, Value>) {
        let name = format!("{}Spec", self.kind);
        let fields: Vec<&String> = self.properties().map(|(name, _)| name).collect();
        let spec = self.schema["properties"].get("spec").and_then(Value::as_object);
        if let (["spec"], Some(spec)) =
            (fields.iter().map(|name| name.as_str()).collect::<Vec<_>>().as_slice(), spec)
        {
            return (Root::Spec, model.root(spec, &name, self.kind, "spec"));
        }
        let properties: Map<String, Value> =
            self.properties().map(|(name, field)| (name.clone(), field.clone())).collect();
        let required: Vec<Value> =
            self.schema["required"].as_array().into_iter().flatten().cloned().collect();
        let required: Vec<Value> = required
            .into_iter()
            .filter(|name| name.as_str().is_some_and(|name| properties.contains_key(name)))
            .collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        let said = model.root(schema.as_object().unwrap_or(&Map::new()), &name, self.kind, "fields");
        (Root::Fields, said)
    }

    /// The status type, if any.
    fn status(&self, model: &mut Model) -> Option<Map<String, Value>> {
        let empty = json!({ "type": "object" });
        let described = self.schema["properties"].get("status");
        let subresource = self.version().pointer("/subresources/status").is_some();
        let schema = described.or(subresource.then_some(&empty))?;
        let name = format!("{}Status", self.kind);
        schema.as_object().map(|schema| model.root(schema, &name, &name, "status"))
    }

    /// What cannot be expressed at the root of the CRD.
    fn lost(&self, has_status: bool, has_spec: bool) -> Vec<String> {
        let mut lost = Vec::new();
        let requires = |name: &str| {
            self.schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
        };
        if has_spec && !requires("spec") {
            lost.push("optional spec".to_owned());
        }
        if self.schema.get("description").and_then(Value::as_str).is_some_and(|about| has_code(&tidy(about)))
        {
            lost.push("description of the kind (contains code)".to_owned());
        }
        if requires("status") {
            lost.push("required status".to_owned());
        }
        if has_status && self.version().pointer("/subresources/status").is_none() {
            lost.push("status without the status subresource (now a subresource)".to_owned());
        }
        if self.schema["properties"]["metadata"]
            .as_object()
            .is_some_and(|meta| meta.contains_key("properties"))
        {
            lost.push("schema of metadata".to_owned());
        }
        for key in ["x-kubernetes-preserve-unknown-fields", "oneOf", "anyOf", "allOf", "not"] {
            if self.schema.get(key).is_some() {
                lost.push(format!("{key} of the root"));
            }
        }
        if self.definition["spec"]["preserveUnknownFields"] == true {
            lost.push("preserveUnknownFields".to_owned());
        }
        if self.text("/spec/conversion/strategy") == "Webhook" {
            lost.push("conversion webhook".to_owned());
        }
        let list = self.text("/spec/names/listKind");
        if !list.is_empty() && list != format!("{}List", self.kind) {
            lost.push(format!("list kind {list}"));
        }
        lost
    }

    /// The root schema and the kind's description.
    fn schema(
        &self,
        root: Root,
        spec: &Map<String, Value>,
        status: Option<&Map<String, Value>>,
    ) -> (Value, String) {
        let about = self
            .schema
            .get("description")
            .and_then(Value::as_str)
            .map(tidy)
            .filter(|about| !about.is_empty());
        // kube's derive writes it as a doc comment, and rustdoc would compile code in it.
        let about = about.filter(|about| !has_code(about)).unwrap_or_else(|| {
            format!("{} is the Schema for the {} API.", self.kind, self.text("/spec/names/plural"))
        });
        let mut schema = json!({ "type": "object", "description": about, "properties": manifests::common() });
        let required = self.required(root, spec);
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        match root {
            Root::Spec => schema["properties"]["spec"] = spec.clone().into(),
            Root::Fields => {
                let fields = spec.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
                for (name, field) in fields {
                    schema["properties"][name] = field;
                }
            }
        }
        if let Some(status) = status {
            schema["properties"]["status"] = status.clone().into();
        }
        if let Some(rules) = self.schema.get("x-kubernetes-validations") {
            schema["x-kubernetes-validations"] = rules.clone();
        }
        (schema, about)
    }

    /// The required fields of the root.
    fn required(&self, root: Root, spec: &Map<String, Value>) -> Vec<String> {
        let mut required: Vec<String> = match root {
            Root::Spec => vec!["spec".to_owned()],
            Root::Fields => {
                let fields = spec.get("required").and_then(Value::as_array).into_iter().flatten();
                fields.filter_map(Value::as_str).map(str::to_owned).collect()
            }
        };
        if self.requires_metadata() {
            required.push("metadata".to_owned());
        }
        required.sort_unstable();
        required
    }

    fn requires_metadata(&self) -> bool {
        self.schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == "metadata"))
    }

    /// The arguments of `#[kube(...)]`, formatted as rustfmt does.
    fn attributes(
        &self,
        root: Root,
        spec: &Map<String, Value>,
        stored: bool,
        has_status: bool,
        about: &str,
    ) -> Vec<String> {
        let version = self.version();
        let quoted = |name: &str, value: &str| format!("{name} = {value:?}");
        let mut made = vec![
            quoted("group", self.text("/spec/group")),
            quoted("version", self.text("/spec/versions/0/name")),
            quoted("kind", self.kind),
        ];
        let type_name = names::struct_name(self.kind);
        if type_name != self.kind {
            made.push(quoted("root", &type_name));
        }
        made.push(quoted("plural", self.text("/spec/names/plural")));
        made.extend(name_attributes(&self.definition["spec"]["names"]));
        if !stored {
            made.push("storage = false".to_owned());
        }
        if version["served"] == false {
            made.push("served = false".to_owned());
        }
        if version["deprecated"] == true {
            let warning = version["deprecationWarning"].as_str();
            made.push(warning.map_or_else(|| "deprecated".to_owned(), |text| quoted("deprecated", text)));
        }
        if self.text("/spec/scope") == "Namespaced" {
            made.push("namespaced".to_owned());
        }
        if root == Root::Fields {
            made.push("no_spec".to_owned());
        }
        if has_status {
            made.push(format!("status = \"{}Status\"", self.kind));
        }
        made.push(quoted("doc", about));
        if self.requires_metadata() {
            // kube's derive has no attribute for this, and accepts schemars attributes only behind a
            // `cfg_attr`.
            let required = literal(&self.required(root, spec).into());
            made.push(quoted(
                "attr",
                &format!("cfg_attr(true, schemars(extend(\"required\" = {required})))"),
            ));
        }
        for (key, value) in self.definition["metadata"]["annotations"].as_object().into_iter().flatten() {
            made.push(call("annotation", &[format!("{key:?}"), literal(value)]));
        }
        if let Some(scale) = version.pointer("/subresources/scale") {
            let paths = [
                ("spec_replicas_path", "specReplicasPath"),
                ("status_replicas_path", "statusReplicasPath"),
                ("label_selector_path", "labelSelectorPath"),
            ];
            made.push(call("scale", &named(scale, &paths)));
        }
        for path in version["selectableFields"].as_array().into_iter().flatten() {
            made.push(quoted("selectable", path["jsonPath"].as_str().unwrap_or_default()));
        }
        for column in version["additionalPrinterColumns"].as_array().into_iter().flatten() {
            let columns = [
                ("name", "name"),
                ("type_", "type"),
                ("json_path", "jsonPath"),
                ("description", "description"),
                ("format", "format"),
                ("priority", "priority"),
            ];
            made.push(call("printcolumn", &named(column, &columns)));
        }
        for rule in self.schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            made.push(format!("validation = {}", rule_of_kube(rule)));
        }
        made
    }

    /// The CRD that `kubewright manifests` will generate for this version.
    fn definition(&self, schema: &Value, stored: bool, has_status: bool) -> Value {
        let version = self.version();
        let mut names = self.definition["spec"]["names"].clone();
        names["listKind"] = format!("{}List", self.kind).into();
        if names.get("singular").is_none_or(|singular| singular == "") {
            names["singular"] = self.kind.to_lowercase().into();
        }
        let mut subresources = json!({});
        if has_status {
            subresources["status"] = json!({});
        }
        if let Some(scale) = version.pointer("/subresources/scale") {
            subresources["scale"] = scale.clone();
        }
        let mut made = json!({
            "name": version["name"],
            "schema": { "openAPIV3Schema": schema },
            "served": version["served"] != false,
            "storage": stored,
        });
        if subresources != json!({}) {
            made["subresources"] = subresources;
        }
        for key in ["additionalPrinterColumns", "deprecated", "deprecationWarning", "selectableFields"] {
            if let Some(value) = version.get(key) {
                made[key] = value.clone();
            }
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": self.definition["metadata"],
            "spec": {
                "group": self.definition["spec"]["group"],
                "names": names,
                "scope": self.definition["spec"]["scope"],
                "versions": [made],
            },
        })
    }
}

/// The `#[kube(...)]` arguments for names that are not derived from the kind.
pub(crate) fn name_attributes(names: &Value) -> Vec<String> {
    let text = |key: &str| names[key].as_str().unwrap_or_default();
    let all = |key: &str| names[key].as_array().into_iter().flatten();
    let mut made = Vec::new();
    if !text("singular").is_empty() && text("singular") != text("kind").to_lowercase() {
        made.push(format!("singular = {}", literal(&names["singular"])));
    }
    made.extend(all("shortNames").map(|name| format!("shortname = {}", literal(name))));
    made.extend(all("categories").map(|name| format!("category = {}", literal(name))));
    made
}

/// The given arguments under kube's names.
fn named(from: &Value, keys: &[(&str, &str)]) -> Vec<String> {
    let given = keys.iter().filter_map(|(name, key)| Some((name, from.get(*key)?)));
    given.map(|(name, value)| format!("{name} = {}", literal(value))).collect()
}

/// An argument with nested arguments, wrapped as rustfmt does.
fn call(name: &str, arguments: &[String]) -> String {
    let line = arguments.join(", ");
    if line.len() <= 70 {
        return format!("{name}({line})");
    }
    format!("{name}(\n        {}\n    )", arguments.join(",\n        "))
}

/// A CEL rule in kube's notation.
fn rule_of_kube(rule: &Value) -> String {
    let said = |key: &str| rule.get(key).and_then(Value::as_str).map(super::marks::text);
    let mut made = format!("kube::core::Rule::new({})", said("rule").unwrap_or_default());
    if let Some(message) = said("message") {
        made = format!("{made}.message({message})");
    } else if let Some(expression) = said("messageExpression") {
        made = format!("{made}.message(kube::core::Message::Expression({expression}.into()))");
    }
    if let Some(path) = said("fieldPath") {
        made = format!("{made}.field_path({path})");
    }
    if let Some(reason) = rule.get("reason").and_then(Value::as_str) {
        made = format!("{made}.reason(kube::core::Reason::{reason})");
    }
    if rule.get("optionalOldSelf") == Some(&Value::Bool(true)) {
        made = format!("{made}.optional_old_self(true)");
    }
    made
}
