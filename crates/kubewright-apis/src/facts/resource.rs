//! The resources that a server serves: rows of `resources.txt`, `columns.txt` and `bootstrap.txt`.

use std::sync::LazyLock;

use kubewright_apimachinery::types::lines;

/// Where objects of a resource live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In the cluster.
    Cluster,
}

/// One resource of a group and version.
#[derive(Debug)]
pub struct Resource {
    /// API group, empty for core.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Name in URLs.
    pub plural: &'static str,
    /// Kind of the objects.
    pub kind: &'static str,
    /// Namespaced or not.
    pub scope: Scope,
    /// For people.
    pub singular: &'static str,
    /// Abbreviations that kubectl takes.
    pub short_names: Box<[&'static str]>,
    /// Groups of resources that kubectl takes, such as `all`.
    pub categories: Box<[&'static str]>,
    /// What can be done with it.
    pub verbs: Box<[&'static str]>,
    /// Hash of the storage version, as discovery tells it.
    pub storage_hash: Option<&'static str>,
    /// `status`, `scale` and others.
    pub subresources: Box<[Subresource]>,
}

/// One subresource.
#[derive(Debug)]
pub struct Subresource {
    /// Last part of the URL.
    pub name: &'static str,
    /// Group of what it answers, where that is not the resource's own.
    pub group: Option<&'static str>,
    /// Version of what it answers, where that is not the resource's own.
    pub version: Option<&'static str>,
    /// Kind of what it answers.
    pub kind: &'static str,
    /// What can be done with it.
    pub verbs: Box<[&'static str]>,
}

/// One column of a resource's Table.
#[derive(Debug)]
pub struct Column {
    /// Heading.
    pub name: &'static str,
    /// OpenAPI type of the cells.
    pub ty: &'static str,
    /// OpenAPI format of the cells, or `name`.
    pub format: &'static str,
    /// 0 is always shown, more only with `-o wide`.
    pub priority: i32,
    /// For people.
    pub description: String,
}

impl Resource {
    /// The subresource called `name`.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Objects live in a namespace.
    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }
}

static RESOURCES: LazyLock<Vec<Resource>> = LazyLock::new(|| {
    let lines = lines(include_str!("../../facts/resources.txt"));
    lines
        .map(|line| parse(line).unwrap_or_else(|| panic!("facts: bad line in resources.txt: {line}")))
        .collect()
});

/// Every resource, in discovery order: core first, then groups as a server lists them.
pub fn resources() -> &'static [Resource] {
    &RESOURCES
}

const ALL_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

fn parse(line: &'static str) -> Option<Resource> {
    let mut words = line.split(' ');
    let (group, version) = words.next()?.split_once('/')?;
    Some(Resource {
        group,
        version,
        plural: words.next()?,
        kind: words.next()?,
        scope: if words.next()? == "namespaced" { Scope::Namespaced } else { Scope::Cluster },
        singular: words.next()?,
        short_names: list(words.next()?),
        categories: list(words.next()?),
        verbs: list(words.next()?),
        storage_hash: words.next().filter(|hash| *hash != "-"),
        subresources: words.map(subresource).collect::<Option<_>>()?,
    })
}

fn subresource(word: &'static str) -> Option<Subresource> {
    let (name, rest) = word.split_once('=')?;
    let (kind, verbs) = rest.split_once(':')?;
    let (group_version, kind) = match kind.rsplit_once('.') {
        Some((group_version, kind)) => (Some(group_version.split_once('/')?), kind),
        None => (None, kind),
    };
    Some(Subresource {
        name,
        group: group_version.map(|(group, _)| group),
        version: group_version.map(|(_, version)| version),
        kind,
        verbs: list(verbs),
    })
}

fn list(word: &'static str) -> Box<[&'static str]> {
    match word {
        "-" => [].into(),
        "*" => ALL_VERBS.into(),
        _ => word.split(',').collect(),
    }
}

/// The Table columns of a resource, read from the text when they are asked for.
pub fn columns(group: &str, version: &str, plural: &str) -> Option<Vec<Column>> {
    let path = path(group, version, plural);
    let mut lines = include_str!("../../facts/columns.txt").lines();
    lines.find(|line| !line.starts_with(['#', '\t']) && line.split(' ').any(|p| p == path))?;
    lines.take_while(|line| line.starts_with('\t')).map(column).collect()
}

fn column(line: &'static str) -> Option<Column> {
    let mut cells = line[1..].split('\t');
    Some(Column {
        name: cells.next()?,
        ty: cells.next()?,
        format: cells.next()?,
        priority: cells.next()?.parse().ok()?,
        description: cells.next()?.replace("\\n", "\n"),
    })
}

/// The objects that a fresh server holds: resource path (`api/v1/namespaces`) and JSON text.
pub fn bootstrap_objects() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = lines(include_str!("../../facts/bootstrap.txt"));
    lines.filter_map(|line| line.split_once(' '))
}

/// The ClusterRoles among them that are the sum of others, and the JSON of the rules that they come to.
pub fn aggregated_roles() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = lines(include_str!("../../facts/aggregated.txt"));
    lines.filter_map(|line| line.split_once(' '))
}

fn path(group: &str, version: &str, plural: &str) -> String {
    if group.is_empty() {
        format!("api/{version}/{plural}")
    } else {
        format!("apis/{group}/{version}/{plural}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::type_of_kind;

    fn find(group: &str, plural: &str) -> &'static Resource {
        resources().iter().find(|r| r.group == group && r.plural == plural).unwrap()
    }

    #[test]
    fn a_deployment_is_namespaced_with_status_and_scale() {
        let deployments = find("apps", "deployments");
        assert!(deployments.namespaced());
        assert_eq!(&*deployments.short_names, ["deploy"]);
        assert_eq!(deployments.subresource("status").unwrap().kind, "Deployment");
        let scale = deployments.subresource("scale").unwrap();
        assert_eq!((scale.group, scale.version, scale.kind), (Some("autoscaling"), Some("v1"), "Scale"));
    }

    #[test]
    fn every_resource_has_a_type_and_every_stored_one_its_columns() {
        for r in resources() {
            assert!(
                type_of_kind(r.group, r.version, r.kind).is_some(),
                "{}/{} {}",
                r.group,
                r.version,
                r.kind
            );
            if r.verbs.contains(&"list") {
                assert!(columns(r.group, r.version, r.plural).is_some(), "no columns for {}", r.plural);
            }
        }
        assert!(resources().len() > 60);
    }

    #[test]
    fn bootstrap_objects_are_json_of_known_resources() {
        let mut count = 0;
        for (path, text) in bootstrap_objects() {
            serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert!(resources().iter().any(|r| super::path(r.group, r.version, r.plural) == path), "{path}");
            count += 1;
        }
        assert!(count > 150, "{count} objects");
    }
}
