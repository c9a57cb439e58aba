//! The shapes of Kubernetes' API types: fields, Go's encoding of them, merge keys and patch strategies.
//!
//! [`decode`](crate::decode), [`encode`](crate::encode), strategic merge patches and server-side apply all walk along
//! a [`Type`]. The text in `facts/types.txt` is derived by `cargo xtask facts` and reviewed; this module is its only
//! reader. A type is parsed on first use and kept for the life of the process, so a program pays only for the kinds
//! that it uses. Which resources there are, and what their rules are, is not known here.
//!
//! # Format of `types.txt`
//!
//! One line a type, sorted by name: the name, marks of the type, then its fields in Go's order.
//!
//! ```text
//! core.v1.ContainerPort name:s hostPort:i containerPort:i!+ protocol:s%(SCTP|TCP|UDP)="TCP" hostIP:s
//! ```
//!
//! A field is `name:TYPE` followed by marks. `TYPE` is a letter (`s` string, `b` bool, `i` int32, `l` int64,
//! `n` number, `y` base64 bytes, `q` quantity, `x` int-or-string, `t` time, `u` time with microseconds, `f`
//! FieldsV1, `r` any object, `j` any JSON), `[TYPE]` a list, `{TYPE}` a map with string keys, or the name of
//! a type; a name without dots is of the same package.
//!
//! | mark | meaning |
//! |---|---|
//! | `!` | required by the schema |
//! | `?` | a pointer in Go: an explicit zero value is kept |
//! | `+` | always written, also when it is absent |
//! | `@a` `@g` `@s` `@m(k,..)` | atomic, granular, a set, a map with these keys, for server-side apply |
//! | `~m(k)` `~r` `~mr(k)` `~p` | merge, retain keys, both, replace, for strategic merge patches |
//! | `%(A\|B)` | the values of an enum |
//! | `=JSON` | the default that the schema publishes |
//!
//! Marks of a type: `@atomic`, `@kind=group/version`, `@unions=JSON`, `@any` (holds any JSON).

mod check;
mod parse;

use std::sync::{LazyLock, OnceLock};

pub use check::{Mismatch, mismatches};
pub use parse::{ParseError, lines};

static TYPES: LazyLock<Vec<Slot>> = LazyLock::new(|| parse::index(include_str!("../facts/types.txt")));

/// One type of the table: an object with known fields.
#[derive(Debug)]
pub struct Type {
    /// The name in the table, for example `apps.v1.Deployment`.
    pub name: &'static str,
    /// Group and version, if the type is a kind of its own, for example `apps/v1` (`/v1` for core).
    pub kind_of: Option<&'static str>,
    /// Server-side apply treats the whole object as one value.
    pub atomic: bool,
    /// Holds any JSON; `fields` is empty.
    pub any: bool,
    /// `x-kubernetes-unions` as JSON text.
    pub unions: Option<&'static str>,
    /// In the order of Go's struct.
    pub fields: Box<[Field]>,
    /// What tells the name of a field from most others, and its position in `fields`; sorted.
    by_name: Box<[(u64, u16)]>,
}

/// One field of a [`Type`].
#[derive(Debug)]
pub struct Field {
    /// As JSON has it.
    pub name: &'static str,
    /// What the field holds.
    pub ty: FieldType,
    /// The schema lists it as required. Validation, not decoding, tells users so.
    pub required: bool,
    /// A pointer in Go: an explicit zero value is kept, where other fields drop it.
    pub pointer: bool,
    /// Written even when absent: as zero, `null` or `{}`, whatever Go has for the type.
    pub always: bool,
    /// How server-side apply merges it.
    pub merge: Merge,
    /// How a strategic merge patch treats it.
    pub patch: Patch,
    /// The values of an enum, or empty.
    pub enum_values: Box<[&'static str]>,
    /// The published default, as JSON text.
    pub default: Option<&'static str>,
}

/// What a field holds.
#[derive(Debug)]
pub enum FieldType {
    /// A string.
    String,
    /// true or false.
    Bool,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A floating-point number.
    Number,
    /// Bytes, as base64.
    Bytes,
    /// A resource quantity.
    Quantity,
    /// An integer or a string.
    IntOrString,
    /// RFC 3339 with seconds.
    Time,
    /// RFC 3339 with microseconds.
    MicroTime,
    /// The field set of a managedFields entry.
    FieldsV1,
    /// Any object.
    Raw,
    /// Any JSON.
    Json,
    /// A list.
    List(Box<FieldType>),
    /// A map with string keys.
    Map(Box<FieldType>),
    /// An object of the table.
    Object(TypeRef),
}

/// How server-side apply merges a list, a map or an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Merge {
    /// As the type has it: lists are atomic, maps and objects are granular.
    #[default]
    Unset,
    /// One value, owned whole.
    Atomic,
    /// A map whose entries are owned one by one, said outright.
    Granular,
    /// A list of scalars, each owned on its own.
    Set,
    /// A list of objects told apart by these keys.
    Map(Box<[&'static str]>),
}

/// How a strategic merge patch treats a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Patch {
    /// Lists are merged, by `key` or, without one, as sets of scalars.
    pub merge: bool,
    /// The patch may name with `$retainKeys` the fields that stay.
    pub retain_keys: bool,
    /// The published strategy says `replace`.
    pub replace: bool,
    /// Merge key of a list of objects.
    pub key: Option<&'static str>,
}

/// A type of the table that may not be parsed yet.
#[derive(Clone, Copy)]
pub struct TypeRef(u16);

impl TypeRef {
    /// The type, parsed on first use.
    #[inline]
    pub fn get(self) -> &'static Type {
        TYPES[usize::from(self.0)].parsed()
    }

    /// The name of the type, without parsing it.
    pub fn name(self) -> &'static str {
        TYPES[usize::from(self.0)].name
    }
}

impl std::fmt::Debug for TypeRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Type {
    /// The field that JSON calls `name`.
    #[inline]
    pub fn field(&self, name: &str) -> Option<&Field> {
        let hint = hint(name);
        let first = self.by_name.partition_point(|(of, _)| *of < hint);
        let alike = self.by_name[first..].iter().take_while(|(of, _)| *of == hint);
        alike.map(|(_, at)| &self.fields[usize::from(*at)]).find(|field| field.name == name)
    }
}

/// A number that few names share: the length and the first seven bytes.
fn hint(name: &str) -> u64 {
    let start = match name.as_bytes().first_chunk() {
        Some(start) => u64::from_le_bytes(*start) & (u64::MAX >> 8),
        None => name.bytes().rev().fold(0, |start, byte| start << 8 | u64::from(byte)),
    };
    start | (name.len() as u64) << 56
}

impl FieldType {
    /// The type of the object that this is, or that its list or map holds.
    pub fn object(&self) -> Option<&'static Type> {
        match self {
            Self::Object(of) => Some(of.get()),
            Self::List(of) | Self::Map(of) => of.object(),
            _ => None,
        }
    }
}

/// The type called `name` (`core.v1.Pod`), if the table has it.
pub fn type_named(name: &str) -> Option<&'static Type> {
    find(name).map(TypeRef::get)
}

/// The type of a kind, by its group, version and kind.
pub fn type_of_kind(group: &str, version: &str, kind: &str) -> Option<&'static Type> {
    find_kind(group, version, kind).map(TypeRef::get)
}

/// As [`type_of_kind`], without parsing it.
pub fn find_kind(group: &str, version: &str, kind: &str) -> Option<TypeRef> {
    let package = match group {
        "" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        _ => group.split('.').next().unwrap_or_default(),
    };
    find(&[package, ".", version, ".", kind].concat())
}

/// The names of all types of the table, sorted.
pub fn type_names() -> impl Iterator<Item = &'static str> {
    TYPES.iter().map(|slot| slot.name)
}

/// Parses one line of the table anew, past the cache: for benchmarks and checks.
pub fn parse_type(name: &str) -> Option<Result<Type, ParseError>> {
    let slot = &TYPES[usize::from(find(name)?.0)];
    Some(parse::parse(slot.name, slot.body))
}

/// As [`type_named`], without parsing it.
pub fn find(name: &str) -> Option<TypeRef> {
    let at = TYPES.binary_search_by(|slot| slot.name.cmp(name)).ok()?;
    u16::try_from(at).ok().map(TypeRef)
}

struct Slot {
    name: &'static str,
    body: &'static str,
    /// Boxed, since most are never asked for.
    parsed: OnceLock<Box<Type>>,
}

impl Slot {
    fn parsed(&self) -> &Type {
        // The text is part of the build, and a test parses all of it: a bad line cannot reach a user.
        self.parsed.get_or_init(|| {
            Box::new(parse::parse(self.name, self.body).unwrap_or_else(|error| panic!("{error}")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_parses() {
        let mut fields = 0;
        for name in type_names() {
            fields += type_named(name).unwrap().fields.len();
        }
        assert!(fields > 3_000, "{fields} fields");
        assert!(TYPES.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn apply_and_strategic_merge_know_container_ports_by_different_keys() {
        let ports = type_named("core.v1.Container").unwrap().field("ports").unwrap();
        assert_eq!(ports.merge, Merge::Map(["containerPort", "protocol"].into()));
        assert_eq!(ports.patch, Patch { merge: true, key: Some("containerPort"), ..Patch::default() });
    }

    #[test]
    fn pointers_and_what_is_always_written_are_known() {
        let spec = type_named("apps.v1.DeploymentSpec").unwrap();
        assert!(spec.field("replicas").unwrap().pointer);
        assert!(!spec.field("minReadySeconds").unwrap().pointer);
        assert!(spec.field("template").unwrap().always);
        assert!(type_named("core.v1.Container").unwrap().field("resources").unwrap().always);
        assert!(!type_named("meta.v1.ObjectMeta").unwrap().field("creationTimestamp").unwrap().always);
    }

    #[test]
    fn a_kind_finds_its_type() {
        let hpa = type_of_kind("autoscaling", "v2", "HorizontalPodAutoscaler").unwrap();
        assert_eq!(hpa.kind_of, Some("autoscaling/v2"));
        assert_eq!(type_of_kind("rbac.authorization.k8s.io", "v1", "Role").unwrap().name, "rbac.v1.Role");
        assert_eq!(type_of_kind("", "v1", "Pod").unwrap().kind_of, Some("/v1"));
        assert!(type_of_kind("", "v1", "Nope").is_none());
    }

    #[test]
    fn a_reference_without_dots_is_of_the_same_package() {
        let pod = type_named("core.v1.Pod").unwrap();
        assert_eq!(pod.field("spec").unwrap().ty.object().unwrap().name, "core.v1.PodSpec");
        assert_eq!(pod.field("metadata").unwrap().ty.object().unwrap().name, "meta.v1.ObjectMeta");
    }
}
