//! Rust identifiers for JSON names.

use std::collections::BTreeSet;

use crate::scaffold::names;

/// A field name: `job_template` for `jobTemplate`, `cluster_ips` for `clusterIPs`, `type_` for `type`.
pub(super) fn field(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut text = names::module(&acronyms(name));
    while text.contains("__") {
        text = text.replace("__", "_");
    }
    // A leading underscore would mark the field as unused; keywords and digits get a suffix or prefix.
    text = names::module(text.trim_start_matches('_'));
    if text.is_empty() {
        text.push_str("field");
    }
    unique(text, "_", taken)
}

/// A type or variant name: `JobTemplate` for `jobTemplate`, `V1` for `1`.
pub(super) fn part(name: &str) -> String {
    let words = name.split(|char: char| !char.is_ascii_alphanumeric());
    let mut text: String = words.map(names::type_name).collect();
    if text.is_empty() {
        text.push_str("Empty");
    } else if text.starts_with(|first: char| first.is_ascii_digit()) {
        text.insert(0, 'V');
    } else if text == "Self" {
        // `Self` is the only capitalized keyword.
        text.insert_str(0, "It");
    }
    text
}

/// The item name of a list or map: `Address` for `Addresses`, by English endings as for plurals of kinds.
pub(super) fn singular(name: &str) -> String {
    let word = name.to_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|end| word.ends_with(end) && word.len() > end.len());
    let without = |count: usize| name[..name.len() - count].to_owned();
    if ends(&["series", "species", "ss", "us", "is"]) {
        name.to_owned()
    } else if ends(&["ies"]) {
        format!("{}y", without(3))
    } else if ends(&["sses", "shes", "ches", "xes", "zes", "statuses", "aliases", "viruses"]) {
        without(2)
    } else if ends(&["s"]) {
        without(1)
    } else {
        name.to_owned()
    }
}

/// The common trailing words of names: `Address` for `BillingAddress` and `ShippingAddress`.
pub(super) fn common_end(names: &[String]) -> String {
    let words = |name: &String| -> Vec<String> {
        names::module(name).split('_').filter(|word| !word.is_empty()).map(names::type_name).collect()
    };
    let mut all = names.iter().map(words);
    let mut common = all.next().unwrap_or_default();
    for words in all {
        let same =
            common.iter().rev().zip(words.iter().rev()).take_while(|(one, other)| one == other).count();
        common.drain(..common.len() - same);
    }
    common.concat()
}

/// The name, with the first free number if it is taken.
pub(super) fn unique(name: String, separator: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}{separator}{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
    let free = free.unwrap_or(name);
    taken.insert(free.clone());
    free
}

/// serde's `rename_all = "camelCase"`.
pub(super) fn camel_case(field: &str) -> String {
    let mut text = String::new();
    let mut capital = false;
    for char in field.chars() {
        match char {
            '_' => capital = !text.is_empty() || capital,
            _ if capital => {
                text.push(char.to_ascii_uppercase());
                capital = false;
            }
            _ => text.push(char),
        }
    }
    text
}

/// `clusterIps` for `clusterIPs`: the plural of an acronym is one word.
fn acronyms(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let is_end = |at: usize| chars.get(at).is_none_or(|next| !next.is_ascii_lowercase());
    let mut text = String::new();
    for (at, char) in chars.iter().enumerate() {
        let in_run = at > 0 && chars[at - 1].is_ascii_uppercase() && char.is_ascii_uppercase();
        let before_s = chars.get(at + 1) == Some(&'s') && is_end(at + 2);
        text.push(if in_run && before_s { char.to_ascii_lowercase() } else { *char });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_are_valid_rust() {
        let mut taken = BTreeSet::new();
        for (name, expected) in [
            ("jobTemplate", "job_template"),
            ("clusterIPs", "cluster_ips"),
            ("podCIDR", "pod_cidr"),
            ("type", "type_"),
            ("self", "self_"),
            ("$ref", "ref_"),
            ("kebab-case", "kebab_case"),
            ("kebabCase", "kebab_case_2"),
            ("a..b", "a_b"),
            ("4th", "_4th"),
            ("$", "field"),
        ] {
            assert_eq!(field(name, &mut taken), expected);
        }
    }

    #[test]
    fn type_names_are_valid_rust() {
        for (name, expected) in
            [("jobTemplate", "JobTemplate"), ("kebab-case", "KebabCase"), ("", "Empty"), ("1.2", "V12")]
        {
            assert_eq!(part(name), expected);
        }
    }

    #[test]
    fn camel_case_matches_serde() {
        for (field, expected) in [("job_template", "jobTemplate"), ("type_", "type"), ("_4th", "4th")] {
            assert_eq!(camel_case(field), expected);
        }
    }
}
