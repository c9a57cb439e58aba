//! Validates cron schedules with the grammar and messages of upstream's cron library.
//!
//! Does not compute run times.

use super::time_zone;
use kubewright_apimachinery::duration::parse_go_duration;
use kubewright_apimachinery::field::quote;

/// The bounds of a field.
struct Bounds {
    min: u64,
    max: u64,
    names: &'static [&'static str],
}

const FIELDS: [Bounds; 5] = [
    Bounds { min: 0, max: 59, names: &[] },
    Bounds { min: 0, max: 23, names: &[] },
    Bounds { min: 1, max: 31, names: &[] },
    Bounds {
        min: 1,
        max: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Bounds { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

/// Parses a non-empty schedule.
pub(super) fn parse(schedule: &str) -> Result<(), String> {
    let schedule = without_zone(schedule)?;
    if schedule.starts_with('@') {
        return descriptor(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let (count, joined) = (fields.len(), fields.join(" "));
        return Err(format!("expected exactly {} fields, found {count}: [{joined}]", FIELDS.len()));
    }
    fields.iter().zip(&FIELDS).try_for_each(|(field, bounds)| {
        field
            .split(',')
            .filter(|range| !range.is_empty())
            .try_for_each(|expression| range(expression, bounds))
    })
}

fn without_zone(schedule: &str) -> Result<&str, String> {
    let Some(rest) = schedule.strip_prefix("TZ=").or_else(|| schedule.strip_prefix("CRON_TZ=")) else {
        return Ok(schedule);
    };
    let (zone, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    if zone.is_empty() || zone == "Local" || time_zone::is_known(zone) {
        Ok(rest.trim())
    } else {
        Err(format!("provided bad location {zone}: unknown time zone {zone}"))
    }
}

fn descriptor(descriptor: &str) -> Result<(), String> {
    match descriptor {
        "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly" => Ok(()),
        _ => match descriptor.strip_prefix("@every ") {
            Some(text) => match parse_go_duration(text) {
                Ok(_) => Ok(()),
                Err(error) => Err(format!("failed to parse duration {descriptor}: {error}")),
            },
            None => Err(format!("unrecognized descriptor: {descriptor}")),
        },
    }
}

/// Parses `number`, `number-number` or `*`, optionally with `/step`.
fn range(expression: &str, bounds: &Bounds) -> Result<(), String> {
    let parts: Vec<&str> = expression.split('/').collect();
    let limits: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = match limits[..] {
        ["*" | "?", ..] => (bounds.min, bounds.max),
        [one] => {
            let number = number_or_name(one, bounds)?;
            (number, number)
        }
        [first, last] => (number_or_name(first, bounds)?, number_or_name(last, bounds)?),
        _ => {
            number_or_name(limits[0], bounds)?;
            return Err(format!("too many hyphens: {expression}"));
        }
    };
    let step = match parts[..] {
        [_] => 1,
        [_, step] => {
            // `5/15` means from 5 to the maximum.
            if limits.len() == 1 {
                end = bounds.max;
            }
            number(step)?
        }
        _ => return Err(format!("too many slashes: {expression}")),
    };
    if start < bounds.min {
        let min = bounds.min;
        return Err(format!("beginning of range ({start}) below minimum ({min}): {expression}"));
    }
    if end > bounds.max {
        let max = bounds.max;
        return Err(format!("end of range ({end}) above maximum ({max}): {expression}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {expression}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {expression}"));
    }
    Ok(())
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let named = bounds.names.iter().position(|name| name.eq_ignore_ascii_case(text));
    match named {
        Some(position) => Ok(bounds.min + position as u64),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let failed = |why: &str| {
        Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {}: {why}", quote(text)))
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return failed("invalid syntax");
    }
    match text.parse::<i64>() {
        Ok(number) => {
            u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
        }
        Err(_) => failed("value out of range"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_schedules_are_parsed() {
        for schedule in [
            "* * * * *",
            "*/15 0 1,15 * 1-5",
            "0 0 ? jan-MAR sun",
            "5/10 * * * *",
            "@hourly",
            "@every 1h30m",
            "@every 1s",
            ",, * * * *",
            "TZ=UTC * * * * *",
        ] {
            assert_eq!(parse(schedule), Ok(()), "{schedule}");
        }
    }

    #[test]
    fn invalid_schedules_have_upstreams_message() {
        for (schedule, why) in [
            ("x", "expected exactly 5 fields, found 1: [x]"),
            ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("* 5-3 * * *", "beginning of range (5) beyond end of range (3): 5-3"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
            ("-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
            ("@often", "unrecognized descriptor: @often"),
            ("@every 5", "failed to parse duration @every 5: time: missing unit in duration \"5\""),
            ("TZ=No/Where * * * * *", "provided bad location No/Where: unknown time zone No/Where"),
        ] {
            assert_eq!(parse(schedule), Err(why.to_owned()), "{schedule}");
        }
    }
}
