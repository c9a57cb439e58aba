//! Adds webhooks to the kinds of a project, and deletes them.
//!
//! Webhooks are added to existing ones: the order of commands does not matter, and a repeated command changes
//! nothing. Invalid requests are rejected here, before anything is written.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail};
use kubewright_manifests::files::DEFINITIONS;
use kubewright_manifests::webhook::{MUTATING, VALIDATING};

use super::add::{Changed, External, check_project, is_called, siblings};
use super::foreign::builtin_entry;
use super::kinds::{self, Kind};
use super::{builtin, names};
use crate::error::Hint as _;
use crate::project::project_file::{ProjectFile, Resource, Webhooks};

/// The API version of webhook configurations.
const WEBHOOK_VERSION: &str = "v1";

/// The webhooks to add.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: Option<String>,
    pub(crate) types: WebhookTypes,
    /// Spoke versions of the conversion.
    pub(crate) spoke: Vec<String>,
    pub(crate) defaulting_path: Option<String>,
    pub(crate) validation_path: Option<String>,
    pub(crate) external: Option<External>,
    /// Recreate existing files.
    pub(crate) force: bool,
}

/// Types of webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct WebhookTypes {
    /// Defaulting webhook
    #[arg(long)]
    pub(crate) defaulting: bool,

    /// Validating webhook
    #[arg(long = "programmatic-validation")]
    pub(crate) validation: bool,

    /// Conversion webhook; --version is the hub
    #[arg(long)]
    pub(crate) conversion: bool,
}

impl WebhookTypes {
    fn none(self) -> bool {
        self == Self::default()
    }
}

/// Adds webhooks to a version of a kind.
pub(crate) fn add(project: &ProjectFile, request: &Request) -> Result<Changed> {
    check_request(request)?;
    let mut changed = Changed { before: project.clone(), after: project.clone(), copied: None };
    let known = project
        .resources
        .iter()
        .position(|known| is_called(known, &request.group, &request.version, &request.kind));
    let at = if let Some(at) = known {
        at
    } else {
        changed.after.resources.push(foreign_entry(project, request)?);
        project.resources.len()
    };
    let entry = &changed.after.resources[at];
    if request.types.conversion {
        check_conversion(project, entry, request)?;
    }
    if let (Some(wanted), true) = (&request.plural, known.is_some()) {
        let plural = if entry.plural.is_empty() { names::plural(&entry.kind) } else { entry.plural.clone() };
        if *wanted != plural {
            return Err(anyhow!("the plural of {} is {plural}, not {wanted}", entry.shown()))
                .hint("omit --plural");
        }
    }
    let entry = &mut changed.after.resources[at];
    let webhooks = entry.webhooks.get_or_insert_default();
    join(webhooks, request);
    if let Some(before) = changed.before.resources.get_mut(at).filter(|_| request.force) {
        take(before, request.types, &[]);
    }
    check_project(&changed.after)?;
    Ok(changed)
}

fn check_request(request: &Request) -> Result<()> {
    names::check_version(&request.version)?;
    names::check_kind(&request.kind)?;
    if let Some(plural) = &request.plural {
        names::check_plural(plural)?;
    }
    let WebhookTypes { defaulting, validation, conversion } = request.types;
    if request.types.none() {
        return Err(anyhow!("no webhook selected"))
            .hint("set at least one of --defaulting, --programmatic-validation and --conversion");
    }
    for (path, flag, of, chosen) in [
        (&request.defaulting_path, "--defaulting-path", "--defaulting", defaulting),
        (&request.validation_path, "--validation-path", "--programmatic-validation", validation),
    ] {
        let Some(path) = path else { continue };
        if !chosen {
            bail!("{flag} requires {of}");
        }
        names::check_webhook_path(path)?;
    }
    if !request.spoke.is_empty() && !conversion {
        bail!("--spoke requires --conversion");
    }
    for spoke in &request.spoke {
        names::check_version(spoke)?;
    }
    Ok(())
}

/// The PROJECT entry of a kind that the project does not define.
fn foreign_entry(project: &ProjectFile, request: &Request) -> Result<Resource> {
    let Request { group, version, kind, .. } = request;
    let mut entry = if let Some(external) = &request.external {
        external.entry(group, version, kind)?
    } else if let Some(known) = builtin(group, version, kind) {
        builtin_entry(known)
    } else {
        let create = format!("kubewright create api --group {group} --version {version} --kind {kind}");
        return Err(anyhow!("{group}/{version}, {kind} is not in this project")).hint(format!(
            "add it first: `{create}`; for an external kind, set --external-api-path and --external-api-domain"
        ));
    };
    if let Some(plural) = request.plural.as_ref().filter(|plural| **plural != names::plural(kind)) {
        entry.plural.clone_from(plural);
    }
    debug_assert!(!project.resources.contains(&entry), "it would have been found");
    Ok(entry)
}

fn check_conversion(project: &ProjectFile, hub: &Resource, request: &Request) -> Result<()> {
    let (group, kind) = (&request.group, &request.kind);
    if hub.api.is_none() {
        bail!("{} is not defined by this project; only its own kinds can be converted", hub.shown());
    }
    let others = siblings(project, hub);
    let others: Vec<&Resource> = others.into_iter().filter(|other| other.api.is_some()).collect();
    let other_hub = others.iter().find(|other| other.webhooks().is_some_and(|other| other.conversion));
    if let Some(other) = other_hub {
        let version = &other.version;
        return Err(anyhow!("{kind} already has the hub {version}")).hint(format!(
            "add spokes to it: `kubewright create webhook --group {group} --version {version} --kind {kind} \
             --conversion --spoke {}`",
            hub.version
        ));
    }
    let known = hub.webhooks().is_some_and(|webhooks| !webhooks.spoke.is_empty());
    if request.spoke.is_empty() && !known {
        let versions: Vec<&str> = others.iter().map(|other| other.version.as_str()).collect();
        let hint = if versions.is_empty() {
            format!(
                "{kind} has only one version; add another: `kubewright create api --group {group} --version v2 --kind {kind}`"
            )
        } else {
            format!("pass the other versions: --spoke {}", versions.join(","))
        };
        return Err(anyhow!("a conversion needs --spoke")).hint(hint);
    }
    for spoke in &request.spoke {
        if *spoke == hub.version {
            return Err(anyhow!("{spoke} is the hub and cannot be a spoke"))
                .hint("--version is the hub; --spoke lists the other versions");
        }
        if !others.iter().any(|other| other.version == *spoke) {
            return Err(anyhow!("{kind} has no version {spoke}")).hint(format!(
                "add it first: `kubewright create api --group {group} --version {spoke} --kind {kind}`"
            ));
        }
    }
    Ok(())
}

fn join(webhooks: &mut Webhooks, request: &Request) {
    let WebhookTypes { defaulting, validation, conversion } = request.types;
    webhooks.defaulting |= defaulting;
    webhooks.validation |= validation;
    webhooks.conversion |= conversion;
    WEBHOOK_VERSION.clone_into(&mut webhooks.webhook_version);
    for (path, of) in [
        (&request.defaulting_path, &mut webhooks.defaulting_path),
        (&request.validation_path, &mut webhooks.validation_path),
    ] {
        if let Some(path) = path {
            of.clone_from(path);
        }
    }
    webhooks.spoke.extend(request.spoke.iter().cloned());
    webhooks.spoke.sort_by_key(|version| kinds::priority(version));
    webhooks.spoke.dedup();
}

/// The webhooks to delete; without any type, all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Removal {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) types: WebhookTypes,
    /// The spokes to remove; empty means all.
    pub(crate) spoke: Vec<String>,
    /// Delete a conversion even if several versions are served.
    pub(crate) force: bool,
}

/// Deletes webhooks of a version of a kind. `served` lists the versions that the CRD serves.
pub(crate) fn remove(project: &ProjectFile, removal: &Removal, served: &[String]) -> Result<Changed> {
    let Removal { group, version, kind, .. } = removal;
    let at = project.resources.iter().position(|known| is_called(known, group, version, kind));
    let found = at.and_then(|at| Some((at, project.resources[at].webhooks()?)));
    let Some((at, webhooks)) = found else {
        let known = project.resources.iter().filter(|known| known.webhooks().is_some());
        let known: Vec<String> = known.map(Resource::shown).collect();
        let hint = if known.is_empty() {
            "this project has no webhooks; add one with `kubewright create webhook`".to_owned()
        } else {
            format!("kinds with webhooks: {}", known.join("; "))
        };
        return Err(anyhow!("{group}/{version}, {kind} has no webhooks")).hint(hint);
    };
    if !removal.spoke.is_empty() && !removal.types.conversion {
        bail!("--spoke requires --conversion");
    }
    let has = WebhookTypes {
        defaulting: webhooks.defaulting,
        validation: webhooks.validation,
        conversion: webhooks.conversion,
    };
    let types = if removal.types.none() { has } else { removal.types };
    for (wanted, there, name) in [
        (types.defaulting, has.defaulting, "defaulting webhook"),
        (types.validation, has.validation, "validating webhook"),
        (types.conversion, has.conversion, "conversion"),
    ] {
        if wanted && !there {
            bail!("{} has no {name}", project.resources[at].shown());
        }
    }
    if let Some(spoke) = removal.spoke.iter().find(|spoke| !webhooks.spoke.contains(spoke)) {
        return Err(anyhow!("{spoke} is not a spoke of {}", project.resources[at].shown()))
            .hint(format!("spokes: {}", webhooks.spoke.join(", ")));
    }
    if types.conversion && !removal.force {
        let gone = webhooks.spoke.iter().filter(|spoke| {
            (removal.spoke.is_empty() || removal.spoke.contains(spoke)) && served.contains(spoke)
        });
        let gone: Vec<&str> = gone.map(String::as_str).collect();
        if served.contains(version) && !gone.is_empty() {
            return Err(anyhow!(
                "{kind} is served as {version} and {}; without conversion, fields that differ would be lost",
                gone.join(", ")
            ))
            .hint(format!(
                "serve only one version (set `served = false` in `#[kube(...)]` of the others, then run `make manifests`), or \
                 give all versions of {kind} the same fields and use --force"
            ));
        }
    }
    let mut after = project.clone();
    let entry = &mut after.resources[at];
    take(entry, types, &removal.spoke);
    let is_unused = entry.api.is_none() && entry.controller_names().is_empty() && entry.webhooks.is_none();
    if is_unused {
        after.resources.remove(at);
    }
    check_project(&after)?;
    Ok(Changed { before: project.clone(), after, copied: None })
}

/// Removes webhooks from an entry; of a conversion, the given spokes or all.
fn take(entry: &mut Resource, types: WebhookTypes, spoke: &[String]) {
    let Some(webhooks) = &mut entry.webhooks else { return };
    if types.defaulting {
        webhooks.defaulting = false;
        webhooks.defaulting_path.clear();
    }
    if types.validation {
        webhooks.validation = false;
        webhooks.validation_path.clear();
    }
    if types.conversion {
        webhooks.spoke.retain(|known| !spoke.is_empty() && !spoke.contains(known));
        webhooks.conversion = !webhooks.spoke.is_empty();
    }
    if !webhooks.any() {
        entry.webhooks = None;
    }
}

/// The hub of a spoke version.
pub(super) fn hub_of<'a>(project: &'a ProjectFile, spoke: &Resource) -> Option<&'a Resource> {
    siblings(project, spoke)
        .into_iter()
        .find(|hub| hub.webhooks().is_some_and(|webhooks| webhooks.spoke.contains(&spoke.version)))
}

/// The storage version of the kind, if it is not the requested conversion hub.
pub(crate) fn stored_elsewhere<'a>(project: &'a ProjectFile, request: &Request) -> Option<&'a str> {
    let Request { group, version, kind, .. } = request;
    let hub = project.resources.iter().find(|known| is_called(known, group, version, kind))?;
    let stored = kinds::storage_version(project, hub)?;
    (request.types.conversion && stored != version).then_some(stored)
}

/// The CRD file of a kind, and the kind's versions in the project.
pub(crate) fn crd_of(project: &ProjectFile, removal: &Removal) -> Option<(String, Vec<String>)> {
    let Removal { group, version, kind, .. } = removal;
    let all = kinds::kinds(project);
    let known = all.iter().find(|known| known.own && is_called(known.resource, group, version, kind))?;
    let versions = all.iter().filter(|other| kinds::is_same_kind(other.resource, known.resource));
    let versions = versions.map(|other| other.resource.version.clone()).collect();
    Some((format!("{DEFINITIONS}/{}_{}.yaml", known.group, known.plural), versions))
}

/// The name of the kind's CRD, if the change removes its conversion.
pub(crate) fn converted_crd(changed: &Changed, removal: &Removal) -> Option<String> {
    let Removal { group, version, kind, .. } = removal;
    let converts = |project: &ProjectFile| {
        let known = project.resources.iter().find(|known| is_called(known, group, version, kind));
        known.and_then(Resource::webhooks).is_some_and(|webhooks| webhooks.conversion)
    };
    if !converts(&changed.before) || converts(&changed.after) {
        return None;
    }
    let all = kinds::kinds(&changed.before);
    let known = all.iter().find(|known| known.own && is_called(known.resource, group, version, kind))?;
    Some(format!("{}.{}", known.plural, known.group))
}

/// The webhook configurations whose last webhook a change deletes, as resources of kubectl and without the name prefix.
pub(crate) fn emptied_configurations(changed: &Changed) -> Vec<(&'static str, &'static str)> {
    let has = |project: &ProjectFile, is_mutating: bool| {
        let mut webhooks = project.resources.iter().filter_map(Resource::webhooks);
        webhooks.any(|webhooks| if is_mutating { webhooks.defaulting } else { webhooks.validation })
    };
    [(true, "mutatingwebhookconfiguration", MUTATING), (false, "validatingwebhookconfiguration", VALIDATING)]
        .into_iter()
        .filter(|(is_mutating, ..)| has(&changed.before, *is_mutating) && !has(&changed.after, *is_mutating))
        .map(|(_, resource, name)| (resource, name))
        .collect()
}

/// Checks the consistency of the project's webhooks.
pub(super) fn check(kinds: &[Kind<'_>]) -> Result<()> {
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for kind in kinds {
        for webhook in kind.admission() {
            if let Some(other) = paths.insert(webhook.path.clone(), kind.resource.shown()) {
                return Err(anyhow!(
                    "{} and {other} both have webhooks at {}",
                    kind.resource.shown(),
                    webhook.path
                ))
                .hint("choose another --defaulting-path or --validation-path");
            }
        }
    }
    Ok(())
}

/// The imported webhooks of a kind in a kubebuilder project.
pub(super) fn carried_over(
    theirs: &ProjectFile,
    resource: &Resource,
    left: &mut Vec<String>,
) -> Option<Webhooks> {
    let theirs_of = resource.webhooks()?;
    let mut webhooks = Webhooks { other: serde_json::Map::new(), ..theirs_of.clone() };
    let is_version = |spoke: &String| {
        let entry = Resource { version: spoke.clone(), ..resource.clone() };
        theirs.resources.iter().any(|known| known.api.is_some() && known.id() == entry.id())
    };
    let (spokes, missing): (Vec<String>, Vec<String>) = webhooks.spoke.drain(..).partition(is_version);
    if theirs_of.conversion && spokes.is_empty() {
        let why = match missing.first() {
            Some(missing) => format!("PROJECT lacks version {missing} of the kind"),
            None => "PROJECT lists no spoke".to_owned(),
        };
        left.push(format!("conversion of {}: {why}", resource.shown()));
    }
    webhooks.conversion = !spokes.is_empty();
    webhooks.spoke = spokes;
    webhooks.spoke.sort_by_key(|version| kinds::priority(version));
    for path in [&mut webhooks.defaulting_path, &mut webhooks.validation_path] {
        if !path.is_empty() && names::check_webhook_path(path).is_err() {
            left.push(format!("path {path} of {}: rejected by the API server", resource.shown()));
            path.clear();
        }
    }
    WEBHOOK_VERSION.clone_into(&mut webhooks.webhook_version);
    webhooks.any().then_some(webhooks)
}
