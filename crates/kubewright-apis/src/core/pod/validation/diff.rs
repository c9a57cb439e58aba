//! Unified diff of two texts: hunks with three lines of context, without a header.
//!
//! Uses the algorithm of Python's difflib, because upstream uses a port of it and clients see the text: find
//! the longest common block, then recurse to its left and right. In long texts, frequent lines do not start a
//! block.

use std::collections::HashMap;

const CONTEXT: usize = 3;

/// The diff from `a` to `b`. Empty if they are equal.
pub(super) fn unified(a: &str, b: &str) -> String {
    let a: Vec<&str> = a.split('\n').collect();
    let b: Vec<&str> = b.split('\n').collect();
    let mut out = String::new();
    for hunk in hunks(&changes(&a, &b)) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let (old, new) = (range(first.a.0, last.a.1), range(first.b.0, last.b.1));
        out.push_str("@@ -");
        out.push_str(&old);
        out.push_str(" +");
        out.push_str(&new);
        out.push_str(" @@\n");
        for change in &hunk {
            if change.kept {
                lines(&mut out, ' ', &a[change.a.0..change.a.1]);
            } else {
                lines(&mut out, '-', &a[change.a.0..change.a.1]);
                lines(&mut out, '+', &b[change.b.0..change.b.1]);
            }
        }
    }
    out
}

/// A range of `a` that is kept as, or replaced by, a range of `b`. Replaced ranges may be empty.
#[derive(Debug, Clone, Copy)]
struct Change {
    kept: bool,
    a: (usize, usize),
    b: (usize, usize),
}

fn lines(out: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        out.push(mark);
        out.push_str(line);
        out.push('\n');
    }
}

/// A line range in a hunk header: 1-based, without the length if it is 1.
fn range(start: usize, end: usize) -> String {
    match end - start {
        1 => (start + 1).to_string(),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    }
}

/// Groups changes with their context. Kept ranges longer than two contexts separate hunks.
fn hunks(changes: &[Change]) -> Vec<Vec<Change>> {
    let mut hunks = Vec::new();
    let mut hunk: Vec<Change> = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        let mut change = *change;
        if change.kept && index == 0 {
            change.a.0 = change.a.0.max(change.a.1.saturating_sub(CONTEXT));
            change.b.0 = change.b.0.max(change.b.1.saturating_sub(CONTEXT));
        }
        let last = index + 1 == changes.len();
        let end = (change.a.1.min(change.a.0 + CONTEXT), change.b.1.min(change.b.0 + CONTEXT));
        if change.kept && last {
            (change.a.1, change.b.1) = end;
        } else if change.kept && change.a.1 - change.a.0 > 2 * CONTEXT {
            hunk.push(Change { a: (change.a.0, end.0), b: (change.b.0, end.1), ..change });
            hunks.push(std::mem::take(&mut hunk));
            change.a.0 = change.a.1 - CONTEXT;
            change.b.0 = change.b.1 - CONTEXT;
        }
        hunk.push(change);
    }
    if hunk.iter().any(|change| !change.kept) {
        hunks.push(hunk);
    }
    hunks
}

fn changes(a: &[&str], b: &[&str]) -> Vec<Change> {
    let mut changes = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (start_a, start_b, length) in matches(a, b) {
        if i < start_a || j < start_b {
            changes.push(Change { kept: false, a: (i, start_a), b: (j, start_b) });
        }
        (i, j) = (start_a + length, start_b + length);
        if length > 0 {
            changes.push(Change { kept: true, a: (start_a, i), b: (start_b, j) });
        }
    }
    changes
}

/// The common blocks in order, with adjacent ones merged, and an empty one at the end.
fn matches(a: &[&str], b: &[&str]) -> Vec<(usize, usize, usize)> {
    let places = places(b);
    let mut found = Vec::new();
    let mut queue = vec![(0, a.len(), 0, b.len())];
    while let Some((a0, a1, b0, b1)) = queue.pop() {
        let (i, j, length) = longest(a, b, &places, (a0, a1), (b0, b1));
        if length > 0 {
            found.push((i, j, length));
            queue.push((a0, i, b0, j));
            queue.push((i + length, a1, j + length, b1));
        }
    }
    found.sort_unstable();
    let mut joined: Vec<(usize, usize, usize)> = Vec::new();
    for (i, j, length) in found {
        match joined.last_mut() {
            Some(last) if last.0 + last.2 == i && last.1 + last.2 == j => last.2 += length,
            _ => joined.push((i, j, length)),
        }
    }
    joined.push((a.len(), b.len(), 0));
    joined
}

/// The positions of each line in `b`. In texts of 200 lines or more, lines with a frequency above 1 % are
/// excluded.
fn places<'a>(b: &[&'a str]) -> HashMap<&'a str, Vec<usize>> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, line) in b.iter().enumerate() {
        places.entry(line).or_default().push(index);
    }
    if b.len() >= 200 {
        let limit = b.len() / 100 + 1;
        places.retain(|_, places| places.len() <= limit);
    }
    places
}

/// The longest common block. Ties are resolved by the earliest position in `a`, then in `b`.
fn longest(
    a: &[&str],
    b: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    (a0, a1): (usize, usize),
    (b0, b1): (usize, usize),
) -> (usize, usize, usize) {
    let (mut best_a, mut best_b, mut best) = (a0, b0, 0);
    // The length of the common block that ends at each position of `b`, for the previous line of `a`.
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    for (i, line) in a.iter().enumerate().take(a1).skip(a0) {
        let mut next = HashMap::new();
        for &j in places.get(line).map_or(&[][..], Vec::as_slice) {
            if j < b0 {
                continue;
            }
            if j >= b1 {
                break;
            }
            let length = j.checked_sub(1).and_then(|j| lengths.get(&j)).copied().unwrap_or(0) + 1;
            next.insert(j, length);
            if length > best {
                (best_a, best_b, best) = (i + 1 - length, j + 1 - length, length);
            }
        }
        lengths = next;
    }
    // Frequent lines cannot start a block but can extend one.
    while best_a > a0 && best_b > b0 && a[best_a - 1] == b[best_b - 1] {
        (best_a, best_b, best) = (best_a - 1, best_b - 1, best + 1);
    }
    while best_a + best < a1 && best_b + best < b1 && a[best_a + best] == b[best_b + best] {
        best += 1;
    }
    (best_a, best_b, best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_diff_of_equal_texts_is_empty() {
        assert_eq!(unified("a\nb", "a\nb"), "");
    }

    #[test]
    fn a_change_has_three_lines_of_context() {
        let old: Vec<String> = (0..9).map(|n| n.to_string()).collect();
        let mut new = old.clone();
        new[4] = "x".to_owned();
        let expected = "@@ -2,7 +2,7 @@\n 1\n 2\n 3\n-4\n+x\n 5\n 6\n 7\n";
        assert_eq!(unified(&old.join("\n"), &new.join("\n")), expected);
    }

    #[test]
    fn distant_changes_are_separate_hunks() {
        let old: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let mut new = old.clone();
        new.remove(1);
        new.push("x".to_owned());
        let expected = "@@ -1,5 +1,4 @@\n 0\n-1\n 2\n 3\n 4\n@@ -18,3 +17,4 @@\n 17\n 18\n 19\n+x\n";
        assert_eq!(unified(&old.join("\n"), &new.join("\n")), expected);
    }

    #[test]
    fn the_diff_from_an_empty_text_adds_all_lines() {
        assert_eq!(unified("a", "b"), "@@ -1 +1 @@\n-a\n+b\n");
    }
}
