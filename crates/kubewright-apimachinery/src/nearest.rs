//! Suggestions for misspelt names.
//!
//! Returns no suggestion if no known name is close, because a wrong suggestion misleads.

use strsim::osa_distance;

/// The known name closest to `word`, if it is close enough to be a misspelling.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|known| (osa_distance(&word.to_lowercase(), &known.to_lowercase()), known))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_suggests_the_closest_name() {
        let known = ["deployments", "daemonsets", "pods"];
        assert_eq!(nearest("deployment", known), Some("deployments"));
        assert_eq!(nearest("deploymetns", known), Some("deployments"));
        assert_eq!(nearest("Pod", known), Some("pods"));
    }

    #[test]
    fn a_distant_name_has_no_suggestion() {
        assert_eq!(nearest("secrets", ["deployments", "pods"]), None);
        assert_eq!(nearest("", ["deployments"]), None);
    }
}
