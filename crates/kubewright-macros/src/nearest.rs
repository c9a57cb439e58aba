//! Spelling suggestions for errors.
//!
//! A wrong suggestion is misleading, so a word without a similar candidate gets none.

use strsim::osa_distance;

/// The candidate that is most similar to `word` or starts with it, if any is close enough.
pub(crate) fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let plain = plain(word);
    let limit = (plain.chars().count() / 3).max(1);
    let rank = |candidate: &str| {
        let begins = plain.len() > 3 && candidate.starts_with(&plain);
        Some(osa_distance(&plain, candidate))
            .filter(|distance| *distance <= limit)
            .or(begins.then_some(limit))
    };
    let ranked =
        candidates.into_iter().filter_map(|candidate| Some((rank(&self::plain(candidate))?, candidate)));
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, candidate)| candidate)
}

/// The suffix `; did you mean ...?` of an error, or an empty string.
pub(crate) fn did_you_mean<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    nearest(word, candidates).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// Drops everything but letters, so that `resourceNames` equals `resource_names`.
fn plain(word: &str) -> String {
    word.chars().filter(|letter| !matches!(letter, '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_words_are_suggested() {
        let verbs = ["get", "list", "watch", "delete", "deletecollection"];
        assert_eq!(nearest("lsit", verbs), Some("list"));
        assert_eq!(nearest("deletecollections", verbs), Some("deletecollection"));
        assert_eq!(nearest("deleteCollection", verbs), Some("deletecollection"));
        assert_eq!(nearest("publish", verbs), None);
        assert_eq!(nearest("timeout", ["url", "timeout_seconds"]), Some("timeout_seconds"));
        assert_eq!(did_you_mean("wacth", verbs), "; did you mean `watch`?");
        assert_eq!(did_you_mean("x", verbs), "");
    }
}
