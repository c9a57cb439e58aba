//! The output of the operator, line by line, with the reconcile and the object that a line belongs to.
//!
//! Pure: lines in, board entries out. The fields are those of the operator's log, as text or JSON. Other lines, such
//! as panics, belong to no reconcile. The newest [`Limits::lines`] are kept.

use std::collections::VecDeque;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::Limits;
use super::board::{Board, Topic};

/// Maximum length of a line.
const TEXT: usize = 4_000;

#[derive(Default)]
pub struct Logs {
    limits: Limits,
    last: u64,
    kept: VecDeque<String>,
}

/// A line on the page.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Line {
    id: String,
    number: u64,
    /// When it was received, in milliseconds since 1970.
    at: u64,
    /// Upper case; empty for lines that are not of the log.
    level: String,
    text: String,
    /// ID of the reconcile, as in the journal.
    reconcile: String,
    controller: String,
    kind: String,
    namespace: String,
    name: String,
}

impl Logs {
    /// Empty, with limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Publishes a line.
    pub fn add(&mut self, line: &str, at: u64, board: &mut Board) {
        let line = without_escapes(line);
        if line.trim().is_empty() {
            return;
        }
        self.last += 1;
        let id = self.last.to_string();
        let entry = Line { id: id.clone(), number: self.last, at, ..read(&line) };
        board.put(Topic::Log, &id, &entry);
        self.kept.push_back(id);
        if self.kept.len() > self.limits.lines
            && let Some(oldest) = self.kept.pop_front()
        {
            board.remove(Topic::Log, &oldest);
        }
    }
}

fn read(line: &str) -> Line {
    let mut read = json(line).unwrap_or_else(|| text(line));
    if let Some((end, _)) = read.text.char_indices().nth(TEXT) {
        read.text.truncate(end);
        read.text.push('…');
    }
    read
}

/// A line of the text format: `12:00:00.123 INFO  Page created pages=3 controller=page object=default/web`.
fn text(line: &str) -> Line {
    let (time, rest) = line.split_once(' ').unwrap_or_default();
    let is_time =
        time.len() == 12 && time.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
    let level = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].into_iter().find(|level| rest.starts_with(level));
    let (true, Some(level)) = (is_time, level) else {
        let level = if line.contains("panicked at") { "ERROR" } else { "" };
        return Line { level: level.to_owned(), text: line.to_owned(), ..Line::default() };
    };
    let message = rest[level.len()..].trim_start();
    let object = field(message, "object");
    let (namespace, name) = object.split_once('/').unwrap_or(("", object));
    // The fields of the reconcile are shown as links.
    let shown = ["controller", "controller_kind", "object", "reconcile_id"]
        .iter()
        .filter_map(|name| message.find(&format!(" {name}=")))
        .min()
        .map_or(message, |end| &message[..end]);
    let because = Some(field(message, "because")).filter(|because| !because.is_empty());
    Line {
        level: level.to_owned(),
        text: because.map_or_else(|| shown.to_owned(), |because| format!("{shown} because={because}")),
        reconcile: field(message, "reconcile_id").to_owned(),
        controller: field(message, "controller").to_owned(),
        kind: field(message, "controller_kind").to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..Line::default()
    }
}

/// The last field with this name.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let start = format!(" {name}=");
    let Some(at) = line.rfind(&start) else { return "" };
    let value = &line[at + start.len()..];
    match value.strip_prefix('"') {
        None => value.split(' ').next().unwrap_or_default(),
        Some(quoted) => {
            let mut escaped = false;
            let end = quoted.find(|character| {
                let is_end = character == '"' && !escaped;
                escaped = character == '\\' && !escaped;
                is_end
            });
            end.map_or(quoted, |end| &quoted[..end])
        }
    }
}

/// A line of the JSON format.
fn json(line: &str) -> Option<Line> {
    const OWN: &[&str] = &[
        "level",
        "ts",
        "logger",
        "msg",
        "controller",
        "controllerGroup",
        "controllerKind",
        "namespace",
        "name",
        "reconcileID",
    ];
    let fields: Value = serde_json::from_str(line).ok()?;
    let fields = fields.as_object()?;
    let get = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut text = fields.get("msg")?.as_str()?.to_owned();
    for (name, value) in fields.iter().filter(|(name, _)| !OWN.contains(&name.as_str())) {
        // Writing to a String cannot fail.
        let _ = write!(text, " {name}={value}");
    }
    Some(Line {
        level: get("level").to_uppercase(),
        text,
        reconcile: get("reconcileID"),
        controller: get("controller"),
        kind: get("controllerKind"),
        namespace: get("namespace"),
        name: get("name"),
        ..Line::default()
    })
}

/// Removes escape sequences, which colored output has.
fn without_escapes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character != '\x1b' {
            plain.push(character);
        } else if characters.next() == Some('[') {
            // A control sequence ends with a letter.
            characters.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_line_has_its_reconcile_and_object() {
        let line = read(
            "12:00:00.123 ERROR Reconcile failed error=\"no \\\"x\\\" there\" controller=page controller_kind=Page object=default/web reconcile_id=6f2d because=\"Page default/web modified: spec\"",
        );
        assert_eq!(
            line,
            Line {
                level: "ERROR".to_owned(),
                text: "Reconcile failed error=\"no \\\"x\\\" there\" because=Page default/web modified: spec"
                    .to_owned(),
                reconcile: "6f2d".to_owned(),
                controller: "page".to_owned(),
                kind: "Page".to_owned(),
                namespace: "default".to_owned(),
                name: "web".to_owned(),
                ..Line::default()
            }
        );
    }

    #[test]
    fn a_json_line_has_the_same_fields() {
        let line = read(
            r#"{"level":"info","ts":"2026-01-01T00:00:00Z","msg":"Page created","pages":3,"controller":"page","controllerKind":"Page","namespace":"default","name":"web","reconcileID":"6f2d"}"#,
        );
        assert_eq!((line.level.as_str(), line.text.as_str()), ("INFO", "Page created pages=3"));
        assert_eq!(
            (line.reconcile.as_str(), line.name.as_str(), line.kind.as_str()),
            ("6f2d", "web", "Page")
        );
    }

    #[test]
    fn other_lines_belong_to_no_reconcile() {
        let panic = read("thread 'main' panicked at src/main.rs:4:5:");
        assert_eq!((panic.level.as_str(), panic.reconcile.as_str()), ("ERROR", ""));
        let plain = read("12:00 started { \"not\": json");
        assert_eq!((plain.level.as_str(), plain.text.as_str()), ("", "12:00 started { \"not\": json"));
        assert_eq!(without_escapes("\u{1b}[2m12:00\u{1b}[0m \u{1b}[31mred\u{1b}[0m"), "12:00 red");
    }

    #[test]
    fn empty_lines_are_skipped_and_old_ones_dropped() {
        let (mut logs, mut board) = (Logs::default(), Board::default());
        logs.add("  ", 1, &mut board);
        for number in 0..Limits::DEV.lines + 5 {
            logs.add(&format!("line {number}"), 1, &mut board);
        }
        assert_eq!((logs.kept.len(), logs.last), (Limits::DEV.lines, Limits::DEV.lines as u64 + 5));
    }
}
