//! The CEL rules of a schema.

use kubewright_cel::rules::{Keywords, RuleSet, Schema};

use super::{ListType, MapType, Structural};

impl Structural {
    /// Compiles the rules of the root schema of a resource.
    pub fn rules(&self) -> RuleSet {
        // The other keywords are only needed to evaluate rules.
        if self.contains.rules { RuleSet::compile(self.into()) } else { RuleSet::compile(Schema::default()) }
    }
}

impl From<&Structural> for Schema {
    fn from(schema: &Structural) -> Self {
        let strings = |allowed: &super::Allowed| {
            allowed.values().iter().filter_map(|value| value.as_str()).map(str::len).max().unwrap_or(0)
        };
        let size = schema.size.as_deref();
        let boxed = |schema: &Structural| Box::new(Self::from(schema));
        let properties = schema.properties.iter();
        let all_of = schema.junctors.iter().flat_map(|joined| &joined.all_of);
        Self::from(Keywords {
            type_name: schema.type_name().to_owned(),
            format: schema.format.as_ref().map(|format| format.name.clone()).unwrap_or_default(),
            nullable: schema.nullable,
            int_or_string: schema.int_or_string,
            embedded_resource: schema.embedded_resource,
            preserve_unknown_fields: schema.preserve_unknown_fields,
            list_type: schema.list_type.map(ListType::name).map(str::to_owned),
            list_map_keys: schema.list_map_keys.clone(),
            map_type: schema.map_type.map(MapType::name).map(str::to_owned),
            items: schema.items.as_deref().map(boxed),
            properties: properties.map(|(name, schema)| (name.clone(), schema.into())).collect(),
            additional: schema.additional_schema().map(boxed),
            has_additional: schema.additional.is_some(),
            max_items: size.and_then(|size| size.max_items),
            max_length: schema.string.as_deref().and_then(|bounds| bounds.max_length),
            max_properties: size.and_then(|size| size.max_properties),
            required: schema.required.clone(),
            has_default: schema.default.is_some(),
            longest_enum: schema.allowed.as_deref().map(strings),
            rules: schema.validations.clone(),
            all_of: all_of.map(Self::from).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
