//! Spelling suggestions for errors.
//!
//! A wrong suggestion is misleading, so a word without a similar candidate gets none.

/// The candidate that is most similar to `word` or starts with it, if any is close enough.
pub(crate) fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let plain = plain(word);
    let limit = (plain.chars().count() / 3).max(1);
    let rank = |candidate: &str| {
        let begins = plain.len() > 3 && candidate.starts_with(&plain);
        Some(distance(&plain, candidate)).filter(|distance| *distance <= limit).or(begins.then_some(limit))
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

/// The number of insertions, deletions, substitutions and transpositions between two words.
pub(crate) fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    let mut previous = None;
    for (row, letter) in one.chars().enumerate() {
        let mut line = vec![row + 1];
        for (column, wanted) in other.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != *wanted);
            let mut least = replaced.min(above[column + 1] + 1).min(line[column] + 1);
            if column > 0 && previous == Some(*wanted) && other[column - 1] == letter {
                least = least.min(before[column - 1] + 1);
            }
            line.push(least);
        }
        before = std::mem::replace(&mut above, line);
        previous = Some(letter);
    }
    above[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_letter_edits() {
        for (one, other, letters) in [
            ("", "", 0),
            ("", "ab", 2),
            ("list", "lsit", 1),
            ("get", "gets", 1),
            ("watch", "match", 1),
            ("abc", "", 3),
        ] {
            assert_eq!((distance(one, other), distance(other, one)), (letters, letters), "{one} {other}");
        }
    }

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
