//! Field numbers of messages, read from `facts/protobuf.txt`.

use std::sync::{LazyLock, OnceLock};

/// The meaning of a field number.
pub(super) enum Member {
    /// A field, as JSON calls it.
    Field(&'static str),
    /// An embedded message. JSON shows its fields in the message around it.
    Inline(&'static str),
}

pub(super) struct Message {
    pub(super) name: &'static str,
    body: &'static str,
    members: OnceLock<Vec<(u32, Member)>>,
}

pub(super) static MESSAGES: LazyLock<Vec<Message>> = LazyLock::new(|| {
    let lines = include_str!("../../facts/protobuf.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(name, body)| Message { name, body, members: OnceLock::new() })
        .collect()
});

/// The members of a message, sorted by number; none if the table does not have the message.
pub(super) fn members(name: &str) -> &'static [(u32, Member)] {
    let Some(message) = find(name).or_else(|| find(&alias(name)?)) else { return &[] };
    message.members.get_or_init(|| {
        let mut members: Vec<_> = message.body.split(' ').filter_map(member).collect();
        members.sort_by_key(|(number, _)| *number);
        members
    })
}

fn find(name: &str) -> Option<&'static Message> {
    MESSAGES.binary_search_by(|message| message.name.cmp(name)).ok().map(|at| &MESSAGES[at])
}

/// The type that Go declares this one to be: older versions of admissionregistration take rules and match conditions
/// from v1.
fn alias(name: &str) -> Option<String> {
    let (_, kind) = name.strip_prefix("admissionregistration.")?.split_once('.')?;
    Some(format!("admissionregistration.v1.{kind}"))
}

fn member(word: &'static str) -> Option<(u32, Member)> {
    let (name, number) = word.rsplit_once(':')?;
    let member = match name.strip_prefix('@') {
        Some(embedded) => Member::Inline(embedded),
        None => Member::Field(name),
    };
    Some((number.parse().ok()?, member))
}

/// Whether a list is a message with the items in field 1: Go has a named type for it. Lists in maps always are.
pub(super) fn is_wrapped(message: &str, field: &str) -> bool {
    (message, field) == ("meta.v1.APIResource", "verbs")
}

/// A type of `apiextensions.k8s.io` that JSON shows as one of two things.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Either {
    /// `JSONSchemaPropsOrArray`: schema 1, schemas 2.
    Array,
    /// `JSONSchemaPropsOrBool`: bool 1, schema 2.
    Bool,
    /// `JSONSchemaPropsOrStringArray`: schema 1, strings 2.
    Strings,
}

impl Either {
    /// The type called `name`, if it is one of the three.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name.strip_prefix("apiextensions.v1.JSONSchemaPropsOr")? {
            "Array" => Some(Self::Array),
            "Bool" => Some(Self::Bool),
            "StringArray" => Some(Self::Strings),
            _ => None,
        }
    }
}

/// The type of schemas in CRDs.
pub(super) const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";
