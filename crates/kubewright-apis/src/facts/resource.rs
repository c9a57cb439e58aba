//! Built-in resources: rows of `resources.txt`, `columns.txt` and `bootstrap.txt`.

use std::sync::LazyLock;

use kubewright_apimachinery::types::lines;

/// The scope of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Objects are in a namespace.
    Namespaced,
    /// Objects are cluster-scoped.
    Cluster,
}

/// One resource of a group and version.
#[derive(Debug)]
pub struct Resource {
    /// The API group; empty for core.
    pub group: &'static str,
    /// The API version.
    pub version: &'static str,
    /// The plural name in URLs.
    pub plural: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The scope.
    pub scope: Scope,
    /// The singular name.
    pub singular: &'static str,
    /// Short names for kubectl.
    pub short_names: Box<[&'static str]>,
    /// Categories such as `all`.
    pub categories: Box<[&'static str]>,
    /// The supported verbs.
    pub verbs: Box<[&'static str]>,
    /// The storage version hash in discovery.
    pub storage_hash: Option<&'static str>,
    /// Subresources such as `status` and `scale`.
    pub subresources: Box<[Subresource]>,
}

/// One subresource.
#[derive(Debug)]
pub struct Subresource {
    /// The name in URLs.
    pub name: &'static str,
    /// The group of its kind, if it differs from the resource's.
    pub group: Option<&'static str>,
    /// The version of its kind, if it differs from the resource's.
    pub version: Option<&'static str>,
    /// The kind of its requests and responses.
    pub kind: &'static str,
    /// The supported verbs.
    pub verbs: Box<[&'static str]>,
}

/// A table column of a resource.
#[derive(Debug)]
pub struct Column {
    /// The header.
    pub name: &'static str,
    /// OpenAPI type of the cells.
    pub ty: &'static str,
    /// OpenAPI format of the cells, or `name`.
    pub format: &'static str,
    /// 0 for columns that are always shown, 1 for `-o wide`.
    pub priority: i32,
    /// The description.
    pub description: String,
}

impl Resource {
    /// The subresource with this name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Whether the resource is namespaced.
    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }
}

static RESOURCES: LazyLock<Vec<Resource>> = LazyLock::new(|| {
    let lines = lines(include_str!("../../facts/resources.txt"));
    lines.map(|line| parse(line).unwrap_or_else(|| panic!("invalid line in resources.txt: {line}"))).collect()
});

/// All resources in discovery order: core first, then the groups in the server's order.
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

/// The table columns of a resource. Parsed on each call.
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

/// The objects of a new cluster: resource path (`api/v1/namespaces`) and JSON.
pub fn bootstrap_objects() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = lines(include_str!("../../facts/bootstrap.txt"));
    lines.filter_map(|line| line.split_once(' '))
}

/// The aggregated ClusterRoles among the bootstrap objects, and their rules as JSON.
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
    fn bootstrap_objects_are_valid_json_of_known_resources() {
        let mut count = 0;
        for (path, text) in bootstrap_objects() {
            serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert!(resources().iter().any(|r| super::path(r.group, r.version, r.plural) == path), "{path}");
            count += 1;
        }
        assert!(count > 150, "{count} objects");
    }
}
