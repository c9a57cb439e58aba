//! Adds kinds, versions and controllers to a project, and removes them.
//!
//! Invalid requests are rejected here, before anything is written.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail};
use serde_json::Value;

use super::foreign::{builtin_entry, is_builtin_group};
use super::{builtin, from_crd, kinds, names, webhooks};
use crate::error::Hint as _;
use crate::project::project_file::{Api, Controller, ProjectFile, Resource};
use crate::scaffold::{Options, render};

/// What to add.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: Option<String>,
    /// Whether the project defines the kind; `None` derives it.
    pub(crate) resource: Option<bool>,
    /// Whether to add a controller; `None` derives it.
    pub(crate) controller: Option<bool>,
    pub(crate) controller_name: Option<String>,
    /// Scope of the kind; `None` derives it.
    pub(crate) namespaced: Option<bool>,
    pub(crate) external: Option<External>,
    /// The CRD to import; the other fields match it.
    pub(crate) definition: Option<Value>,
    /// Recreate existing files.
    pub(crate) force: bool,
}

/// A kind defined in another crate.
#[derive(Clone, Debug, Default)]
pub(crate) struct External {
    pub(crate) path: String,
    pub(crate) domain: String,
    pub(crate) module: String,
}

impl External {
    /// The PROJECT entry.
    pub(super) fn entry(&self, group: &str, version: &str, kind: &str) -> Result<Resource> {
        names::check_domain("external domain", &self.domain)?;
        Ok(Resource {
            domain: self.domain.clone(),
            external: true,
            group: group.to_owned(),
            kind: kind.to_owned(),
            module: self.module.clone(),
            path: self.path.trim_end_matches(&format!("::{kind}")).to_owned(),
            version: version.to_owned(),
            ..Resource::default()
        })
    }
}

/// The project before and after. With `force`, `before` lacks the recreated parts.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) before: ProjectFile,
    pub(crate) after: ProjectFile,
    /// The added version, if it starts as a copy of another one.
    pub(crate) copied: Option<Copied>,
}

/// A version that starts as a copy of another version of its kind.
#[derive(Clone, Debug)]
pub(crate) struct Copied {
    pub(crate) from: Resource,
    pub(crate) to: Resource,
}

/// Adds a kind, a version or a controller.
pub(crate) fn add(project: &ProjectFile, request: &Request) -> Result<Changed> {
    check(request)?;
    let mut changed = Changed { before: project.clone(), after: project.clone(), copied: None };
    let known = changed.after.resources.iter_mut().find(|known| {
        is_called(known, &request.group, &request.version, &request.kind)
            && wants_a_controller(request, known)
    });
    if let Some(known) = known {
        add_controller(known, request)?;
        check_project(&changed.after)?;
        return Ok(changed);
    }
    let mut entry = entry(project, request)?;
    let at = project.resources.iter().position(|known| is_same(known, &entry));
    if let Some(at) = at {
        let known = &project.resources[at];
        if !request.force {
            let error = anyhow!("{} already exists in this project", known.shown());
            return Err(error)
                .hint("use --force to recreate its files, or --controller-name to add a second controller");
        }
        entry.other.clone_from(&known.other);
        entry.webhooks.clone_from(&known.webhooks);
        changed.before.resources.remove(at);
        changed.before.import(&entry.id(), None);
    }
    let mut definition = request.definition.clone();
    if let Some(stored) = stored_sibling(project, &entry) {
        // The storage version stays, unless the imported CRD stores the new version.
        let stores_new = request.definition.as_ref().is_some_and(from_crd::is_stored);
        let version = if stores_new { &entry.version } else { &stored.version };
        changed.after.set_storage_version(&entry, Some(version));
        if definition.is_none() && at.is_none() {
            let of_stored = project.imported.get(&stored.id());
            definition = of_stored.map(|definition| from_crd::as_version(definition, &entry.version));
            changed.copied = Some(Copied { from: stored.clone(), to: entry.clone() });
        }
    }
    changed.after.import(&entry.id(), definition.as_ref());
    match at {
        Some(at) => changed.after.resources[at] = entry,
        None => changed.after.resources.push(entry),
    }
    check_project(&changed.after)?;
    Ok(changed)
}

/// The current storage version of the entry's kind, if it is another version.
fn stored_sibling<'a>(project: &'a ProjectFile, entry: &Resource) -> Option<&'a Resource> {
    entry.api.as_ref()?;
    let stored = kinds::storage_version(project, entry).filter(|stored| *stored != entry.version)?;
    siblings(project, entry).into_iter().find(|known| known.api.is_some() && known.version == stored)
}

/// Changes the storage version of a kind.
pub(crate) fn store(project: &ProjectFile, group: &str, kind: &str, version: &str) -> Result<Changed> {
    let known = project.resources.iter().filter(|known| {
        known.api.is_some() && known.kind == kind && is_called(known, group, &known.version, kind)
    });
    let known: Vec<&Resource> = known.collect();
    let Some(first) = known.first() else {
        return Err(anyhow!("this project does not define the kind {kind} in the group {group}"))
            .hint("PROJECT lists the kinds of the project; the group is without the domain");
    };
    if !known.iter().any(|known| known.version == version) {
        let versions: Vec<&str> = known.iter().map(|known| known.version.as_str()).collect();
        return Err(anyhow!("{kind} has no version {version}"))
            .hint(format!("available: {}", versions.join(", ")));
    }
    let mut after = project.clone();
    if known.len() > 1 {
        after.set_storage_version(first, Some(version));
    }
    Ok(Changed { before: project.clone(), after, copied: None })
}

/// Adds several kinds: all or none.
pub(crate) fn add_all(project: &ProjectFile, requests: &[Request]) -> Result<Changed> {
    let mut all = Changed { before: project.clone(), after: project.clone(), copied: None };
    for request in requests {
        let Changed { before, after, .. } = add(&all.after, request)?;
        let made_again = |known: &Resource| !before.resources.iter().any(|kept| kept.id() == known.id());
        for known in all.after.resources.iter().filter(|known| made_again(known)) {
            all.before.resources.retain(|kept| kept.id() != known.id());
            all.before.import(&known.id(), None);
        }
        all.after = after;
    }
    Ok(all)
}

/// The request for an imported kind.
pub(crate) fn imported(chosen: from_crd::Chosen) -> Request {
    Request {
        group: chosen.group,
        version: chosen.version,
        kind: chosen.kind,
        plural: Some(chosen.plural),
        resource: Some(true),
        namespaced: Some(chosen.namespaced),
        definition: Some(chosen.definition),
        ..Request::default()
    }
}

/// Removes a version of a kind.
pub(crate) fn remove(project: &ProjectFile, group: &str, version: &str, kind: &str) -> Result<Changed> {
    let at = project.resources.iter().position(|known| is_called(known, group, version, kind));
    let Some(at) = at else {
        let known: Vec<String> = project.resources.iter().map(Resource::shown).collect();
        let known = if known.is_empty() {
            "the project has no kinds; add one with `kubewright create api`".to_owned()
        } else {
            format!("the project has {}", known.join("; "))
        };
        return Err(anyhow!("{group}/{version}, {kind} is not in this project")).hint(known);
    };
    let gone = &project.resources[at];
    let delete = |version: &str| {
        format!("kubewright delete webhook --group {group} --version {version} --kind {kind}")
    };
    if gone.webhooks().is_some() {
        return Err(anyhow!("{} has webhooks", gone.shown()))
            .hint(format!("delete them first: `{}`", delete(version)));
    }
    if let Some(hub) = webhooks::hub_of(project, gone) {
        return Err(anyhow!("{} is a spoke of the conversion of {}", gone.shown(), hub.version))
            .hint(format!("remove it first: `{} --conversion --spoke {version}`", delete(&hub.version)));
    }
    let mut after = project.clone();
    let gone = after.resources.remove(at);
    let mut left = after
        .resources
        .iter()
        .filter(|known| gone.api.is_some() && known.api.is_some() && kinds::is_same_kind(known, &gone));
    match (left.next(), left.next()) {
        (Some(other), _) if kinds::storage_version(project, &gone) == Some(version) => {
            let edit = format!("kubewright edit api --group {group} --kind {kind}");
            return Err(anyhow!("{} is the storage version of {kind}", gone.shown())).hint(format!(
                "change the storage version first: `{edit} --storage-version {}`, then migrate the stored objects",
                other.version
            ));
        }
        (_, None) => after.set_storage_version(&gone, None),
        _ => {}
    }
    after.import(&gone.id(), None);
    Ok(Changed { before: project.clone(), after, copied: None })
}

fn check(request: &Request) -> Result<()> {
    if request.group != "core" {
        names::check_domain("group", &request.group)?;
    }
    names::check_version(&request.version)?;
    names::check_kind(&request.kind)?;
    if let Some(plural) = &request.plural {
        names::check_plural(plural)?;
    }
    if let Some(name) = &request.controller_name {
        names::check_controller(name)?;
        if request.controller == Some(false) {
            bail!("--controller-name cannot be used with --controller=false");
        }
    }
    if request.resource == Some(false) && request.controller == Some(false) {
        return Err(anyhow!("nothing to do: --resource=false and --controller=false"))
            .hint("omit one of the two flags");
    }
    if request.external.is_some() && request.resource == Some(true) {
        bail!("--external-api-path cannot be used with --resource");
    }
    Ok(())
}

fn entry(project: &ProjectFile, request: &Request) -> Result<Resource> {
    let Request { group, version, kind, .. } = request;
    let mut entry = if let Some(external) = &request.external {
        external.entry(group, version, kind)?
    } else if let (Some(known), Some(false)) = (builtin(group, version, kind), request.resource) {
        builtin_entry(known)
    } else if request.resource == Some(false) {
        let error = anyhow!("{group}/{version}, {kind} is not a built-in kind of Kubernetes v1.36");
        return Err(error).hint(
            "for an external kind, set --external-api-path and --external-api-domain; for your own kind, omit \
             --resource=false",
        );
    } else {
        own_entry(project, request)?
    };
    if let Some(plural) = &request.plural {
        entry.plural = if *plural == names::plural(kind) { String::new() } else { plural.clone() };
    }
    let sibling = siblings(project, &entry).into_iter().any(|known| !known.controller_names().is_empty());
    if request.controller.unwrap_or(!sibling || request.controller_name.is_some()) {
        entry.controller = true;
        if let Some(name) = &request.controller_name {
            entry.controllers.push(Controller { name: name.clone() });
        }
    }
    Ok(entry)
}

fn own_entry(project: &ProjectFile, request: &Request) -> Result<Resource> {
    if is_builtin_group(&request.group) && request.group.contains('.') || request.group == "core" {
        return Err(anyhow!("the group {} is reserved for Kubernetes", request.group)).hint(
            "use --resource=false to add a controller for a built-in kind, or choose another group; the project's \
             domain is appended to it",
        );
    }
    let (group, domain) = if request.definition.is_some() {
        split(&request.group, &project.domain)
    } else {
        (request.group.as_str(), project.domain.as_str())
    };
    let mut entry = Resource {
        domain: domain.to_owned(),
        group: group.to_owned(),
        kind: request.kind.clone(),
        version: request.version.clone(),
        ..Resource::default()
    };
    let sibling =
        siblings(project, &entry).into_iter().find_map(|known| known.api.clone().map(|api| (known, api)));
    let namespaced =
        request.namespaced.unwrap_or_else(|| sibling.as_ref().is_none_or(|(_, api)| api.namespaced));
    if let Some((known, api)) = sibling {
        if api.namespaced != namespaced {
            let scope = if api.namespaced { "namespaced" } else { "cluster-scoped" };
            return Err(anyhow!("{} is {scope}; all versions of a kind have the same scope", known.shown()))
                .hint("omit --namespaced");
        }
        entry.plural.clone_from(&known.plural);
    }
    entry.api = Some(Api { crd_version: "v1".to_owned(), namespaced, ..Api::default() });
    Ok(entry)
}

/// Splits a full group into PROJECT's group and domain. The domain is that of the project or, in other
/// groups, the part after the first dot.
fn split<'a>(group: &'a str, domain: &'a str) -> (&'a str, &'a str) {
    if group == domain {
        return ("", domain);
    }
    let own = group.strip_suffix(domain).and_then(|group| group.strip_suffix('.'));
    own.map(|own| (own, domain)).or_else(|| group.split_once('.')).unwrap_or((group, ""))
}

/// Whether the request only adds a controller to an existing kind.
fn wants_a_controller(request: &Request, known: &Resource) -> bool {
    let said = request.controller == Some(true) || request.resource == Some(false);
    let first = known.controller_names().is_empty() && said;
    !request.force && request.resource != Some(true) && (first || request.controller_name.is_some())
}

fn add_controller(entry: &mut Resource, request: &Request) -> Result<()> {
    let names = entry.controller_names();
    entry.controller = true;
    if let Some(name) = &request.controller_name {
        if names.contains(name) {
            bail!("{} already has a controller {name}", entry.shown());
        }
        entry.controllers =
            names.iter().chain([name]).map(|name| Controller { name: name.clone() }).collect();
    }
    Ok(())
}

/// Whether group, version and kind, as a user writes them, refer to the entry.
pub(super) fn is_called(known: &Resource, group: &str, version: &str, kind: &str) -> bool {
    let is_group = known.group == group
        || known.full_group() == group
        || (group == "rbac" && known.group == "rbac.authorization");
    is_group && known.version == version && known.kind == kind
}

fn is_same(one: &Resource, other: &Resource) -> bool {
    kinds::is_same_kind(one, other) && one.version == other.version
}

/// Other versions of a kind, newest first.
pub(super) fn siblings<'a>(project: &'a ProjectFile, entry: &Resource) -> Vec<&'a Resource> {
    let others =
        project.resources.iter().filter(|known| kinds::is_same_kind(known, entry) && !is_same(known, entry));
    kinds::newest_first(others.collect())
}

/// Checks the consistency of the whole project.
pub(crate) fn check_project(project: &ProjectFile) -> Result<()> {
    let kinds = kinds::kinds(project);
    let mut own = kinds.iter().filter(|kind| kind.own);
    if let Some(first) = own.clone().next()
        && !project.multigroup
        && let Some(other) = own.find(|kind| kind.group != first.group)
    {
        return Err(anyhow!(
            "the project uses the group {}; adding {} requires the multigroup layout",
            first.group,
            other.group
        ))
        .hint("switch with `kubewright edit --multigroup`");
    }
    for kind in kinds.iter().filter(|kind| kind.own) {
        let others =
            kinds.iter().filter(|other| other.own && other.resource.version == kind.resource.version);
        for other in others {
            let name = &other.resource.kind;
            let stem = name.strip_suffix("Spec").or_else(|| name.strip_suffix("Status"));
            if stem == Some(&kind.resource.kind) && kind.group == other.group {
                bail!("{name} is already a type of the kind {stem}", stem = kind.resource.kind);
            }
        }
    }
    let mut plurals = BTreeMap::new();
    for kind in &kinds {
        let name = format!("{}.{}", kind.plural, kind.group);
        if let Some(other) = plurals.insert(name, &kind.resource.kind)
            && *other != kind.resource.kind
        {
            return Err(anyhow!("{other} and {} have the same plural {}", kind.resource.kind, kind.plural))
                .hint("choose another --plural");
        }
        let watched = kind.own || !kind.controllers.is_empty();
        if project.namespaced && watched && !kind.namespaced() {
            return Err(anyhow!(
                "the operator is namespaced, but {} is cluster-scoped",
                kind.resource.shown()
            ))
            .hint("use `kubewright edit --namespaced=false` to watch all namespaces");
        }
    }
    webhooks::check(&kinds)?;
    let mut paths = BTreeMap::new();
    for (id, file) in render(project, &Options::default()) {
        if let Some(other) = paths.insert(file.path.clone(), id.clone()) {
            return Err(anyhow!("conflicting files at {}: {other} and {id}", file.path))
                .hint("choose another --kind, or another --controller-name");
        }
    }
    Ok(())
}
