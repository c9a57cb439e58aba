//! The connection status, and what cannot be shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

/// The connection status, and what cannot be shown.
#[derive(Debug, Default, Serialize)]
pub struct Status {
    /// Connection errors by source.
    #[serde(serialize_with = "first_value")]
    pub lost: BTreeMap<String, String>,
    /// Whether discovery succeeded.
    pub discovered: bool,
    /// Number of watched kinds.
    pub kinds: usize,
    /// Kinds whose objects are being listed.
    #[serde(serialize_with = "count")]
    pub listing: BTreeSet<String>,
    /// Kinds that are forbidden.
    pub forbidden: BTreeSet<String>,
    /// Kinds that cannot be listed, with the reason.
    pub unreadable: BTreeMap<String, String>,
    /// Whether the maximum number of objects is reached.
    pub full: bool,
    /// The start of kubectl command lines.
    pub kubectl: String,
    /// Names of operators without the token of the journal.
    pub rejected: BTreeSet<String>,
}

fn first_value<S: serde::Serializer>(
    map: &BTreeMap<String, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    map.values().next().serialize(serializer)
}

fn count<S: serde::Serializer>(set: &BTreeSet<String>, serializer: S) -> Result<S::Ok, S::Error> {
    set.len().serialize(serializer)
}
