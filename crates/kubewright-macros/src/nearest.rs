//! The word that was meant: suggestions for errors.
//!
//! Owns how far a word may be from another to be taken for it. A suggestion that is wrong misleads, so a word that is
//! far from everything gets none.

/// The candidate that `word` was meant to be, if one is near enough or begins with it.
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

/// `; did you mean ...?` behind an error, or nothing.
pub(crate) fn did_you_mean<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    nearest(word, candidates).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// Letters only: `resourceNames` and `resource_names` are one word.
fn plain(word: &str) -> String {
    word.chars().filter(|letter| !matches!(letter, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// How many letters to add, drop, replace or exchange with their neighbour to make `other` of `one`.
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
    fn a_distance_counts_letters() {
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
    fn only_a_near_word_is_suggested() {
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
