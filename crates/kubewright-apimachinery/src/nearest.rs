//! Suggestions for misspelt names.
//!
//! Returns no suggestion if no known name is close, because a wrong suggestion misleads.

/// The known name closest to `word`, if it is close enough to be a misspelling.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|known| (distance(&word.to_lowercase(), &known.to_lowercase()), known))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, known)| known)
}

/// Edit distance: insertions, deletions, replacements and transpositions.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let changed = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
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
