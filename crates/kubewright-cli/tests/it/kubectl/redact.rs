//! Redacts values that differ between runs, and the few differences between kubectl versions.
//!
//! Column positions are kept, so that snapshots show the table layout.

/// Values of one server.
#[derive(Clone)]
pub(crate) struct Redact {
    pub(crate) url: String,
    pub(crate) dir: String,
}

impl Redact {
    pub(crate) fn apply(&self, text: &str) -> String {
        let text = text.replace(&self.url, "https://SERVER").replace(&self.dir, "<DIR>");
        let mut shown = String::with_capacity(text.len());
        let mut ages = Vec::new();
        for line in text.split_inclusive('\n') {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            if line.is_empty() {
                ages.clear();
            } else if let found @ [_, ..] = age_columns(line).as_slice() {
                ages = found.to_vec();
            }
            let line = ages.iter().fold(line.to_owned(), |line, column| without_age(&line, column));
            let line = words_of_time(&line);
            let line = value(&line, "resourceVersion: ", "\"<RV>\"");
            let line = value(&line, "Resource Version:    ", "<RV>");
            shown.push_str(without_namespace(&line));
            shown.push_str(end);
        }
        shown
    }
}

/// A column with ages.
#[derive(Clone)]
struct Column {
    start: usize,
    /// The last column of a table has no width.
    width: Option<usize>,
}

/// The age columns in a table header; empty for other lines.
fn age_columns(line: &str) -> Vec<Column> {
    const HEADS: [&str; 4] = ["AGE", "Age", "LAST SEEN", "FIRST SEEN"];
    HEADS
        .iter()
        .flat_map(|head| line.match_indices(head))
        .filter_map(|(start, head)| {
            let before = &line[..start];
            let after = &line[start + head.len()..];
            let alone = (before.is_empty() || before.ends_with("  "))
                && (after.is_empty() || after.starts_with("  "));
            // `Age:` is not a table header, nor is a line with one word.
            let table = alone && !(before.trim().is_empty() && after.trim().is_empty());
            let blanks = after.len() - after.trim_start().len();
            let width = (blanks < after.len()).then_some(head.len() + blanks);
            table.then_some(Column { start, width })
        })
        .collect()
}

fn without_age(line: &str, column: &Column) -> String {
    const AGE: &str = "<AGE>";
    let Some(cell) = line.get(column.start..) else { return line.to_owned() };
    if !cell.starts_with(|first: char| first.is_ascii_digit()) {
        return line.to_owned();
    }
    let before = &line[..column.start];
    match column.width {
        Some(width) => format!("{before}{AGE:<width$}{}", cell.get(width..).unwrap_or_default()),
        None => format!("{before}{AGE}"),
    }
}

/// Redacts the text after a key at the start of a line.
fn value(line: &str, key: &str, instead: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    if line[indent..].starts_with(key) {
        format!("{}{key}{instead}", &line[..indent])
    } else {
        line.to_owned()
    }
}

/// Removes the namespace that kubectl 1.34 adds to deletion messages.
fn without_namespace(line: &str) -> &str {
    let end = line.find(" deleted from ").filter(|_| line.ends_with(" namespace"));
    end.map_or(line, |end| &line[..end + " deleted".len()])
}

/// Redacts UIDs and timestamps.
fn words_of_time(line: &str) -> String {
    const SHAPES: [(&str, &str); 3] = [
        ("hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh", "<UID>"),
        ("dddd-dd-ddTdd:dd:ddZ", "<TIME>"),
        ("aaa, dd aaa dddd dd:dd:dd +dddd", "<TIME>"),
    ];
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        if let Some((shape, instead)) = SHAPES.iter().find(|(shape, _)| has_shape(rest, shape)) {
            shown.push_str(instead);
            rest = &rest[shape.len()..];
        } else {
            shown.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    shown
}

/// Whether a text starts with a pattern: `h` is a hexadecimal digit, `d` a digit, `a` a letter.
fn has_shape(text: &str, shape: &str) -> bool {
    text.len() >= shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, shape)| match shape {
            b'h' => byte.is_ascii_hexdigit(),
            b'd' => byte.is_ascii_digit(),
            b'a' => byte.is_ascii_alphabetic(),
            other => byte == other,
        })
}
