//! Parses index lists of Jobs, such as `1,3-5`.

use kubewright_apimachinery::field::quote;

/// The number of indexes in a valid list. Indexes must be increasing and below `completions`.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    let mut total = 0;
    let mut last: Option<i64> = None;
    for interval in intervals(text) {
        let (first, end) = parse(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(not_increasing(last, first));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// The first index in both lists. Invalid parts are skipped.
pub(super) fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let read = |text: &str| -> Vec<(i64, i64)> {
        intervals(text).filter_map(|interval| parse(interval, completions).ok()).collect()
    };
    let (completed, failed) = (read(completed), read(failed));
    let (mut completed, mut failed) = (completed.iter().peekable(), failed.iter().peekable());
    while let (Some(c), Some(f)) = (completed.peek(), failed.peek()) {
        if c.0 <= f.1 && f.0 <= c.1 {
            return Some(c.0.max(f.0));
        }
        if c.0 <= f.0 {
            completed.next();
        } else {
            failed.next();
        }
    }
    None
}

fn intervals(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(move |_| !text.is_empty())
}

fn parse(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let number = |text: &str| -> Result<i64, String> {
        let index = text
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: {}", quote(text)))?;
        if index >= completions { Err(format!("too large index: {}", quote(text))) } else { Ok(index) }
    };
    let limits: Vec<&str> = interval.split('-').collect();
    match limits[..] {
        [one] => number(one).map(|index| (index, index)),
        [first, end] => {
            let (first, end) = (number(first)?, number(end)?);
            if first >= end { Err(not_increasing(first, end)) } else { Ok((first, end)) }
        }
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated \
             by '-'",
            quote(interval)
        )),
    }
}

fn not_increasing(previous: i64, current: i64) -> String {
    format!("non-increasing order, previous: {previous}, current: {current}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_numbers_and_ranges_in_increasing_order() {
        assert_eq!(count("", 5), Ok(0));
        assert_eq!(count("1,3-4", 5), Ok(3));
        assert_eq!(count("3,1", 5), Err("non-increasing order, previous: 3, current: 1".to_owned()));
        assert_eq!(count("4-2", 5), Err("non-increasing order, previous: 4, current: 2".to_owned()));
        assert_eq!(count("5", 5), Err("too large index: \"5\"".to_owned()));
        assert_eq!(count("x", 5), Err("cannot convert string to integer for index: \"x\"".to_owned()));
        assert!(count("1-2-3", 5).is_err_and(|error| error.starts_with("the fragment \"1-2-3\" violates")));
    }

    #[test]
    fn the_first_common_index_is_found() {
        assert_eq!(overlap("0-2,5", "3,5-6", 9), Some(5));
        assert_eq!(overlap("0-2", "3-4", 9), None);
        assert_eq!(overlap("x,1", "1", 9), Some(1));
        assert_eq!(overlap("", "1", 9), None);
    }
}
