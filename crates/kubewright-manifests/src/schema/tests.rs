//! Keywords of markers before CRD generation.

use std::collections::BTreeMap;

use schemars::{JsonSchema, schema_for};

use super::*;

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
#[schemars(transform = at_least_one_of(["name", "in"]))]
struct Marked {
    #[schemars(transform = exclusive_minimum(0), transform = multiple_of(5))]
    number: i32,
    #[schemars(transform = items(max_length(3)))]
    list: Option<Vec<String>>,
    #[schemars(transform = min_properties(1), transform = values(min_length(1)))]
    map: BTreeMap<String, String>,
    name: Option<String>,
    r#in: Option<String>,
    #[schemars(transform = embedded_resource())]
    object: BTreeMap<String, String>,
}

#[test]
fn markers_are_in_every_schema_of_schemars() {
    let schema = schema_for!(Marked).to_value();
    let field = |name: &str, key: &str| schema["properties"][name][key].clone();
    assert_eq!(field("number", "minimum"), 0);
    assert_eq!(field("number", "exclusiveMinimum"), true);
    assert_eq!(field("number", "multipleOf"), 5);
    assert_eq!(field("list", "items")["maxLength"], 3);
    assert_eq!(field("map", "minProperties"), 1);
    assert_eq!(field("map", "additionalProperties")["minLength"], 1);
    assert_eq!(field("object", "additionalProperties"), Value::Null);
    assert_eq!(field("object", "x-kubernetes-preserve-unknown-fields"), true);
}

#[test]
fn rules_equal_those_of_controller_gen_with_escaped_names() {
    let schema = schema_for!(Marked).to_value();
    let rule = &schema["x-kubernetes-validations"][0];
    assert_eq!(rule["rule"], "[has(self.name),has(self.__in__)].filter(x,x==true).size() >= 1");
    assert_eq!(rule["message"], "at least one of the fields in [name in] must be set");
}

#[test]
fn every_format_is_supported_by_the_api_server() {
    use kubewright_apiextensions::crd::warnings;
    for format in [
        Format::Int32,
        Format::Int64,
        Format::Float,
        Format::Double,
        Format::Byte,
        Format::Date,
        Format::DateTime,
        Format::Duration,
        Format::Email,
        Format::Hostname,
        Format::Ipv4,
        Format::Ipv6,
        Format::Cidr,
        Format::Mac,
        Format::Uri,
        Format::Uuid,
        Format::Uuid3,
        Format::Uuid4,
        Format::Uuid5,
        Format::HexColor,
        Format::RgbColor,
        Format::BsonObjectId,
        Format::CreditCard,
        Format::Isbn,
        Format::Isbn10,
        Format::Isbn13,
        Format::Password,
        Format::Ssn,
        Format::ShortName,
        Format::LongName,
    ] {
        let schema = json!({ "type": format.fits()[0], "format": format.name() });
        let definition = json!({ "spec": { "versions": [{ "schema": { "openAPIV3Schema": schema } }] } });
        assert_eq!(warnings(&definition, None), [""; 0], "{format:?}");
    }
}
