//! A line of text.
//!
//! Non-printable characters are escaped, so that a field cannot break the line or control the terminal.

use std::fmt::Write;

use tracing::Level;

use super::fields::Value;
use super::lines::Line;

const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

pub(super) fn encode(line: &Line<'_>, color: bool) -> String {
    let mut out = String::with_capacity(160);
    let style = |out: &mut String, code: &str| {
        if color {
            out.push_str(code);
        }
    };
    let level = *line.metadata.level();
    style(&mut out, DIM);
    // The time without the date.
    out.push_str(line.time.get(11..23).unwrap_or(line.time));
    style(&mut out, RESET);
    out.push(' ');
    style(&mut out, level_color(level));
    // Writing to a String cannot fail, here and below.
    let _ = write!(out, "{:<5}", level.as_str());
    style(&mut out, RESET);
    out.push(' ');
    escape(&mut out, line.fields.message());
    for (name, value) in line.fields.iter().chain(line.span_fields()) {
        out.push(' ');
        style(&mut out, DIM);
        out.push_str(name);
        out.push('=');
        style(&mut out, RESET);
        match value {
            Value::Literal(text) => out.push_str(text),
            Value::Text(text) if is_plain(text) => out.push_str(text),
            Value::Text(text) => {
                let _ = write!(out, "{text:?}");
            }
        }
    }
    out
}

fn level_color(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        Level::DEBUG => "\x1b[34m",
        Level::TRACE => "\x1b[35m",
    }
}

/// Whether a value is unambiguous without quotes.
fn is_plain(text: &str) -> bool {
    let fits = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '=');
    !text.is_empty() && text.chars().all(fits)
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        if c.is_control() {
            out.extend(c.escape_debug());
        } else {
            out.push(c);
        }
    }
}
