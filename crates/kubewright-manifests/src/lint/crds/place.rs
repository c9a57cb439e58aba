//! Maps the field path of a CRD error to a field of the type.
//!
//! For example `spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[items].items.type` to
//! `spec.items[]` and `type`. List items are written `[]`, map values `[*]`.

/// A location in a CRD.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The index of the version, or `None` for common properties.
    pub(super) version: Option<usize>,
    /// Whether it is in a schema.
    pub(super) in_schema: bool,
    /// In a schema, the field of the object; otherwise the field of the CRD.
    pub(super) field: String,
    /// The remaining path inside the schema.
    pub(super) rest: String,
}

impl Place {
    /// Parses the field of an error. Properties are in brackets, or after a dot in errors of the decoder.
    pub(super) fn of(field: &str) -> Self {
        let version = field
            .strip_prefix("spec.versions[")
            .and_then(|rest| rest.split(']').next())
            .and_then(|index| index.parse().ok());
        let Some((_, schema)) = field.split_once("openAPIV3Schema") else {
            return Self { version, field: field.to_owned(), ..Self::default() };
        };
        let mut place = Self { version, in_schema: true, ..Self::default() };
        let mut rest = schema;
        loop {
            rest = rest.trim_start_matches('.');
            if let Some(after) = keyword(rest, "properties") {
                let (name, after) = property(after);
                place.field = child(&place.field, name);
                rest = after;
            } else if let Some(after) = keyword(rest, "items") {
                place.field.push_str("[]");
                rest = after;
            } else if let Some(after) = keyword(rest, "additionalProperties") {
                place.field.push_str("[*]");
                rest = after;
            } else {
                rest.clone_into(&mut place.rest);
                return place;
            }
        }
    }
}

/// The path of a nested field.
pub(super) fn child(field: &str, name: &str) -> String {
    if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") }
}

/// The rest after a keyword, if something follows it.
fn keyword<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn property(text: &str) -> (&str, &str) {
    if let Some(text) = text.strip_prefix('[') {
        return text.split_once(']').unwrap_or((text, ""));
    }
    let text = text.trim_start_matches('.');
    text.split_at(text.find(['.', '[']).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(field: &str) -> String {
        let Place { version, field, rest, .. } = Place::of(field);
        format!("{version:?} {field} | {rest}")
    }

    #[test]
    fn a_schema_path_is_mapped_to_a_field_path() {
        let schema = "spec.versions[1].schema.openAPIV3Schema";
        assert_eq!(
            rendered(&format!("{schema}.properties[spec].properties[list].items.properties[a.b].type")),
            "Some(1) spec.list[].a.b | type"
        );
        assert_eq!(
            rendered(&format!(
                "{schema}.properties[spec].additionalProperties.x-kubernetes-validations[0].rule"
            )),
            "Some(1) spec[*] | x-kubernetes-validations[0].rule"
        );
        assert_eq!(rendered("spec.validation.openAPIV3Schema.properties.spec.const"), "None spec | const");
        assert_eq!(rendered("spec.validation.openAPIV3Schema"), "None  | ");
    }

    #[test]
    fn a_property_with_the_name_of_a_keyword_is_a_property() {
        let field = "spec.validation.openAPIV3Schema.properties[properties].properties[default].default";
        assert_eq!(rendered(field), "None properties.default | default");
    }

    #[test]
    fn paths_outside_of_schemas_are_unchanged() {
        assert_eq!(rendered("spec.versions[0].name"), "Some(0) spec.versions[0].name | ");
    }
}
