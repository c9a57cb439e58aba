//! Validation of time zone names.
//!
//! Uses a built-in list, so that the result does not depend on the machine.

use std::sync::LazyLock;

/// The sorted names of the IANA database, including links.
static ZONES: LazyLock<Vec<&str>> = LazyLock::new(|| include_str!("time_zones.txt").lines().collect());

pub(crate) fn is_known(zone: &str) -> bool {
    ZONES.binary_search(&zone).is_ok()
}

/// Returns the problems of a time zone name.
pub(crate) fn messages(zone: &str) -> Vec<String> {
    if zone.is_empty() {
        return vec!["timeZone must be nil or non-empty string".to_owned()];
    }
    let unknown = format!("unknown time zone {zone}");
    if !zone.split('/').all(is_part) {
        return vec![unknown];
    }
    let mut messages = Vec::new();
    if zone.eq_ignore_ascii_case("Local") {
        messages.push(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones".to_owned(),
        );
    }
    if zone != "Local" && !is_known(zone) {
        messages.push(unknown);
    }
    messages
}

fn is_part(part: &str) -> bool {
    (1..=14).contains(&part.len())
        && ![".", ".."].contains(&part)
        && !part.starts_with('-')
        && part.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_+".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(ZONES.is_sorted());
        assert!(ZONES.len() > 500);
    }

    #[test]
    fn zones_are_known_by_new_and_old_names() {
        for zone in ["UTC", "Europe/Zurich", "US/Pacific", "America/Argentina/Ushuaia", "Etc/GMT+1"] {
            assert!(messages(zone).is_empty(), "{zone}");
        }
        assert_eq!(messages("europe/zurich"), ["unknown time zone europe/zurich"]);
        assert_eq!(messages("../etc"), ["unknown time zone ../etc"]);
        assert_eq!(messages("Local").len(), 1);
        assert_eq!(messages("local").len(), 2);
    }
}
