//! String functions. Positions count characters.

use super::{Function, format};
use crate::error::EvalError;
use crate::value::{Evaluated, Value};

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "charAt" => char_at,
        "lowerAscii" => |args| text(args, str::to_ascii_lowercase),
        "upperAscii" => |args| text(args, str::to_ascii_uppercase),
        "trim" => |args| text(args, |text| text.trim().to_owned()),
        "replace" => replace,
        "split" => split,
        "substring" => substring,
        "join" => join,
        "format" => |args| match args {
            [Value::String(text), Value::List(args)] => Some(format::format(text, args).map(Value::string)),
            _ => None,
        },
        "strings.quote" => |args| text(args, quote),
        "jsonpatch.escapeKey" => |args| text(args, |key| key.replace('~', "~0").replace('/', "~1")),
        _ => return None,
    })
}

fn text<'a>(args: &[Value<'a>], change: fn(&str) -> String) -> Option<Evaluated<'a>> {
    match args {
        [Value::String(text)] => Some(Ok(Value::string(change(text)))),
        _ => None,
    }
}

fn out_of_range(index: i64) -> EvalError {
    EvalError::new(format!("index out of range: {index}"))
}

fn char_at<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let [Value::String(text), Value::Int(index)] = args else { return None };
    let count = text.chars().count();
    let Some(at) = usize::try_from(*index).ok().filter(|at| *at <= count) else {
        return Some(Err(out_of_range(*index)));
    };
    Some(Ok(Value::string(text.chars().nth(at).map(String::from).unwrap_or_default())))
}

/// `text.indexOf(part)` and `text.indexOf(part, from)`.
pub(super) fn index_of<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let (text, part, from) = search(args, |_| 0)?;
    if part.is_empty() {
        return Some(Ok(Value::Int(from)));
    }
    let Ok(start) = usize::try_from(from) else { return Some(Err(out_of_range(from))) };
    if start >= text.len() {
        return Some(Ok(Value::Int(-1)));
    }
    let found = text[start..].windows(part.len()).position(|window| window == part);
    Some(Ok(Value::Int(found.map_or(-1, |at| int(start + at)))))
}

/// `text.lastIndexOf(part)` and `text.lastIndexOf(part, from)`.
pub(super) fn last_index_of<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let (text, part, from) = search(args, |text| int(text.len()) - 1)?;
    if part.is_empty() {
        return Some(Ok(Value::Int(if args.len() == 2 { int(text.len()) } else { from })));
    }
    if text.len() < part.len() && args.len() == 2 {
        return Some(Ok(Value::Int(-1)));
    }
    let Ok(start) = usize::try_from(from) else { return Some(Err(out_of_range(from))) };
    if start >= text.len() {
        return Some(Ok(Value::Int(-1)));
    }
    let found = text.windows(part.len()).take(start + 1).rposition(|window| window == part);
    Some(Ok(Value::Int(found.map_or(-1, int))))
}

fn search(args: &[Value<'_>], default: fn(&[char]) -> i64) -> Option<(Vec<char>, Vec<char>, i64)> {
    let (text, part, from) = match args {
        [Value::String(text), Value::String(part)] => (text, part, None),
        [Value::String(text), Value::String(part), Value::Int(from)] => (text, part, Some(*from)),
        _ => return None,
    };
    let text: Vec<char> = text.chars().collect();
    let from = from.unwrap_or_else(|| default(&text));
    Some((text, part.chars().collect(), from))
}

pub(super) fn int(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn replace<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let replaced = match args {
        [Value::String(text), Value::String(old), Value::String(new)] => text.replace(&**old, new),
        [Value::String(text), Value::String(old), Value::String(new), Value::Int(count)] => {
            match usize::try_from(*count) {
                Ok(count) => text.replacen(&**old, new, count),
                Err(_) => text.replace(&**old, new),
            }
        }
        _ => return None,
    };
    Some(Ok(Value::string(replaced)))
}

fn split<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let (text, separator, count) = match args {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [Value::String(text), Value::String(separator), Value::Int(count)] => (text, separator, *count),
        _ => return None,
    };
    Some(Ok(Value::strings(split_n(text, separator, count))))
}

/// Like Go's `strings.SplitN`: an empty separator splits into characters, a negative count means no limit.
fn split_n(text: &str, separator: &str, count: i64) -> Vec<String> {
    let Ok(count) = usize::try_from(count) else {
        return if separator.is_empty() {
            text.chars().map(String::from).collect()
        } else {
            text.split(separator).map(str::to_owned).collect()
        };
    };
    if count == 0 {
        return Vec::new();
    }
    if !separator.is_empty() {
        return text.splitn(count, separator).map(str::to_owned).collect();
    }
    let ends = text.char_indices().map(|(at, _)| at).skip(1).take(count - 1);
    let mut parts = Vec::new();
    let mut start = 0;
    for end in ends {
        parts.push(text[start..end].to_owned());
        start = end;
    }
    if start < text.len() {
        parts.push(text[start..].to_owned());
    }
    parts
}

fn substring<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let (text, start, end) = match args {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return None,
    };
    let count = int(text.chars().count());
    if let Some(end) = end.filter(|end| start > *end) {
        let problem = format!("invalid substring range. start: {start}, end: {end}");
        return Some(Err(EvalError::new(problem)));
    }
    let end = end.unwrap_or(count);
    for index in [start, end] {
        if !(0..=count).contains(&index) {
            return Some(Err(out_of_range(index)));
        }
    }
    let skip = usize::try_from(start).unwrap_or(0);
    let take = usize::try_from(end - start).unwrap_or(0);
    Some(Ok(Value::string(text.chars().skip(skip).take(take).collect::<String>())))
}

fn join<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return None,
    };
    let mut joined = String::new();
    for (i, item) in list.iter().enumerate() {
        if i > 0 {
            joined.push_str(separator);
        }
        match item {
            Ok(Value::String(text)) => joined.push_str(&text),
            Ok(other) => return Some(Err(EvalError::new(format!("join: invalid input: {}", other.shown())))),
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(Value::string(joined)))
}

fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_split_like_in_go() {
        assert_eq!(split_n("a,b,c", ",", -1), ["a", "b", "c"]);
        assert_eq!(split_n("a,b,c", ",", 2), ["a", "b,c"]);
        assert_eq!(split_n("äbc", "", -1), ["ä", "b", "c"]);
        assert_eq!(split_n("äbc", "", 2), ["ä", "bc"]);
        assert_eq!(split_n("", ",", -1), [""]);
        assert!(split_n("", "", -1).is_empty());
        assert!(split_n("a", ",", 0).is_empty());
    }
}
