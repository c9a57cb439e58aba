//! The spec of a CRD in the form of upstream's internal type.
//!
//! Values that all versions share are hoisted to the top level. Then error paths start with `spec.validation`
//! instead of `spec.versions[0].schema`, as upstream's do.

use serde_json::Value;

use super::schema::Schema;
use kubewright_apimachinery::object::Fields as _;

/// The spec of a CRD.
pub(super) struct Spec<'a> {
    pub(super) raw: &'a Value,
    /// The `schema` of all versions, if they are equal.
    pub(super) validation: Option<&'a Value>,
    pub(super) subresources: Option<&'a Value>,
    pub(super) columns: &'a [Value],
    pub(super) selectable: &'a [Value],
    pub(super) versions: Vec<Version<'a>>,
}

/// A version, without the values that all versions share.
pub(super) struct Version<'a> {
    pub(super) raw: &'a Value,
    pub(super) schema: Option<&'a Value>,
    pub(super) subresources: Option<&'a Value>,
    pub(super) columns: &'a [Value],
    pub(super) selectable: &'a [Value],
}

impl<'a> Spec<'a> {
    pub(super) fn of(object: &'a Value) -> Self {
        let raw = object.at("spec");
        let versions = raw.list_at("versions");
        let common = |name: &str| -> bool {
            versions
                .first()
                .is_some_and(|first| versions.iter().all(|version| same(version.at(name), first.at(name))))
        };
        let [schema, subresources, columns, selectable] =
            ["schema", "subresources", "additionalPrinterColumns", "selectableFields"].map(common);
        let first = versions.first().unwrap_or(&Value::Null);
        let own = |version: &'a Value, name: &str, is_common: bool| {
            (!is_common).then(|| version.get(name)).flatten().filter(|value| !value.is_null())
        };
        Self {
            raw,
            validation: own(first, "schema", !schema),
            subresources: own(first, "subresources", !subresources),
            columns: if columns { first.list_at("additionalPrinterColumns") } else { &[] },
            selectable: if selectable { first.list_at("selectableFields") } else { &[] },
            versions: versions
                .iter()
                .map(|version| Version {
                    raw: version,
                    schema: own(version, "schema", schema),
                    subresources: own(version, "subresources", subresources),
                    columns: if columns { &[] } else { version.list_at("additionalPrinterColumns") },
                    selectable: if selectable { &[] } else { version.list_at("selectableFields") },
                })
                .collect(),
        }
    }

    /// The name of the first version; upstream's internal type has it as a separate field.
    pub(super) fn version(&self) -> &'a str {
        self.versions.first().map(Version::name).unwrap_or_default()
    }

    pub(super) fn preserves_unknown_fields(&self) -> bool {
        self.raw.bool_at("preserveUnknownFields")
    }

    /// All schemas.
    pub(super) fn schemas(&self) -> impl Iterator<Item = Schema<'a>> {
        std::iter::once(self.validation)
            .chain(self.versions.iter().map(|version| version.schema))
            .flatten()
            .filter_map(root)
    }

    pub(super) fn has_schema(&self, is: &mut dyn FnMut(Schema<'a>) -> bool) -> bool {
        self.schemas().any(|schema| schema.any(is))
    }

    /// Upstream's value for the `schema` of a version; null if it has none. `None` if the version does not
    /// exist, unless all versions share one.
    pub(super) fn schema_of(&self, version: &str) -> Option<&'a Value> {
        if self.versions.iter().all(|version| version.schema.is_none()) {
            return Some(self.validation.unwrap_or(&Value::Null));
        }
        let version = self.versions.iter().find(|known| known.name() == version)?;
        Some(version.schema.unwrap_or(&Value::Null))
    }

    /// The subresources of a version.
    pub(super) fn subresources_of(&self, version: &Version<'a>) -> Option<&'a Value> {
        if self.versions.iter().all(|version| version.subresources.is_none()) {
            self.subresources
        } else {
            version.subresources
        }
    }

    pub(super) fn has_status(&self) -> bool {
        has_status(self.subresources) || self.versions.iter().any(|version| has_status(version.subresources))
    }
}

impl<'a> Version<'a> {
    pub(super) fn name(&self) -> &'a str {
        self.raw.str_at("name")
    }
}

/// The `openAPIV3Schema` inside a version's `schema`.
pub(super) fn root(validation: &Value) -> Option<Schema<'_>> {
    Schema(validation).get("openAPIV3Schema").map(Schema)
}

pub(super) fn has_status(subresources: Option<&Value>) -> bool {
    subresources.is_some_and(|subresources| subresources.has("status"))
}

/// Equality where empty and absent lists are equal.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            // Visit each name once: visiting twice would make the recursion exponential.
            let only_there = other.iter().filter(|(name, _)| !one.contains_key(*name));
            one.iter().all(|(name, value)| same(value, other.get(name).unwrap_or(&Value::Null)))
                && only_there.into_iter().all(|(_, value)| same(&Value::Null, value))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Array(items), Value::Null) | (Value::Null, Value::Array(items)) => items.is_empty(),
        _ => one == other,
    }
}
