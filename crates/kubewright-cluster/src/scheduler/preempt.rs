//! Who must go so that a pod of a higher priority has a place.
//!
//! Pure. Invariant: nobody goes who is of the same priority or of a higher one, and nobody without whom the pod would
//! not have a place.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::Key;

use super::affinity::Neighbours;
use super::filter::{self, Refusal};
use super::spread::Spread;
use super::state::{Site, Tenant};

/// So many nodes are compared: this part of them, and no fewer than this.
const PART: usize = 10;
const FEW: usize = 100;

/// A place that a pod can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Preemption {
    pub(super) node: String,
    /// Who must go. Nobody, if those that were in the way have no node yet.
    pub(super) victims: Vec<Key>,
}

/// Whether a pod makes others go at all.
pub(super) fn is_allowed(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.preemption_policy.as_deref()) != Some("Never")
}

/// The place for which the least must go. Of those that only hope for a place nobody is spared, and nobody told.
pub(super) fn find(
    pod: &Pod,
    tenant: &Tenant,
    sites: &mut BTreeMap<String, Site>,
    hopes: impl Fn(&Key) -> bool,
) -> Option<Preemption> {
    let rules = (Neighbours::new(pod, tenant, sites), Spread::new(pod, tenant, sites));
    let names: Vec<String> = sites.keys().cloned().collect();
    let enough = (names.len() / PART).max(FEW);
    let mut candidates = Vec::new();
    for name in names {
        let has_lower = |site: &&Site| site.pods.values().any(|other| other.priority < tenant.priority);
        let Some(site) = sites.get(&name).filter(has_lower) else { continue };
        let why = filter::check(pod, tenant, site, &rules.0, &rules.1);
        if !why.iter().all(Refusal::could_be_helped) {
            continue;
        }
        // What others mean for the pod changes with them, and is expensive to find out.
        let alone = !why
            .iter()
            .any(|why| matches!(why, Refusal::Spread | Refusal::PodAntiAffinity | Refusal::AvoidedByOthers));
        let mut trial = Trial { pod, tenant, name: &name, sites, rules: alone.then_some(&rules) };
        if let Some(victims) = trial.victims(&hopes) {
            candidates.push((loss(&victims), name, victims));
        }
        if candidates.len() >= enough {
            break;
        }
    }
    let (_, node, victims) =
        candidates.into_iter().min_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)))?;
    Some(Preemption { node, victims: victims.into_iter().map(|(key, _)| key).collect() })
}

/// What is lost with victims: the less of it the better. First counts the highest priority among them, then all of their
/// priorities, their number, and how long the first of them has run.
fn loss(victims: &[(Key, Arc<Tenant>)]) -> (i32, i64, usize, Reverse<Option<Timestamp>>) {
    let highest = victims.iter().map(|(_, victim)| victim.priority).max();
    let first = victims.iter().filter(|(_, victim)| Some(victim.priority) == highest);
    let first = first.map(|(_, victim)| victim.started).min();
    // Priorities may be below zero: each victim counts, however low.
    let each = |victim: &Tenant| i64::from(victim.priority) - i64::from(i32::MIN);
    let all = victims.iter().map(|(_, victim)| each(victim)).sum();
    (highest.unwrap_or(i32::MIN), all, victims.len(), Reverse(first))
}

/// A node without those that the pod could make go.
struct Trial<'a> {
    pod: &'a Pod,
    tenant: &'a Tenant,
    name: &'a str,
    sites: &'a mut BTreeMap<String, Site>,
    rules: Option<&'a (Neighbours, Spread)>,
}

impl Trial<'_> {
    /// Who must go; none if that would not help. Everybody is back afterwards.
    fn victims(&mut self, hopes: impl Fn(&Key) -> bool) -> Option<Vec<(Key, Arc<Tenant>)>> {
        let lower = |tenant: &&Arc<Tenant>| tenant.priority < self.tenant.priority;
        let site = self.sites.get(self.name)?;
        let lower = site.pods.iter().filter(|(_, tenant)| lower(tenant));
        let mut lower: Vec<(Key, Arc<Tenant>)> =
            lower.map(|(key, tenant)| (key.clone(), tenant.clone())).collect();
        for (key, _) in &lower {
            self.moves_out(key);
        }
        let mut victims = Vec::new();
        let fits = self.fits();
        if fits {
            // The most important ones are spared first, and among them those that have run for long.
            lower.sort_by_key(|(_, tenant)| (Reverse(tenant.priority), tenant.started));
            for (key, tenant) in lower.iter().filter(|(key, _)| !hopes(key)) {
                self.moves_in(key, tenant);
                if !self.fits() {
                    self.moves_out(key);
                    victims.push((key.clone(), tenant.clone()));
                }
            }
        }
        for (key, tenant) in &lower {
            self.moves_in(key, tenant);
        }
        fits.then_some(victims)
    }

    fn fits(&self) -> bool {
        let Some(site) = self.sites.get(self.name) else { return false };
        let check = |rules: &(Neighbours, Spread)| {
            filter::check(self.pod, self.tenant, site, &rules.0, &rules.1).is_empty()
        };
        self.rules.map_or_else(
            || {
                let neighbours = Neighbours::new(self.pod, self.tenant, self.sites);
                check(&(neighbours, Spread::new(self.pod, self.tenant, self.sites)))
            },
            check,
        )
    }

    fn moves_out(&mut self, key: &Key) {
        if let Some(site) = self.sites.get_mut(self.name) {
            site.moves_out(key);
        }
    }

    fn moves_in(&mut self, key: &Key, tenant: &Arc<Tenant>) {
        if let Some(site) = self.sites.get_mut(self.name)
            && !site.pods.contains_key(key)
        {
            site.moves_in(key.clone(), tenant.clone());
        }
    }
}
