//! Three texts become one: what we wrote, what became of it, and what we would write now.
//!
//! A line that only one side touched is taken from that side. Where both inserted something at the same place, both
//! have it there. Where both changed the same lines to something different, there is no merge, and the tool says so
//! rather than guess.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// A stretch of the base's lines, and what a side has instead.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hunk<'a> {
    start: usize,
    end: usize,
    lines: Vec<&'a str>,
}

/// Merges what the user has with what the tool would write, or tells the first line of the user's that is in the way.
pub(crate) fn merge(base: &str, user: &str, tool: &str) -> Result<String, usize> {
    if base == user {
        return Ok(tool.to_owned());
    }
    let lines: Vec<&str> = base.split_inclusive('\n').collect();
    let (theirs, ours) = (hunks(&lines, user), hunks(&lines, tool));
    let (mut theirs, mut ours) = (theirs.into_iter().peekable(), ours.into_iter().peekable());
    let mut text = String::new();
    let mut at = 0;
    loop {
        let hunk = match (theirs.peek(), ours.peek()) {
            (None, None) => break,
            (Some(one), Some(other)) if one == other => {
                ours.next();
                theirs.next()
            }
            (Some(one), Some(other)) if one.start.max(other.start) < one.end.min(other.end) => {
                return Err(one.start + 1);
            }
            // An insertion comes before what stands at its place; of two, the user's is first.
            (Some(one), Some(other)) if (one.start, one.end) > (other.start, other.end) => ours.next(),
            (Some(_), _) => theirs.next(),
            (None, Some(_)) => ours.next(),
        };
        let Some(hunk) = hunk else { break };
        text.extend(lines[at..hunk.start.max(at)].iter().copied());
        text.extend(hunk.lines);
        at = at.max(hunk.end);
    }
    text.extend(lines[at..].iter().copied());
    Ok(text)
}

fn hunks<'a>(base: &[&str], side: &'a str) -> Vec<Hunk<'a>> {
    let side: Vec<&str> = side.split_inclusive('\n').collect();
    capture_diff_slices(Algorithm::Myers, base, &side)
        .into_iter()
        .filter(|op| !matches!(op, DiffOp::Equal { .. }))
        .map(|op| Hunk {
            start: op.old_range().start,
            end: op.old_range().end,
            lines: side[op.new_range()].to_vec(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_one_side_changed_is_taken() {
        let merged = merge("a\nb\nc\nd\n", "a\nB\nc\nd\n", "a\nb\nc\nd\ne\n");
        assert_eq!(merged.as_deref(), Ok("a\nB\nc\nd\ne\n"));
        assert_eq!(merge("a\nb\n", "a\nb\n", "x\n").as_deref(), Ok("x\n"));
    }

    #[test]
    fn insertions_at_one_place_are_both_kept_and_the_same_one_is_kept_once() {
        assert_eq!(merge("a\n", "a\nuser\n", "a\ntool\n").as_deref(), Ok("a\nuser\ntool\n"));
        assert_eq!(merge("a\n", "a\ntool\n", "a\ntool\n").as_deref(), Ok("a\ntool\n"));
    }

    #[test]
    fn lines_that_both_changed_are_told_and_not_guessed() {
        assert_eq!(merge("a\nb\nc\n", "a\nuser\nc\n", "a\ntool\nc\n"), Err(2));
        assert_eq!(merge("a\nb\nc\n", "a\n", "a\nb\ntool\n"), Err(2));
    }

    #[test]
    fn a_line_that_the_user_added_beside_one_that_the_tool_takes_away_stays() {
        assert_eq!(merge("a\nb\nc\n", "a\nb\nuser\nc\n", "a\nc\n").as_deref(), Ok("a\nuser\nc\n"));
    }
}
