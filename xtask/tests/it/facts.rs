//! Compares the tables of facts with the package that they are generated from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kubewright_apimachinery::types::{self as facts, Field, FieldType, Merge};

#[test]
fn every_fact_about_a_type_equals_the_package() {
    let cache = xtask::target_dir(&xtask::repo_root().unwrap()).join("facts");
    let definitions = xtask::facts::definitions(&cache).unwrap_or_else(|error| panic!("{error:#}"));
    let package = xtask::facts::facts_of_definitions(&definitions).unwrap();

    let mut table = BTreeMap::new();
    for name in facts::type_names() {
        let ty = facts::type_named(name).unwrap();
        let fields: BTreeMap<String, String> =
            ty.fields.iter().map(|field| (field.name.to_owned(), notation(field, name))).collect();
        table.insert(name.to_owned(), fields);
    }

    let mut differences = String::new();
    for name in package.keys().chain(table.keys()) {
        let (ours, theirs) = (table.get(name), package.get(name));
        if ours != theirs {
            writeln!(differences, "{name}\n  table   {ours:?}\n  package {theirs:?}").unwrap();
        }
    }
    assert!(differences.is_empty(), "run `cargo xtask facts` and review what changed:\n{differences}");
    assert!(table.len() > 750, "{} types", table.len());
}

/// The facts of a field that both sides have, in the notation of the table.
fn notation(field: &Field, type_name: &str) -> String {
    let package = &type_name[..=type_name.rfind('.').unwrap()];
    let mut text = type_notation(&field.ty, package, &field.enum_values);
    if field.required {
        text.push('!');
    }
    match &field.merge {
        Merge::Unset => {}
        Merge::Atomic => text.push_str("@a"),
        Merge::Granular => text.push_str("@g"),
        Merge::Set => text.push_str("@s"),
        Merge::Map(keys) => write!(text, "@m({})", keys.join(",")).unwrap(),
    }
    let patch = field.patch;
    if patch.merge || patch.retain_keys || patch.replace {
        text.push('~');
    }
    for (set, letter) in [(patch.merge, 'm'), (patch.retain_keys, 'r'), (patch.replace, 'p')] {
        if set {
            text.push(letter);
        }
    }
    if let Some(key) = patch.key {
        write!(text, "({key})").unwrap();
    }
    text
}

fn type_notation(ty: &FieldType, package: &str, enum_values: &[&str]) -> String {
    let letter = match ty {
        FieldType::String => "s",
        FieldType::Bool => "b",
        FieldType::Int32 => "i",
        FieldType::Int64 => "l",
        FieldType::Number => "n",
        FieldType::Bytes => "y",
        FieldType::Quantity => "q",
        FieldType::IntOrString => "x",
        FieldType::Time => "t",
        FieldType::MicroTime => "u",
        FieldType::FieldsV1 => "f",
        FieldType::Raw => "r",
        FieldType::Json => "j",
        FieldType::Object(of) => of.name().strip_prefix(package).unwrap_or(of.name()),
        FieldType::Map(of) => return format!("{{{}}}", type_notation(of, package, &[])),
        FieldType::List(of) => {
            let values =
                if enum_values.is_empty() { String::new() } else { format!("%({})", enum_values.join("|")) };
            return format!("[{}{values}]", type_notation(of, package, &[]));
        }
    };
    letter.to_owned()
}
