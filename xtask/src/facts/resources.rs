//! Turns a server's own discovery, table columns and first objects into `resources.txt`, `columns.txt` and
//! `bootstrap.txt`.
//!
//! The order of groups and resources is the server's own; it is what clients are shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

const HEADER: &str = "\
# Resources that a kube-apiserver v1.36 serves, derived by `cargo xtask facts`, in discovery order.
# group/version plural Kind scope singular short,names categories verbs storage-hash subresource=group/version.Kind:verbs...
# `*` is create,delete,deletecollection,get,list,patch,update,watch; `-` is nothing.
";

const ALL_VERBS: &str = "create,delete,deletecollection,get,list,patch,update,watch";

pub(crate) fn derive(discovery: &Value, legacy: &Value) -> Result<String> {
    let mut text = String::from(HEADER);
    for root in ["/api", "/apis"] {
        for group in discovery[root]["items"].as_array().context("no groups")? {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            for version in group["versions"].as_array().into_iter().flatten() {
                let group_version = format!("{name}/{}", string(&version["version"]));
                let path =
                    if name.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{group_version}") };
                for resource in version["resources"].as_array().into_iter().flatten() {
                    line(&mut text, &group_version, resource, &legacy[&path])?;
                }
            }
        }
    }
    Ok(text)
}

fn line(text: &mut String, group_version: &str, resource: &Value, legacy: &Value) -> Result<()> {
    let plural = string(&resource["resource"]);
    let hash = legacy["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|r| r["name"] == plural)
        .and_then(|r| r["storageVersionHash"].as_str());
    write!(
        text,
        "{group_version} {plural} {} {} {} {} {} {} {}",
        string(&resource["responseKind"]["kind"]),
        string(&resource["scope"]).to_lowercase(),
        string(&resource["singularResource"]),
        list(&resource["shortNames"]),
        list(&resource["categories"]),
        verbs(&resource["verbs"]),
        hash.unwrap_or("-"),
    )?;
    for sub in resource["subresources"].as_array().into_iter().flatten() {
        let kind = &sub["responseKind"];
        write!(text, " {}=", string(&sub["subresource"]))?;
        if !string(&kind["version"]).is_empty() {
            write!(text, "{}/{}.", string(&kind["group"]), string(&kind["version"]))?;
        }
        write!(text, "{}:{}", string(&kind["kind"]), verbs(&sub["verbs"]))?;
    }
    text.push('\n');
    Ok(())
}

fn verbs(value: &Value) -> String {
    let verbs = list(value);
    if verbs == ALL_VERBS { "*".to_owned() } else { verbs }
}

fn list(value: &Value) -> String {
    let words: Vec<&str> = value.as_array().into_iter().flatten().map(string).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(",") }
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The table columns of each resource, a line each, below a line that names the resources that share them.
pub(crate) fn columns(tables: &Value) -> Result<String> {
    let mut shared: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (path, columns) in tables.as_object().context("no tables")? {
        let mut body = String::new();
        for column in columns.as_array().into_iter().flatten() {
            writeln!(
                body,
                "\t{}\t{}\t{}\t{}\t{}",
                string(&column["name"]),
                string(&column["type"]),
                string(&column["format"]),
                column["priority"],
                string(&column["description"]).replace('\n', "\\n"),
            )?;
        }
        shared.entry(body).or_default().push(path);
    }
    let mut blocks: Vec<(String, String)> =
        shared.into_iter().map(|(body, paths)| (paths.join(" "), body)).collect();
    blocks.sort();
    let mut text = String::from(
        "# Columns of the Tables that a kube-apiserver v1.36 answers, derived by `cargo xtask facts`.\n\
         # A line of resource paths, then a line a column: name, type, format, priority, description.\n",
    );
    for (paths, body) in blocks {
        writeln!(text, "{paths}")?;
        text.push_str(&body);
    }
    Ok(text)
}

/// The columns of kinds that have none of their own, limit ranges among them: custom resources need their texts.
pub(crate) fn standard_columns(columns: &str) -> Result<String> {
    let mut lines = columns.lines();
    lines.find(|line| line.starts_with("api/v1/limitranges")).context("no columns of limitranges")?;
    let mut text = String::from(
        "# The columns of kinds without columns of their own, derived by `cargo xtask facts`.\n",
    );
    for line in lines.take_while(|line| line.starts_with('\t')) {
        writeln!(text, "{line}")?;
    }
    Ok(text)
}

/// The objects that are there right after the start, a line each: resource path, then compact JSON.
pub(crate) fn bootstrap(objects: &Value) -> Result<String> {
    let mut text = String::from(
        "# Objects that a fresh kube-apiserver v1.36 holds, derived by `cargo xtask facts`.\n\
         # A resource path and the object; uid, resourceVersion and times are set at the start.\n",
    );
    for (path, items) in objects.as_object().context("no objects")? {
        for item in items.as_array().into_iter().flatten() {
            let mut object = item.clone();
            if let Some(meta) = object["metadata"].as_object_mut() {
                for set_by_server in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
                    meta.remove(set_by_server);
                }
            }
            // Computed anew on each request, never stored.
            if path != "api/v1/componentstatuses" {
                writeln!(
                    text,
                    "{path} {}",
                    Value::Object(object.as_object().cloned().unwrap_or_else(Map::new))
                )?;
            }
        }
    }
    Ok(text)
}

/// The rules of the ClusterRoles among those objects that are the sum of others, a line each: name, then compact
/// JSON.
pub(crate) fn aggregated(objects: &Value) -> Result<String> {
    let mut roles = objects["apis/rbac.authorization.k8s.io/v1/clusterroles"]
        .as_array()
        .context("no ClusterRoles among the first objects")?
        .clone();
    roles.sort_by_key(|role| role["metadata"]["name"].to_string());
    // Sums of sums take several rounds.
    loop {
        let before = roles.clone();
        for role in &mut roles {
            if role["aggregationRule"].is_object() {
                role["rules"] = sum(&before, role);
            }
        }
        if roles == before {
            break;
        }
    }
    let mut text = String::from(
        "# Rules of the ClusterRoles in bootstrap.txt that are the sum of others, derived by `cargo xtask facts`.\n\
         # A name and the rules that a cluster's controller writes into it.\n",
    );
    for role in roles.iter().filter(|role| role["aggregationRule"].is_object()) {
        let name = role["metadata"]["name"].as_str().context("a ClusterRole without a name")?;
        writeln!(text, "{name} {}", role["rules"])?;
    }
    Ok(text)
}

/// The rules of what a role selects, each once.
fn sum(roles: &[Value], role: &Value) -> Value {
    let mut rules: Vec<Value> = Vec::new();
    let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
    for labels in selectors.into_iter().flatten().filter_map(|selector| selector["matchLabels"].as_object()) {
        let is_selected = |other: &&Value| {
            let own = &other["metadata"]["labels"];
            labels.iter().all(|(key, value)| &own[key] == value)
        };
        for rule in roles.iter().filter(is_selected).filter_map(|other| other["rules"].as_array()).flatten() {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    rules.into()
}
