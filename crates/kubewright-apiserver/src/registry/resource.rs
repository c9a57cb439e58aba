//! The served resources and their paths.
//!
//! Built-in resources are rows of the facts table, shared by all servers of a process; custom resources come
//! from CRDs. [`Registry`] has the resources of one server. It is replaced as a whole when they change, so a
//! request sees one state.

use std::borrow::Cow;
use std::cmp;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use kubewright_apiextensions::crd::compare_versions;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::status::Qualified;
use kubewright_apis::facts;
use kubewright_apis::registry::RegistryRules;

use super::conversion::Converter;
use super::crd_resource::CrdResource;
use super::shared_list::{Position, SharedList};
use super::strategy::{BuiltIn as BuiltInKind, CrdStrategy, CustomResource, Strategy};

type Text = Cow<'static, str>;

/// A resource of one group and version.
#[derive(Debug)]
pub(crate) struct Resource {
    group: Text,
    version: Text,
    plural: Text,
    kind: Text,
    list_kind: Text,
    singular: Text,
    namespaced: bool,
    pub(crate) short_names: Vec<Text>,
    pub(crate) categories: Vec<Text>,
    pub(crate) verbs: Vec<&'static str>,
    /// Hash of the storage version, for discovery.
    pub(crate) storage_hash: Option<Text>,
    pub(crate) subresources: Vec<Subresource>,
    /// The rules of its objects.
    pub(crate) strategy: Box<dyn Strategy>,
    /// Name in storage: shared by all versions of the same objects.
    pub(crate) storage: Arc<str>,
    /// Group and version in which its objects are stored, if they differ from its own.
    stored: Option<Gvk<'static>>,
    /// A unique number, used in cache keys of encodings.
    pub(crate) tag: u64,
}

/// One subresource.
#[derive(Debug)]
pub(crate) struct Subresource {
    pub(crate) name: Text,
    /// Group and version of its objects, if they differ from the resource's.
    pub(crate) group_version: Option<(Text, Text)>,
    pub(crate) kind: Text,
    pub(crate) verbs: Vec<&'static str>,
    pub(crate) handler: SubresourceHandler,
}

/// How the requests of a subresource are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubresourceHandler {
    /// Reads and writes the object. The strategy decides which fields change.
    Object,
    /// Reads and writes the replicas of the object as a Scale.
    Scale,
    Binding,
    Eviction,
    Token,
    Log,
    /// Connects to a process: `exec`, `attach`, `portforward`, `proxy`.
    Connect,
}

impl SubresourceHandler {
    /// The handler of a built-in kind's subresource.
    fn of(group: &str, kind: &str, name: &str) -> Self {
        match (group, kind, name) {
            ("apps", "Deployment" | "ReplicaSet" | "StatefulSet", "scale")
            | ("", "ReplicationController", "scale") => Self::Scale,
            ("", "Pod", "binding") => Self::Binding,
            ("", "Pod", "eviction") => Self::Eviction,
            ("", "Pod", "log") => Self::Log,
            ("", "Pod", "attach" | "exec" | "portforward" | "proxy") | ("", "Node" | "Service", "proxy") => {
                Self::Connect
            }
            ("", "ServiceAccount", "token") => Self::Token,
            _ => Self::Object,
        }
    }
}

impl Resource {
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

    pub(crate) fn list_kind(&self) -> &str {
        &self.list_kind
    }

    pub(crate) fn singular(&self) -> &str {
        &self.singular
    }

    /// The order of discovery: by group, then by version priority, then by name.
    fn compare(&self, group: &str, version: &str, plural: &str) -> cmp::Ordering {
        let by_version =
            || compare_versions(version, &self.version).then_with(|| (*self.version).cmp(version));
        (*self.group).cmp(group).then_with(by_version).then_with(|| (*self.plural).cmp(plural))
    }

    pub(crate) fn gvk(&self) -> Gvk<'_> {
        Gvk { group: &self.group, version: &self.version, kind: &self.kind }
    }

    /// The group, version and kind in which objects are stored.
    pub(crate) fn stored(&self) -> Gvk<'_> {
        self.stored.unwrap_or_else(|| self.gvk())
    }

    /// Whether objects are stored in this version, without `apiVersion` and `kind`.
    pub(crate) fn is_storage_form(&self) -> bool {
        self.stored.is_none() && self.crd().is_none()
    }

    /// The CRD, if it is a custom resource.
    pub(crate) fn crd(&self) -> Option<&Arc<CrdResource>> {
        self.strategy.crd()
    }

    /// Whether upstream handles the objects as unstructured content.
    pub(crate) fn is_unstructured(&self) -> bool {
        self.strategy.is_unstructured()
    }

    /// The conversion webhook of the CRD, if it has one.
    pub(crate) fn converter(&self) -> Option<&Converter> {
        self.crd()?.converter()
    }

    /// Whether this is the resource of CustomResourceDefinitions.
    pub(crate) fn defines_resources(&self) -> bool {
        *self.storage == *CRDS
    }

    /// Whether discovery lists it.
    fn is_discoverable(&self) -> bool {
        self.crd().is_none_or(|custom| custom.info.established)
    }

    /// The deprecation warning.
    pub(crate) fn deprecation(&self) -> Option<&str> {
        match self.crd() {
            Some(crd) => crd.version(&self.version)?.warning.as_deref(),
            None => self.rules().deprecation,
        }
    }

    /// How its objects are stored and deleted.
    pub(crate) fn rules(&self) -> &'static RegistryRules {
        self.strategy.registry_rules()
    }

    /// Whether upstream has a router in front of its handlers.
    pub(crate) fn is_routed(&self) -> bool {
        self.strategy.is_routed()
    }

    /// Whether these are Namespaces. In requests for a Namespace, its name is also the namespace.
    pub(crate) fn is_namespaces(&self) -> bool {
        *self.storage == *"namespaces"
    }

    /// The resource for error messages.
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

    /// Whether objects are stored; other resources are computed per request.
    pub(crate) fn is_stored(&self) -> bool {
        self.can("list") && !self.is_component_statuses()
    }

    /// Whether these are ComponentStatuses, which are listed but not stored.
    pub(crate) fn is_component_statuses(&self) -> bool {
        self.group.is_empty() && self.plural == "componentstatuses"
    }

    /// The key of an object in storage.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { [namespace, "/", name].concat() } else { name.to_owned() }
    }

    fn built_in(facts: &'static facts::Resource, tag: u64) -> Option<Self> {
        let ty = facts::find_kind(facts.group, facts.version, facts.kind)?;
        // Events have two API groups, autoscalers two versions, with one storage each.
        let (storage, stored) = match (facts.group, facts.version, facts.plural) {
            ("events.k8s.io", _, "events") => {
                ("events".to_owned(), Some(Gvk { group: "", version: "v1", kind: "Event" }))
            }
            ("autoscaling", "v1", plural) => {
                let stored = Gvk { group: facts.group, version: "v2", kind: facts.kind };
                (["autoscaling/", plural].concat(), Some(stored))
            }
            ("", _, plural) => (plural.to_owned(), None),
            (group, _, plural) => ([group, "/", plural].concat(), None),
        };
        let texts = |words: &[&'static str]| words.iter().map(|word| Cow::Borrowed(*word)).collect();
        let subresource = |sub: &'static facts::Subresource| Subresource {
            name: sub.name.into(),
            group_version: sub.group.zip(sub.version).map(|(group, version)| (group.into(), version.into())),
            kind: sub.kind.into(),
            verbs: sub.verbs.to_vec(),
            handler: SubresourceHandler::of(facts.group, facts.kind, sub.name),
        };
        let gvk = Gvk { group: facts.group, version: facts.version, kind: facts.kind };
        let rules = BuiltInKind::new(gvk, facts.plural, facts.namespaced(), ty, stored);
        let strategy: Box<dyn Strategy> =
            if storage == CRDS { Box::new(CrdStrategy(rules)) } else { Box::new(rules) };
        Some(Self {
            group: facts.group.into(),
            version: facts.version.into(),
            plural: facts.plural.into(),
            kind: facts.kind.into(),
            list_kind: [facts.kind, "List"].concat().into(),
            singular: facts.singular.into(),
            namespaced: facts.namespaced(),
            short_names: texts(&facts.short_names),
            categories: texts(&facts.categories),
            verbs: facts.verbs.to_vec(),
            storage_hash: facts.storage_hash.map(Cow::Borrowed),
            subresources: facts.subresources.iter().map(subresource).collect(),
            strategy,
            storage: storage.into(),
            stored,
            tag,
        })
    }

    /// The served versions of a CRD.
    fn of_crd(custom: &Arc<CrdResource>) -> Vec<Self> {
        let crd = &custom.info;
        let names = &crd.names;
        let texts = |words: &[String]| words.iter().map(|word| Cow::Owned(word.clone())).collect();
        let storage: Arc<str> = format!("{}/{}", crd.group, names.plural).into();
        let resources = crd.served_versions().map(|version| {
            let kind = Text::from(names.kind.clone());
            let subresource = |name: &'static str, kind: Text, group_version, handler| Subresource {
                name: name.into(),
                group_version,
                kind,
                verbs: vec!["get", "patch", "update"],
                handler,
            };
            let mut subresources = Vec::new();
            if version.status {
                subresources.push(subresource("status", kind.clone(), None, SubresourceHandler::Object));
            }
            if version.scale.is_some() {
                let autoscaling = Some(("autoscaling".into(), "v1".into()));
                subresources.push(subresource(
                    "scale",
                    "Scale".into(),
                    autoscaling,
                    SubresourceHandler::Scale,
                ));
            }
            Self {
                group: crd.group.clone().into(),
                version: version.name.clone().into(),
                plural: names.plural.clone().into(),
                kind,
                list_kind: names.list_kind.clone().into(),
                singular: names.singular.clone().into(),
                namespaced: crd.namespaced,
                short_names: texts(&names.short_names),
                categories: texts(&names.categories),
                verbs: crd.verbs().to_vec(),
                storage_hash: crd.storage_version_hash().map(Cow::Owned),
                subresources,
                strategy: Box::new(CustomResource::new(custom.clone(), &version.name)),
                storage: storage.clone(),
                stored: None,
                tag: CUSTOM_TAGS.fetch_add(1, Ordering::Relaxed),
            }
        });
        resources.collect()
    }
}

/// The name of CustomResourceDefinitions in storage.
pub(crate) const CRDS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Tags of custom resources. Never reused, because another state of a CRD may encode objects differently.
static CUSTOM_TAGS: AtomicU64 = AtomicU64::new(1 << 32);

/// The served resources of a server.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    built_in: &'static BuiltIn,
    /// In the order of [`Resource::compare`].
    custom: SharedList<Arc<Resource>>,
    /// Sorted by name.
    crds: SharedList<Arc<CrdResource>>,
}

impl Default for Registry {
    fn default() -> Self {
        Self { built_in: &BUILT_IN, custom: SharedList::default(), crds: SharedList::default() }
    }
}

impl Registry {
    /// The built-in resources and those of these CRDs.
    pub(crate) fn with(&self, crds: &[Arc<CrdResource>]) -> Self {
        let mut before: HashMap<*const CrdResource, Vec<&Arc<Resource>>> = HashMap::new();
        for resource in self.custom.iter() {
            if let Some(custom) = resource.crd() {
                before.entry(Arc::as_ptr(custom)).or_default().push(resource);
            }
        }
        let mut custom = Vec::new();
        for crd in crds.iter().filter(|custom| custom.info.is_served()) {
            // Resources of an unchanged CRD keep their tag.
            match before.get(&Arc::as_ptr(crd)) {
                Some(resources) => custom.extend(resources.iter().copied().cloned()),
                None => custom.extend(Resource::of_crd(crd).into_iter().map(Arc::new)),
            }
        }
        custom.sort_by(|one, other| one.compare(&other.group, &other.version, &other.plural));
        Self {
            built_in: self.built_in,
            custom: SharedList::of_sorted(&custom),
            crds: SharedList::of_sorted(crds),
        }
    }

    /// The same with another state of one CRD, or without it.
    pub(crate) fn replaced(&self, name: &str, crd: Option<Arc<CrdResource>>) -> Self {
        let mut new = self.clone();
        if let Ok(at) = new.position(name) {
            let old = new.crds.remove(at);
            for version in old.info.served_versions() {
                if let Ok(at) = new.custom_position(&old.info.group, &version.name, &old.info.names.plural) {
                    new.custom.remove(at);
                }
            }
        }
        let Some(crd) = crd else { return new };
        if crd.info.is_served() {
            for resource in Resource::of_crd(&crd) {
                if let Err(at) = new.custom_position(&resource.group, &resource.version, &resource.plural) {
                    new.custom.insert(at, Arc::new(resource));
                }
            }
        }
        if let Err(at) = new.position(name) {
            new.crds.insert(at, crd);
        }
        new
    }

    /// Where the CRD is, or would be.
    fn position(&self, name: &str) -> Result<Position, Position> {
        self.crds.search(|custom| custom.info.name.as_str().cmp(name))
    }

    fn custom_position(&self, group: &str, version: &str, plural: &str) -> Result<Position, Position> {
        self.custom.search(|resource| resource.compare(group, version, plural))
    }

    /// A copy for a forked server.
    pub(crate) fn fork(&self) -> Self {
        let crds: Vec<_> = self.crds.iter().map(|custom| Arc::new(custom.fork())).collect();
        self.with(&crds)
    }

    /// A CRD by name, served or not.
    pub(crate) fn crd(&self, name: &str) -> Option<&Arc<CrdResource>> {
        self.position(name).ok().map(|at| self.crds.get(at))
    }

    /// All CRDs, served or not, sorted by name.
    pub(crate) fn crds(&self) -> impl Iterator<Item = &Arc<CrdResource>> {
        self.crds.iter()
    }

    /// All resources that discovery lists, in its order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.built_in.list.iter().chain(self.custom.iter().filter(|resource| resource.is_discoverable()))
    }

    /// A resource by its path.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        if let Some(at) = self.built_in.by_path.get(&(group, version, plural)) {
            return Some(&self.built_in.list[*at]);
        }
        self.custom_position(group, version, plural).ok().map(|at| self.custom.get(at))
    }

    /// The resource of the storage version of `storage`; for a custom resource any version, if that one is
    /// not served.
    pub(crate) fn stored(&self, storage: &str) -> Option<&Arc<Resource>> {
        if let Some(at) = self.built_in.by_storage.get(storage) {
            return Some(&self.built_in.list[*at]);
        }
        let (group, plural) = storage.split_once('/')?;
        let custom = self.crd(&format!("{plural}.{group}"))?;
        let stored = self.find(group, custom.storage_version(), plural);
        stored.or_else(|| {
            let served = custom.info.served_versions();
            let served = served.filter_map(|version| self.find(group, &version.name, plural));
            served.max_by(|one, other| compare_versions(&one.version, &other.version))
        })
    }

    /// Whether the group has built-in kinds.
    pub(crate) fn is_built_in(&self, group: &str) -> bool {
        self.built_in.list.iter().any(|resource| resource.group == group)
    }

    /// Whether a resource of this group and version is served.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.all().any(|resource| resource.group == group && resource.version == version)
    }
}

/// Whether kube-apiserver's scheme has the kind: includes versions that are not served, lists and options.
pub(crate) fn is_registered(gvk: Gvk<'_>) -> bool {
    const OLD: [(&str, &str); 3] = [("apps", "v1beta1"), ("apps", "v1beta2"), ("extensions", "v1beta1")];
    let type_of = |version| facts::type_of_kind(gvk.group, version, gvk.kind);
    type_of(gvk.version).is_some_and(|ty| ty.kind_of.is_some())
        || (matches!(gvk.kind, "List" | "Status" | "DeleteOptions" | "WatchEvent")
            && BUILT_IN
                .list
                .iter()
                .any(|resource| resource.group == gvk.group && resource.version == gvk.version))
        || (OLD.contains(&(gvk.group, gvk.version)) && type_of("v1").is_some())
}

#[derive(Debug)]
struct BuiltIn {
    list: Vec<Arc<Resource>>,
    by_path: HashMap<(&'static str, &'static str, &'static str), usize>,
    by_storage: HashMap<Arc<str>, usize>,
}

static BUILT_IN: LazyLock<BuiltIn> = LazyLock::new(|| {
    let all = facts::resources();
    let mut built_in = BuiltIn {
        list: Vec::with_capacity(all.len()),
        by_path: HashMap::with_capacity(all.len()),
        by_storage: HashMap::with_capacity(all.len()),
    };
    for (facts, tag) in all.iter().zip(0..) {
        let Some(resource) = Resource::built_in(facts, tag) else { continue };
        let at = built_in.list.len();
        built_in.by_path.insert((facts.group, facts.version, facts.plural), at);
        if resource.is_storage_form() {
            built_in.by_storage.insert(resource.storage.clone(), at);
        }
        built_in.list.push(Arc::new(resource));
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
        for resource in registry.all().filter(|resource| resource.is_stored()) {
            assert!(registry.stored(&resource.storage).is_some(), "{}", resource.storage);
        }
    }
}
