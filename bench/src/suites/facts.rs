//! The facts table: cost of parsing types on first use, and of lookups.
//!
//! The peer parses the same facts from JSON with serde_json and uses hash maps for lookups.

mod json;

use std::collections::{BTreeSet, HashMap};
use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kubewright_apimachinery::types::{self as facts, Type};

use super::{Bench, Suite};
use crate::row::{Row, Unit};
use crate::samples::in_turn;
use crate::stopwatch::mean_of;

pub(crate) const SUITE: Suite = Suite { name: "facts", run };

/// A kind with many nested types, because it contains a pod template.
const KIND: &str = "apps.v1.Deployment";
/// "In microseconds", as an upper bound.
const KIND_TARGET: f64 = 200.0;

fn run(bench: &Bench) -> Result<Vec<Row>> {
    let kind = closure(KIND)?;
    let all: Vec<&str> = facts::type_names().collect();
    bench.progress.say("facts: parsing");
    let mut rows = vec![
        parsing(bench, &format!("parse {KIND} and the {} types below", kind.len() - 1), &kind, 100)
            .target(KIND_TARGET),
        parsing(bench, &format!("parse all {} types", all.len()), &all, 10),
    ];
    bench.progress.say("facts: lookups");
    rows.push(type_lookup(bench, &kind));
    rows.push(field_lookup(bench, &kind));
    Ok(rows)
}

/// The names of `kind` and all types nested in it.
fn closure(kind: &'static str) -> Result<Vec<&'static str>> {
    let mut found = BTreeSet::new();
    let mut open = vec![facts::type_named(kind).with_context(|| format!("no {kind} in the table"))?];
    while let Some(ty) = open.pop() {
        if found.insert(ty.name) {
            open.extend(ty.fields.iter().filter_map(|field| field.ty.object()));
        }
    }
    Ok(found.into_iter().collect())
}

fn types(names: &[&str]) -> Vec<&'static Type> {
    names.iter().filter_map(|name| facts::type_named(name)).collect()
}

fn parsing(bench: &Bench, name: &str, types_of: &[&str], calls: u32) -> Row {
    let names: Vec<&str> = facts::type_names().collect();
    let texts = json::write(&types(types_of));
    let (ours, peer) = in_turn(
        bench.rounds,
        || {
            mean_of(calls, || {
                for name in types_of {
                    drop(black_box(facts::parse_type(black_box(name))));
                }
            })
        },
        || {
            mean_of(calls, || {
                for text in &texts {
                    drop(black_box(json::read(black_box(text), &names)));
                }
            })
        },
    );
    Row::new(name, Unit::Micros, ours).beside("serde_json", peer)
}

fn type_lookup(bench: &Bench, names: &[&'static str]) -> Row {
    let map: HashMap<&str, &Type> =
        facts::type_names().zip(facts::type_names().filter_map(facts::type_named)).collect();
    let (ours, peer) = in_turn(
        bench.rounds,
        || each(names, |name| facts::type_named(name)),
        || each(names, |name| map.get(*name).copied()),
    );
    Row::new("look up a type by name", Unit::Nanos, ours).beside("HashMap", peer)
}

fn field_lookup(bench: &Bench, names: &[&str]) -> Row {
    let types = types(names);
    let maps: Vec<HashMap<&str, &facts::Field>> =
        types.iter().map(|ty| ty.fields.iter().map(|field| (field.name, field)).collect()).collect();
    // Every field of every type once, in declaration order.
    let questions: Vec<(usize, &str)> = types
        .iter()
        .enumerate()
        .flat_map(|(at, ty)| ty.fields.iter().map(move |field| (at, field.name)))
        .collect();
    let (ours, peer) = in_turn(
        bench.rounds,
        || each(&questions, |(at, field)| types[*at].field(field)),
        || each(&questions, |(at, field)| maps[*at].get(field).copied()),
    );
    Row::new("look up a field by name", Unit::Nanos, ours).beside("HashMap", peer)
}

/// Mean duration of one lookup, over many repetitions of all of them.
fn each<Q, A>(questions: &[Q], answer: impl Fn(&Q) -> A) -> Duration {
    let count = u32::try_from(questions.len()).unwrap_or(u32::MAX);
    let all = mean_of(200, || {
        for question in questions {
            black_box(answer(black_box(question)));
        }
    });
    all.div_f64(f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Progress;

    #[test]
    fn a_deployment_contains_pod_and_metadata_types_but_no_services() {
        let kind = closure(KIND).unwrap();
        for name in ["core.v1.Container", "meta.v1.ObjectMeta", "core.v1.SecretVolumeSource"] {
            assert!(kind.contains(&name), "{name}");
        }
        assert!(!kind.contains(&"core.v1.Service"));
    }

    #[test]
    fn every_row_has_a_figure_and_a_peer() {
        let rows = run(&Bench { rounds: 1, progress: Progress::new() }).unwrap();
        assert_eq!(rows.len(), 4);
        assert!(rows.iter().all(|row| row.ours() > 0.0 && row.ratio().is_some_and(|ratio| ratio > 0.0)));
    }
}
