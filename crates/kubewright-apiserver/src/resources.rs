//! Which resources are served, and under which paths.
//!
//! Built-in resources are rows of the facts table, shared by all servers of a process. [`Registry`] is what
//! one server serves; it is replaced whole when that changes, so that a request sees one state of it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use kubewright_apimachinery::facts::{self, Type};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::status::Qualified;

type Text = Cow<'static, str>;

/// One resource of one group and version.
#[derive(Debug)]
pub(crate) struct Served {
    group: Text,
    version: Text,
    plural: Text,
    kind: Text,
    singular: Text,
    namespaced: bool,
    pub(crate) short_names: Vec<Text>,
    pub(crate) categories: Vec<Text>,
    pub(crate) verbs: Vec<&'static str>,
    /// Hash of the storage version, as discovery tells it.
    pub(crate) storage_hash: Option<Text>,
    pub(crate) subresources: Vec<Subresource>,
    /// The type of its objects.
    pub(crate) ty: &'static Type,
    /// Name in storage: shared by every version and view of the same objects.
    pub(crate) storage: Arc<str>,
    /// Group and version in which its objects are stored, where that is not its own.
    stored: Option<Gvk<'static>>,
    /// A number of its own, to tag encodings with.
    pub(crate) tag: u64,
}

/// One subresource.
#[derive(Debug)]
pub(crate) struct Subresource {
    pub(crate) name: Text,
    /// Group and version of what it answers, where those are not the resource's own.
    pub(crate) group_version: Option<(Text, Text)>,
    pub(crate) kind: Text,
    pub(crate) verbs: Vec<&'static str>,
}

impl Served {
    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn plural(&self) -> &str {
        &self.plural
    }

    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    pub(crate) fn singular(&self) -> &str {
        &self.singular
    }

    pub(crate) fn gvk(&self) -> Gvk<'_> {
        Gvk { group: &self.group, version: &self.version, kind: &self.kind }
    }

    /// What objects are stored as.
    pub(crate) fn stored(&self) -> Gvk<'_> {
        self.stored.unwrap_or_else(|| self.gvk())
    }

    /// Objects are stored as they are shown here.
    pub(crate) fn shows_stored(&self) -> bool {
        self.stored.is_none()
    }

    /// The resource, as messages name it.
    pub(crate) fn qualified(&self) -> Qualified<'_> {
        Qualified { group: &self.group, name: &self.plural }
    }

    pub(crate) fn namespaced(&self) -> bool {
        self.namespaced
    }

    pub(crate) fn can(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Objects are kept in storage; others are answered on the spot.
    pub(crate) fn is_stored(&self) -> bool {
        self.can("list") && self.plural != "componentstatuses"
    }

    /// The key of an object in storage.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }

    fn built_in(facts: &'static facts::Resource, tag: u64) -> Option<Self> {
        let ty = facts::type_of_kind(facts.group, facts.version, facts.kind)?;
        // Two views of one Event, and two versions of one autoscaler.
        let (storage, stored) = match (facts.group, facts.version, facts.plural) {
            ("events.k8s.io", _, "events") => {
                ("events".to_owned(), Some(Gvk { group: "", version: "v1", kind: "Event" }))
            }
            ("autoscaling", "v1", plural) => {
                let stored = Gvk { group: facts.group, version: "v2", kind: facts.kind };
                (format!("autoscaling/{plural}"), Some(stored))
            }
            ("", _, plural) => (plural.to_owned(), None),
            (group, _, plural) => (format!("{group}/{plural}"), None),
        };
        let texts = |words: &[&'static str]| words.iter().map(|word| Cow::Borrowed(*word)).collect();
        let subresource = |sub: &'static facts::Subresource| Subresource {
            name: sub.name.into(),
            group_version: sub.group.zip(sub.version).map(|(group, version)| (group.into(), version.into())),
            kind: sub.kind.into(),
            verbs: sub.verbs.to_vec(),
        };
        Some(Self {
            group: facts.group.into(),
            version: facts.version.into(),
            plural: facts.plural.into(),
            kind: facts.kind.into(),
            singular: facts.singular.into(),
            namespaced: facts.namespaced(),
            short_names: texts(&facts.short_names),
            categories: texts(&facts.categories),
            verbs: facts.verbs.to_vec(),
            storage_hash: facts.storage_hash.map(Cow::Borrowed),
            subresources: facts.subresources.iter().map(subresource).collect(),
            ty,
            storage: storage.into(),
            stored,
            tag,
        })
    }
}

/// What a server serves.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    built_in: &'static BuiltIn,
}

impl Default for Registry {
    fn default() -> Self {
        Self { built_in: &BUILT_IN }
    }
}

impl Registry {
    /// Every resource, in discovery order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Served>> {
        self.built_in.list.iter()
    }

    /// A resource by its path.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Served>> {
        self.built_in.by_path.get(&(group, version, plural)).map(|at| &self.built_in.list[*at])
    }

    /// The resource under whose version objects of `storage` are stored.
    pub(crate) fn stored(&self, storage: &str) -> Option<&Arc<Served>> {
        self.built_in.by_storage.get(storage).map(|at| &self.built_in.list[*at])
    }

    /// Something of this group and version is served.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.all().any(|served| served.group == group && served.version == version)
    }
}

/// The kinds of a real server's own scheme: every version, served or not, with lists and options.
pub(crate) fn is_registered(gvk: Gvk<'_>) -> bool {
    const OLD: [(&str, &str); 3] = [("apps", "v1beta1"), ("apps", "v1beta2"), ("extensions", "v1beta1")];
    let type_of = |version| facts::type_of_kind(gvk.group, version, gvk.kind);
    type_of(gvk.version).is_some_and(|ty| ty.kind_of.is_some())
        || (matches!(gvk.kind, "List" | "Status" | "DeleteOptions" | "WatchEvent")
            && BUILT_IN.list.iter().any(|served| served.group == gvk.group && served.version == gvk.version))
        || (OLD.contains(&(gvk.group, gvk.version)) && type_of("v1").is_some())
}

#[derive(Debug)]
struct BuiltIn {
    list: Vec<Arc<Served>>,
    by_path: HashMap<(&'static str, &'static str, &'static str), usize>,
    by_storage: HashMap<Arc<str>, usize>,
}

static BUILT_IN: LazyLock<BuiltIn> = LazyLock::new(|| {
    let mut built_in = BuiltIn { list: Vec::new(), by_path: HashMap::new(), by_storage: HashMap::new() };
    for (facts, tag) in facts::resources().iter().zip(0..) {
        let Some(served) = Served::built_in(facts, tag) else { continue };
        let at = built_in.list.len();
        built_in.by_path.insert((facts.group, facts.version, facts.plural), at);
        if served.shows_stored() {
            built_in.by_storage.insert(served.storage.clone(), at);
        }
        built_in.list.push(Arc::new(served));
    }
    built_in
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_views_of_an_event_share_their_storage() {
        let registry = Registry::default();
        let core = registry.find("", "v1", "events").unwrap();
        let new = registry.find("events.k8s.io", "v1", "events").unwrap();
        assert_eq!(core.storage, new.storage);
        assert_eq!(new.stored(), core.gvk());
        assert_eq!(registry.stored("events").unwrap().tag, core.tag);
    }

    #[test]
    fn every_stored_resource_is_found_by_its_storage() {
        let registry = Registry::default();
        for served in registry.all().filter(|served| served.is_stored()) {
            assert!(registry.stored(&served.storage).is_some(), "{}", served.storage);
        }
    }
}
