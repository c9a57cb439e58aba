//! Generates `resources.txt`, `columns.txt` and `bootstrap.txt` from a server's discovery documents, table
//! columns and bootstrap objects.
//!
//! Groups and resources keep the server's order, because clients see it.

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
        for group in discovery[root]["items"]
            .as_array()
            .with_context(|| format!("discovery of {root} has no groups"))?
        {
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

/// The table columns, one per line, below a line with the resources that share them.
pub(crate) fn columns(tables: &Value) -> Result<String> {
    let mut shared: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (path, columns) in tables.as_object().context("the tables are not a JSON object")? {
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
        "# Table columns of kube-apiserver v1.36, derived by `cargo xtask facts`.\n\
         # A line of resource paths, then one line per column: name, type, format, priority, description.\n",
    );
    for (paths, body) in blocks {
        writeln!(text, "{paths}")?;
        text.push_str(&body);
    }
    Ok(text)
}

/// The columns of kinds without their own, such as LimitRange. Custom resources use the same descriptions.
pub(crate) fn standard_columns(columns: &str) -> Result<String> {
    let mut lines = columns.lines();
    lines
        .find(|line| line.starts_with("api/v1/limitranges"))
        .context("the table columns of api/v1/limitranges are missing")?;
    let mut text =
        String::from("# Table columns of kinds without their own columns, derived by `cargo xtask facts`.\n");
    for line in lines.take_while(|line| line.starts_with('\t')) {
        writeln!(text, "{line}")?;
    }
    Ok(text)
}

/// The objects that exist after startup, one per line: resource path, then compact JSON.
pub(crate) fn bootstrap(objects: &Value) -> Result<String> {
    let mut text = String::from(
        "# Objects in a new cluster of kube-apiserver v1.36, derived by `cargo xtask facts`.\n\
         # A resource path and the object; uid, resourceVersion and times are set at startup.\n",
    );
    for (path, items) in objects.as_object().context("the bootstrap objects are not a JSON object")? {
        for item in items.as_array().into_iter().flatten() {
            let mut object = item.clone();
            if let Some(meta) = object["metadata"].as_object_mut() {
                for set_by_server in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
                    meta.remove(set_by_server);
                }
            }
            // Computed on each request, never stored.
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

/// The rules of aggregated ClusterRoles among the bootstrap objects, one role per line: name, then compact
/// JSON.
pub(crate) fn aggregated(objects: &Value) -> Result<String> {
    let mut roles = objects["apis/rbac.authorization.k8s.io/v1/clusterroles"]
        .as_array()
        .context("no ClusterRoles in bootstrap-objects.json")?
        .clone();
    roles.sort_by_key(|role| role["metadata"]["name"].to_string());
    // A ClusterRole may aggregate other aggregated ClusterRoles, so this takes several rounds.
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
        "# Rules of the aggregated ClusterRoles in bootstrap.txt, derived by `cargo xtask facts`.\n\
         # A name and the rules that the aggregation controller writes.\n",
    );
    for role in roles.iter().filter(|role| role["aggregationRule"].is_object()) {
        let name = role["metadata"]["name"].as_str().context("ClusterRole has no name")?;
        writeln!(text, "{name} {}", role["rules"])?;
    }
    Ok(text)
}

/// The deduplicated rules of the ClusterRoles that `role` selects.
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
