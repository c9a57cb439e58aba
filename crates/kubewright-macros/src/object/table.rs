//! The built-in types of Kubernetes with their fields.
//!
//! Reads this crate's copy of `types.txt`. `kubewright_apimachinery::types` documents the format. Types are
//! parsed on demand; marks that do not restrict the input of a client are skipped.

const TYPES: &str = include_str!("../../facts/types.txt");

/// The type of every object's `metadata`.
pub(super) const OBJECT_META: &str = "meta.v1.ObjectMeta";

/// An object with known fields.
pub(super) struct Type {
    /// For example `apps.v1.Deployment`.
    pub(super) name: &'static str,
    /// Group and version if the type is a kind, such as `apps/v1`, or `/v1` for core.
    pub(super) group_version: Option<&'static str>,
    /// Accepts any JSON.
    pub(super) any: bool,
    pub(super) fields: Vec<Field>,
}

pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) ty: FieldType,
    pub(super) required: bool,
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FieldType {
    /// A string, with its enum values if any.
    Text(Vec<&'static str>),
    Bool,
    Int32,
    Int64,
    Number,
    /// Base64.
    Bytes,
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    List(Box<Self>),
    Map(Box<Self>),
    /// The name of a type in the table.
    Object(String),
    /// Any JSON.
    Any,
}

impl Type {
    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The name without the package, such as `Deployment`.
    pub(super) fn short(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    /// Whether the type is a kind with ObjectMeta. Lists and options have none.
    pub(super) fn is_object(&self) -> bool {
        let meta = FieldType::Object(OBJECT_META.to_owned());
        self.group_version.is_some() && self.field("metadata").is_some_and(|field| field.ty == meta)
    }
}

/// The type with this name, if the table has it.
pub(super) fn find(name: &str) -> Option<Type> {
    let line = lines().find(|line| line.split(' ').next() == Some(name))?;
    Some(parse(line))
}

/// The type names of all kinds, such as `apps.v1.Deployment`.
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    lines().filter(|line| line.contains(" @kind=")).filter_map(|line| line.split(' ').next())
}

fn lines() -> impl Iterator<Item = &'static str> {
    TYPES.lines().filter(|line| !line.starts_with('#'))
}

fn parse(line: &'static str) -> Type {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let package = &name[..=name.rfind('.').unwrap_or_default()];
    let mut ty = Type { name, group_version: None, any: false, fields: Vec::new() };
    for word in words {
        match word.strip_prefix('@') {
            Some("any") => ty.any = true,
            Some(mark) => ty.group_version = mark.strip_prefix("kind=").or(ty.group_version),
            None => ty.fields.extend(word.split_once(':').map(|(name, rest)| field(name, rest, package))),
        }
    }
    ty
}

fn field(name: &'static str, text: &'static str, package: &str) -> Field {
    let (mut ty, mut rest) = field_type(text, package);
    let mut required = false;
    // The default is the last mark and may contain any character.
    while let Some(mark) = rest.chars().next().filter(|mark| *mark != '=') {
        rest = &rest[mark.len_utf8()..];
        match mark {
            '!' => required = true,
            '%' => {
                let (values, behind) = bracket(rest);
                ty = with_values(ty, values);
                rest = behind;
            }
            '@' | '~' => {
                rest = rest.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
                if rest.starts_with('(') {
                    rest = bracket(rest).1;
                }
            }
            _ => {}
        }
    }
    Field { name, ty, required }
}

/// Parses the type at the start of `text` and returns the rest.
fn field_type(text: &'static str, package: &str) -> (FieldType, &'static str) {
    for (open, close) in [('[', ']'), ('{', '}')] {
        if let Some(inner) = text.strip_prefix(open) {
            let (mut of, mut rest) = field_type(inner, package);
            if let Some(marked) = rest.strip_prefix('%') {
                let (values, behind) = bracket(marked);
                of = with_values(of, values);
                rest = behind;
            }
            let of = Box::new(of);
            let ty = if open == '[' { FieldType::List(of) } else { FieldType::Map(of) };
            return (ty, rest.strip_prefix(close).unwrap_or(rest));
        }
    }
    let end =
        text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.').unwrap_or(text.len());
    let ty = match &text[..end] {
        "s" => FieldType::Text(Vec::new()),
        "b" => FieldType::Bool,
        "i" => FieldType::Int32,
        "l" => FieldType::Int64,
        "n" => FieldType::Number,
        "y" => FieldType::Bytes,
        "q" => FieldType::Quantity,
        "x" => FieldType::IntOrString,
        "t" => FieldType::Time,
        "u" => FieldType::MicroTime,
        "f" | "r" | "j" => FieldType::Any,
        name if name.contains('.') => FieldType::Object(name.to_owned()),
        name => FieldType::Object(format!("{package}{name}")),
    };
    (ty, &text[end..])
}

fn bracket(text: &'static str) -> (Vec<&'static str>, &'static str) {
    let inside = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    inside.map_or((Vec::new(), text), |(inside, rest)| (inside.split('|').collect(), rest))
}

fn with_values(ty: FieldType, values: Vec<&'static str>) -> FieldType {
    match ty {
        FieldType::List(of) => FieldType::List(Box::new(with_values(*of, values))),
        FieldType::Text(_) => FieldType::Text(values),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_equals_the_table_of_apimachinery() {
        let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../kubewright-apimachinery/facts/types.txt");
        assert!(std::fs::read_to_string(table).unwrap() == TYPES, "run `cargo xtask facts`");
    }

    #[test]
    fn every_referenced_type_is_in_the_table() {
        let mut fields = 0;
        for line in lines() {
            for field in parse(line).fields {
                let mut ty = &field.ty;
                while let FieldType::List(of) | FieldType::Map(of) = ty {
                    ty = of;
                }
                if let FieldType::Object(name) = ty {
                    assert!(find(name).is_some(), "{line}: {name}");
                }
                fields += 1;
            }
        }
        assert!(fields > 3_000, "{fields} fields");
    }

    #[test]
    fn marks_are_parsed_to_enums_and_required_fields() {
        let ports = find("core.v1.ContainerPort").unwrap();
        assert!(ports.field("containerPort").unwrap().required);
        let protocol = &ports.field("protocol").unwrap().ty;
        assert_eq!(*protocol, FieldType::Text(vec!["SCTP", "TCP", "UDP"]));
        let spec = find("core.v1.PodSpec").unwrap();
        let containers = &spec.field("containers").unwrap().ty;
        assert_eq!(*containers, FieldType::List(Box::new(FieldType::Object("core.v1.Container".to_owned()))));
    }
}
