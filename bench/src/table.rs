//! The printed table. Numbers are rounded to three significant digits; the JSON contains full precision.

use std::fmt::Write as _;

use crate::row::{Results, Row};

const HEAD: [&str; 9] = ["row", "unit", "ours", "spread", "peer", "spread", "ratio", "target", "met"];
/// Placeholder for a missing value.
const NOTHING: &str = "-";

/// Renders all suites as one table.
pub(crate) fn render(all: &[Results]) -> String {
    let lines: Vec<[String; 9]> = std::iter::once(HEAD.map(str::to_owned))
        .chain(all.iter().flat_map(|results| results.rows.iter().map(|row| cells(results.suite, row))))
        .collect();
    let mut text = String::new();
    for line in &lines {
        for (at, cell) in line.iter().enumerate() {
            let width = lines.iter().map(|line| line[at].chars().count()).max().unwrap_or_default();
            // Names are left-aligned, numbers right-aligned.
            let padded = if at < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            let _ = write!(text, "{}{padded}", if at == 0 { "" } else { "  " });
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

fn cells(suite: &str, row: &Row) -> [String; 9] {
    let number_or_nothing = |value: Option<f64>| value.map_or_else(|| NOTHING.to_owned(), number);
    let percent_or_nothing = |value: Option<f64>| value.map_or_else(|| NOTHING.to_owned(), percent);
    let peer = row.peer.as_ref().zip(row.theirs());
    let met = match row.met() {
        None => NOTHING,
        Some(true) => "yes",
        Some(false) => "NO",
    };
    [
        format!("{suite}: {}", row.name),
        row.unit.name().to_owned(),
        number(row.ours()),
        percent(row.spread()),
        peer.map_or_else(|| NOTHING.to_owned(), |(peer, value)| format!("{} {}", peer.name, number(value))),
        percent_or_nothing(row.their_spread()),
        number_or_nothing(row.ratio()),
        number_or_nothing(row.target),
        met.to_owned(),
    ]
}

fn percent(part: f64) -> String {
    format!("{:.0}%", part * 100.0)
}

/// Formats three significant digits, with commas in large numbers.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let plain = format!("{value:.decimals$}");
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { grouped } else { format!("{grouped}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Unit;
    use crate::samples::Samples;

    fn samples(values: &[f64]) -> Samples {
        values.iter().copied().collect()
    }

    #[test]
    fn all_rows_are_in_one_table() {
        let facts = Row::new("one kind, parsed", Unit::Micros, samples(&[50e-6, 52e-6, 54e-6, 60e-6]))
            .beside("serde_json", samples(&[200e-6]))
            .target(200.0);
        let idle = Row::new("idle", Unit::Megabytes, samples(&[16.2e6])).target(15.0);
        let gets = Row::new("gets", Unit::PerSecond, samples(&[123_456.7]));
        let all = [
            Results { suite: "facts", rows: vec![facts] },
            Results { suite: "server", rows: vec![idle, gets] },
        ];
        insta::assert_snapshot!(render(&all), @"
        row                      unit     ours  spread            peer  spread  ratio  target  met
        facts: one kind, parsed  us         53      4%  serde_json 200      0%   3.77     200  yes
        server: idle             MB       16.2      0%               -       -      -      15   NO
        server: gets             1/s   123,457      0%               -       -      -       -    -
        ");
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        let shown: Vec<String> =
            [0.0123, 0.5, 1.234, 45.67, 456.7, 4_567.8, 1_234_567.0, f64::NAN].map(number).into();
        assert_eq!(shown, ["0.012", "0.5", "1.23", "45.7", "457", "4,568", "1,234,567", "-"]);
    }
}
