//! Generates `parameters.txt`: the query parameters of options kinds such as ListOptions.
//!
//! A parameter is a field of the kind's Go struct. Its description comes from Go's generated docs. The names
//! must equal those of a running server.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::golang::{GoField, Structs};

const HEADER: &str = "\
# Query parameters of Kubernetes v1.36's operations, by the options kind that they come from; derived by
# `cargo xtask facts`. The format is described in src/openapi/parameters.rs.
";

/// Packages and the options kinds that they declare.
const OPTIONS: [(&str, &[&str]); 2] = [
    (
        "meta.v1",
        &["ListOptions", "GetOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "DeleteOptions"],
    ),
    (
        "core.v1",
        &[
            "PodLogOptions",
            "PodAttachOptions",
            "PodExecOptions",
            "PodPortForwardOptions",
            "PodProxyOptions",
            "ServiceProxyOptions",
            "NodeProxyOptions",
        ],
    ),
];

/// The only parameter without an options kind; the HTTP layer handles it.
const OF_NO_KIND: &str = "pretty";

/// Field descriptions from Go's generated docs, by type and field.
pub(crate) struct Docs(BTreeMap<(String, String), String>);

impl Docs {
    /// Parses the docs of the packages in [`OPTIONS`].
    pub(crate) fn read(sources: &Path) -> Result<Self> {
        let mut docs = BTreeMap::new();
        for (package, folder) in
            [("meta.v1", "k8s.io/apimachinery/pkg/apis/meta/v1"), ("core.v1", "k8s.io/api/core/v1")]
        {
            let file = sources.join(folder).join("types_swagger_doc_generated.go");
            let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
            docs.extend(parse(package, &text));
        }
        Ok(Self(docs))
    }
}

/// Parses `var map_Kind = map[string]string{`, followed by lines of `"field": "text",`.
fn parse(package: &str, text: &str) -> BTreeMap<(String, String), String> {
    let mut docs = BTreeMap::new();
    let mut kind = None;
    for line in text.lines() {
        let head = line.strip_prefix("var map_").and_then(|rest| rest.split_once(" = map[string]string{"));
        if let Some((name, _)) = head {
            kind = Some(format!("{package}.{name}"));
        } else if line.starts_with('}') {
            kind = None;
        } else if let Some(kind) = &kind
            && let Some((field, text)) = line.trim().trim_end_matches(',').split_once(':')
            // For these texts, Go's quoting equals JSON's.
            && let (Ok(field), Ok(text)) = (serde_json::from_str(field), serde_json::from_str(text))
        {
            docs.insert((kind.clone(), field), text);
        }
    }
    docs
}

pub(crate) fn derive(served: &Value, go: &Structs, docs: &Docs) -> Result<String> {
    let mut text = String::from(HEADER);
    let mut names = BTreeSet::from([OF_NO_KIND.to_owned()]);
    for (package, kinds) in OPTIONS {
        for kind in kinds {
            writeln!(text, "{kind}")?;
            let name = format!("{package}.{kind}");
            let mut fields = go.fields(&name);
            fields.retain(|field| !matches!(field.json.as_str(), "kind" | "apiVersion"));
            fields.sort_by(|a, b| a.json.cmp(&b.json));
            // A query parameter cannot hold a struct.
            for field in fields.into_iter().filter(|field| !go.is_struct(&name, field)) {
                let doc = docs.0.get(&(name.clone(), field.json.clone()));
                let doc = doc.with_context(|| format!("no documentation for {name}.{}", field.json))?;
                writeln!(text, "\t{}\t{}\t{}", field.json, query_type(&field), escape(doc))?;
                names.insert(field.json);
            }
        }
    }
    let served = served_names(served);
    ensure!(names == served, "the server's query parameters are {served:?}, not {names:?}");
    Ok(text)
}

/// The OpenAPI type of a parameter. A list is a repeatable parameter of its element type; named types are
/// strings.
fn query_type(field: &GoField) -> &'static str {
    match field.ty.trim_start_matches("[]") {
        "bool" => "boolean",
        "int32" | "int64" => "integer",
        _ => "string",
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', r"\\").replace('\n', r"\n").replace('\t', r"\t")
}

/// The names of all query parameters of a running server.
fn served_names(served: &Value) -> BTreeSet<String> {
    let documents = served.as_object().into_iter().flatten();
    let operations = documents.flat_map(|(_, of)| of["operations"].as_object().into_iter().flatten());
    let parameters = operations.flat_map(|(_, of)| of["parameters"].as_array().into_iter().flatten());
    parameters.filter_map(|name| name.as_str()?.strip_prefix("query:")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_are_parsed_by_type_and_field() {
        let text = "var map_Pod = map[string]string{\n\t\"\":     \"A \\\"pod\\\".\",\n\t\"spec\": \"Its:\\n\\nspec\",\n}\n\n\
                    func (Pod) SwaggerDoc() map[string]string {\n\t\"x\": \"y\",\n}\n";
        let docs: Vec<_> = parse("core.v1", text).into_iter().collect();
        let of = |field: &str, text: &str| (("core.v1.Pod".to_owned(), field.to_owned()), text.to_owned());
        assert_eq!(docs, [of("", "A \"pod\"."), of("spec", "Its:\n\nspec")]);
    }

    #[test]
    fn a_description_is_written_on_one_line() {
        assert_eq!(escape("a\n\tb\\n"), r"a\n\tb\\n");
    }
}
