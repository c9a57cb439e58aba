//! Which resources are served, and under which paths.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use kubewright_apimachinery::facts::{self, Subresource, Type};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::status::Qualified;

/// One resource of one group and version.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) facts: &'static facts::Resource,
    /// The type of its objects.
    pub(crate) ty: &'static Type,
    /// Name in storage: shared by every version and view of the same objects.
    pub(crate) storage: Arc<str>,
    /// Group and version in which its objects are stored.
    pub(crate) stored: Gvk<'static>,
    /// A number of its own, to tag encodings with.
    pub(crate) tag: u64,
}

impl Served {
    pub(crate) fn gvk(&self) -> Gvk<'static> {
        Gvk { group: self.facts.group, version: self.facts.version, kind: self.facts.kind }
    }

    /// The resource, as messages name it.
    pub(crate) fn qualified(&self) -> Qualified<'static> {
        Qualified { group: self.facts.group, name: self.facts.plural }
    }

    pub(crate) fn namespaced(&self) -> bool {
        self.facts.namespaced()
    }

    pub(crate) fn can(&self, verb: &str) -> bool {
        self.facts.verbs.contains(&verb)
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.facts.subresource(name)
    }

    /// Objects are kept in storage; others are answered on the spot.
    pub(crate) fn is_stored(&self) -> bool {
        self.can("list") && self.facts.plural != "componentstatuses"
    }

    /// The key of an object in storage.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced() { format!("{namespace}/{name}") } else { name.to_owned() }
    }
}

/// Every built-in resource, in discovery order.
pub(crate) fn built_in() -> &'static [Arc<Served>] {
    &BUILT_IN.list
}

/// A built-in resource by its path.
pub(crate) fn find(group: &str, version: &str, plural: &str) -> Option<&'static Arc<Served>> {
    BUILT_IN.by_path.get(&(group, version, plural)).map(|at| &BUILT_IN.list[*at])
}

/// The resource under whose version objects of `storage` are stored.
pub(crate) fn stored(storage: &str) -> Option<&'static Arc<Served>> {
    BUILT_IN.list.iter().find(|served| &*served.storage == storage && served.stored == served.gvk())
}

struct BuiltIn {
    list: Vec<Arc<Served>>,
    by_path: HashMap<(&'static str, &'static str, &'static str), usize>,
}

static BUILT_IN: LazyLock<BuiltIn> = LazyLock::new(|| {
    let list: Vec<Arc<Served>> = facts::resources()
        .iter()
        .zip(0..)
        .filter_map(|(facts, tag)| {
            let ty = facts::type_of_kind(facts.group, facts.version, facts.kind)?;
            let own = Gvk { group: facts.group, version: facts.version, kind: facts.kind };
            // Two views of one Event, and two versions of one autoscaler.
            let (storage, stored) = match (facts.group, facts.plural) {
                ("events.k8s.io", "events") => {
                    ("events".to_owned(), Gvk { group: "", version: "v1", kind: "Event" })
                }
                ("autoscaling", plural) => (format!("autoscaling/{plural}"), Gvk { version: "v2", ..own }),
                ("", plural) => (plural.to_owned(), own),
                (group, plural) => (format!("{group}/{plural}"), own),
            };
            Some(Arc::new(Served { facts, ty, storage: storage.into(), stored, tag }))
        })
        .collect();
    let by_path = list
        .iter()
        .enumerate()
        .map(|(at, served)| ((served.facts.group, served.facts.version, served.facts.plural), at))
        .collect();
    BuiltIn { list, by_path }
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_views_of_an_event_share_their_storage() {
        let core = find("", "v1", "events").unwrap();
        let new = find("events.k8s.io", "v1", "events").unwrap();
        assert_eq!(core.storage, new.storage);
        assert_eq!(new.stored, core.gvk());
        assert_eq!(stored("events").unwrap().tag, core.tag);
    }

    #[test]
    fn every_stored_resource_is_found_by_its_storage() {
        for served in built_in().iter().filter(|served| served.is_stored()) {
            assert!(stored(&served.storage).is_some(), "{}", served.storage);
        }
    }
}
