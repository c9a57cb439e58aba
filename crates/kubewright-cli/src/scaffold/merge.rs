//! Three-way merge of the old scaffold, the user's file and the new scaffold.
//!
//! A line that only one side changed is taken from that side. Insertions of both sides at the same position
//! are both kept. If both sides changed the same lines differently, the merge fails.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// A range of base lines, with the replacement of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hunk<'a> {
    start: usize,
    end: usize,
    lines: Vec<&'a str>,
}

/// Merges both sides, or returns the user's line number of the first conflict.
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
            // Insertions come before replacements at the same position; of two insertions, the user's is
            // first.
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

/// Like [`merge`], but writes git conflict markers. Returns the number of conflicts.
pub(crate) fn merge_marked(base: &str, user: &str, tool: &str, label: &str) -> (String, usize) {
    if let Ok(text) = merge(base, user, tool) {
        return (text, 0);
    }
    let lines: Vec<&str> = base.split_inclusive('\n').collect();
    let (theirs, ours) = (hunks(&lines, user), hunks(&lines, tool));
    let (mut text, mut marked, mut at) = (String::new(), 0, 0);
    for (start, end) in regions(&theirs, &ours).into_iter().chain([(lines.len(), lines.len() + 1)]) {
        // Merge both sides up to the next conflict.
        let [base, user, tool] = [&[], theirs.as_slice(), &ours].map(|side| applied(&lines, side, at, start));
        match merge(&base, &user, &tool) {
            Ok(merged) => text.push_str(&merged),
            Err(_) => marked += mark(&mut text, &user, &tool, label),
        }
        let [user, tool] = [&theirs, &ours].map(|side| applied(&lines, side, start, end));
        if start < lines.len() {
            marked += mark(&mut text, &user, &tool, label);
        } else {
            // Additions of both sides at the end.
            match merge("", &user, &tool) {
                Ok(merged) => text.push_str(&merged),
                Err(_) => marked += mark(&mut text, &user, &tool, label),
            }
        }
        at = end;
    }
    (text, marked)
}

/// Writes both sides between git conflict markers.
fn mark(text: &mut String, user: &str, tool: &str, label: &str) -> usize {
    let line = |side: &str| if side.is_empty() || side.ends_with('\n') { "" } else { "\n" };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let (after_user, after_tool) = (line(user), line(tool));
    let marked =
        ["<<<<<<< yours\n", user, after_user, "=======\n", tool, after_tool, ">>>>>>> ", label, "\n"];
    text.extend(marked);
    1
}

/// Base ranges that both sides changed differently, extended to the overlapping hunks.
fn regions(theirs: &[Hunk<'_>], ours: &[Hunk<'_>]) -> Vec<(usize, usize)> {
    let overlap = |(start, end): (usize, usize), hunk: &Hunk<'_>| start.max(hunk.start) < end.min(hunk.end);
    let mut regions: Vec<(usize, usize)> = Vec::new();
    for one in theirs {
        for other in ours.iter().filter(|other| *other != one && overlap((one.start, one.end), other)) {
            regions.push((one.start.min(other.start), one.end.max(other.end)));
        }
    }
    for region in &mut regions {
        while let Some(hunk) = theirs
            .iter()
            .chain(ours)
            .find(|hunk| overlap(*region, hunk) && (hunk.start < region.0 || hunk.end > region.1))
        {
            *region = (region.0.min(hunk.start), region.1.max(hunk.end));
        }
    }
    regions.sort_unstable();
    let mut joined: Vec<(usize, usize)> = Vec::new();
    for (start, end) in regions {
        match joined.last_mut() {
            Some(last) if start < last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// Base lines `start..end` with the changes of one side.
fn applied(lines: &[&str], side: &[Hunk<'_>], start: usize, end: usize) -> String {
    let mut text = String::new();
    let mut at = start;
    for hunk in side.iter().filter(|hunk| (start..end).contains(&hunk.start)) {
        text.extend(lines[at..hunk.start.max(at)].iter().copied());
        text.extend(hunk.lines.iter().copied());
        at = at.max(hunk.end);
    }
    text.extend(lines[at.min(lines.len())..end.clamp(at.min(lines.len()), lines.len())].iter().copied());
    text
}

fn hunks<'a>(base: &[&str], side: &'a str) -> Vec<Hunk<'a>> {
    let side: Vec<&str> = side.split_inclusive('\n').collect();
    let mut hunks: Vec<Hunk<'a>> = capture_diff_slices(Algorithm::Myers, base, &side)
        .into_iter()
        .filter(|op| !matches!(op, DiffOp::Equal { .. }))
        .map(|op| Hunk {
            start: op.old_range().start,
            end: op.old_range().end,
            lines: side[op.new_range()].to_vec(),
        })
        .collect();
    let mut bound = base.len();
    for hunk in hunks.iter_mut().rev() {
        hunk.slide(base, bound);
        bound = hunk.start;
    }
    hunks
}

impl Hunk<'_> {
    /// Moves a removal or insertion down as far as the result stays the same, as git does. Of two blocks with
    /// the same ending, the second one is then removed as a whole.
    fn slide(&mut self, base: &[&str], bound: usize) {
        let can_slide = |hunk: &Self| {
            let first = if hunk.lines.is_empty() { base.get(hunk.start) } else { hunk.lines.first() };
            hunk.end < bound && first == base.get(hunk.end)
        };
        while (self.lines.is_empty() || self.start == self.end) && can_slide(self) {
            if !self.lines.is_empty() {
                self.lines.rotate_left(1);
            }
            self.start += 1;
            self.end += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_one_side_are_taken() {
        let merged = merge("a\nb\nc\nd\n", "a\nB\nc\nd\n", "a\nb\nc\nd\ne\n");
        assert_eq!(merged.as_deref(), Ok("a\nB\nc\nd\ne\n"));
        assert_eq!(merge("a\nb\n", "a\nb\n", "x\n").as_deref(), Ok("x\n"));
    }

    #[test]
    fn both_insertions_are_kept_and_equal_ones_once() {
        assert_eq!(merge("a\n", "a\nuser\n", "a\ntool\n").as_deref(), Ok("a\nuser\ntool\n"));
        assert_eq!(merge("a\n", "a\ntool\n", "a\ntool\n").as_deref(), Ok("a\ntool\n"));
    }

    #[test]
    fn conflicting_lines_are_reported() {
        assert_eq!(merge("a\nb\nc\n", "a\nuser\nc\n", "a\ntool\nc\n"), Err(2));
        assert_eq!(merge("a\nb\nc\n", "a\n", "a\nb\ntool\n"), Err(2));
    }

    #[test]
    fn conflicts_are_marked_as_git_does_and_the_rest_is_merged() {
        let (text, marked) =
            merge_marked("a\nb\nc\nd\ne\n", "A\nb\nuser\nd\ne\nmore\n", "a\nb\ntool\nd\nE\n", "kubewright 2");
        assert_eq!(
            (text.as_str(), marked),
            ("A\nb\n<<<<<<< yours\nuser\n=======\ntool\n>>>>>>> kubewright 2\nd\nE\nmore\n", 1)
        );
        let (text, marked) = merge_marked("a\nb\n", "x", "y\nb\n", "kubewright 2");
        assert_eq!((text.as_str(), marked), ("<<<<<<< yours\nx\n=======\ny\nb\n>>>>>>> kubewright 2\n", 1));
        assert_eq!(merge_marked("a\n", "a\nb\n", "a\n", "k"), ("a\nb\n".to_owned(), 0));
    }

    #[test]
    fn no_line_of_either_side_is_lost_in_a_marked_merge() {
        let mut random = fastrand::Rng::with_seed(20);
        let text = |random: &mut fastrand::Rng, side: char| {
            let lines = 0..random.usize(0..12);
            let lines = lines.map(|line| {
                if random.bool() { format!("{}\n", random.u8(0..12)) } else { format!("{side}{line}\n") }
            });
            lines.collect::<Vec<_>>().concat()
        };
        for _ in 0..2_000 {
            let base = (0..random.usize(0..12)).map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
            let (user, tool) = (text(&mut random, 'u'), text(&mut random, 't'));
            let (merged, _) = merge_marked(&base, &user, &tool, "kubewright 2");
            let added = user.lines().chain(tool.lines()).filter(|line| !base.lines().any(|one| one == *line));
            for line in added {
                assert!(merged.lines().any(|one| one == line), "{line} of {user:?} {tool:?}: {merged:?}");
            }
        }
    }

    #[test]
    fn a_user_line_beside_a_removed_line_stays() {
        assert_eq!(merge("a\nb\nc\n", "a\nb\nuser\nc\n", "a\nc\n").as_deref(), Ok("a\nuser\nc\n"));
    }

    #[test]
    fn a_removed_block_does_not_take_the_end_of_an_equal_one() {
        let block = |name: &str, body: &str| format!("\nimpl {name} {{\n    {body}\n}}\n");
        let (base, tool) = (block("A", "Ok") + &block("B", "Ok"), block("A", "Ok"));
        let user = block("A", "Mine") + &block("B", "Ok");
        assert_eq!(merge(&base, &user, &tool), Ok(block("A", "Mine")));
        assert_eq!(merge(&tool, &block("A", "Mine"), &base), Ok(user));
    }
}
