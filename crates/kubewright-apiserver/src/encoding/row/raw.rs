//! Parts of a stored object, without decoding all of it.
//!
//! Stored JSON is valid and compact: the server has written it.

use std::ops::Range;

use kubewright_apimachinery::json::{self, ParseOptions};
use serde_json::Value;

/// The fields of an object that are decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    All,
    Nothing,
    /// The fields with these names, as stored JSON has them. Applies to each item of a list.
    Only(Vec<(Vec<u8>, Wanted)>),
    /// All fields, but of this one only the given part.
    AllBut(&'static str, Box<Wanted>),
}

impl Wanted {
    /// Everything except managedFields, which are the largest part of most objects.
    pub(super) fn without_managed_fields() -> Self {
        let metadata = Self::AllBut("managedFields", Box::new(Self::Nothing));
        Self::AllBut("metadata", Box::new(metadata))
    }

    /// Only the fields at these paths.
    pub(super) fn of<'p>(paths: impl IntoIterator<Item = Vec<&'p str>>) -> Self {
        let mut wanted = Self::Only(Vec::new());
        for path in paths {
            wanted.add(&path);
        }
        wanted
    }

    fn add(&mut self, path: &[&str]) {
        let Self::Only(fields) = self else { return };
        let Some((first, rest)) = path.split_first() else {
            *self = Self::All;
            return;
        };
        let mut name = Vec::with_capacity(first.len());
        json::write_escaped(&mut name, first);
        let at = fields.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            fields.push((name, Self::Only(Vec::new())));
            fields.len() - 1
        });
        fields[at].1.add(rest);
    }

    fn at(&self, name: &[u8]) -> &Self {
        match self {
            Self::Nothing => &Self::Nothing,
            Self::Only(fields) => {
                fields.iter().find(|(known, _)| known == name).map_or(&Self::Nothing, |(_, below)| below)
            }
            Self::AllBut(known, below) if known.as_bytes() == name => below,
            Self::All | Self::AllBut(..) => &Self::All,
        }
    }
}

/// The metadata of a stored object as JSON, and its wanted fields. `None` for JSON that is not compact or has no
/// metadata.
pub(super) fn select<'a>(object: &'a [u8], wanted: &Wanted) -> Option<(&'a [u8], Value)> {
    let mut scan = Scan { text: object, at: 0, out: Vec::with_capacity(1024), metadata: None };
    scan.object(wanted, true)?;
    if scan.at != object.len() {
        return None;
    }
    let value = json::parse(&scan.out, ParseOptions::default()).ok()?.value;
    Some((&object[scan.metadata?], value))
}

/// The metadata of a stored object as JSON.
pub(super) fn metadata(object: &[u8]) -> Option<&[u8]> {
    let mut scan = Scan { text: object, at: 0, out: Vec::new(), metadata: None };
    scan.object(&Wanted::Nothing, true)?;
    Some(&object[scan.metadata?])
}

/// One pass over a JSON text that copies the wanted fields.
struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    out: Vec<u8>,
    /// The position of the object's metadata.
    metadata: Option<Range<usize>>,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn value(&mut self, wanted: &Wanted) -> Option<()> {
        let start = self.at;
        match (self.peek()?, wanted) {
            (b'{', Wanted::Only(_) | Wanted::AllBut(..)) => self.object(wanted, false),
            (b'[', Wanted::Only(_)) => self.list(wanted),
            _ => {
                self.at = value_end(self.text, start)?;
                if *wanted != Wanted::Nothing {
                    self.out.extend_from_slice(&self.text[start..self.at]);
                }
                Some(())
            }
        }
    }

    fn list(&mut self, wanted: &Wanted) -> Option<()> {
        loop {
            // The bracket, or a comma.
            self.out.push(self.peek()?);
            self.at += 1;
            if self.peek()? != b']' {
                self.value(wanted)?;
            }
            match self.peek()? {
                b',' => {}
                b']' => break,
                _ => return None,
            }
        }
        self.out.push(b']');
        self.at += 1;
        Some(())
    }

    fn object(&mut self, wanted: &Wanted, top: bool) -> Option<()> {
        if self.peek()? != b'{' {
            return None;
        }
        self.out.push(b'{');
        let mut first = true;
        loop {
            self.at += 1;
            if self.peek()? == b'}' {
                break;
            }
            let start = self.at;
            let name_end = string_end(self.text, start)?;
            self.at = name_end + 1;
            if self.text.get(name_end) != Some(&b':') {
                return None;
            }
            let name = &self.text[start + 1..name_end - 1];
            let wanted = wanted.at(name);
            if *wanted != Wanted::Nothing {
                if !std::mem::take(&mut first) {
                    self.out.push(b',');
                }
                self.out.extend_from_slice(&self.text[start..self.at]);
            }
            let value = self.at;
            self.value(wanted)?;
            if top && name == b"metadata" {
                self.metadata = Some(value..self.at);
            }
            match self.peek()? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
        self.out.push(b'}');
        self.at += 1;
        Some(())
    }
}

/// The end of the string that starts at `at`.
fn string_end(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        // Eight bytes at a time: most bytes of an object belong to strings.
        while let Some(chunk) = text.get(at..).and_then(<[u8]>::first_chunk) {
            let word = u64::from_le_bytes(*chunk);
            let found = zero_bytes(word ^ every_byte(b'"')) | zero_bytes(word ^ every_byte(b'\\'));
            if found != 0 {
                at += usize::try_from(found.trailing_zeros() / 8).unwrap_or_default();
                break;
            }
            at += chunk.len();
        }
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

const fn every_byte(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Sets the highest bit of the first byte that is zero. Bits of later bytes are not exact.
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(every_byte(1)) & !word & every_byte(0x80)
}

/// The end of the value that starts at `at`.
fn value_end(text: &[u8], mut at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => return string_end(text, at),
        b'{' | b'[' => {}
        // A number or a literal.
        _ => {
            while !matches!(text.get(at)?, b',' | b'}' | b']') {
                at += 1;
            }
            return Some(at);
        }
    }
    let mut depth = 0_usize;
    loop {
        match text.get(at)? {
            b'"' => {
                at = string_end(text, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
            r#"["\\{}\[\],:]{0,6}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,4}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn only_managed_fields_are_removed(metadata in value(), spec in value(), managed in value()) {
            let mut object = json!({"metadata": {"labels": metadata}, "spec": spec, "z": 1});
            object["metadata"]["managedFields"] = managed;
            let text = json::to_vec(&object);
            let (metadata, selected) = select(&text, &Wanted::without_managed_fields()).unwrap();
            prop_assert_eq!(metadata, json::to_vec(&object["metadata"]));
            prop_assert_eq!(super::metadata(&text), Some(metadata));
            let mut expected = json::parse(&text, ParseOptions::default()).unwrap().value;
            expected["metadata"].as_object_mut().unwrap().remove("managedFields");
            prop_assert_eq!(selected, expected);
        }

        #[test]
        fn a_wanted_field_is_complete(spec in value(), name in ".{0,6}", value in value()) {
            let mut object = json!({"metadata": {"name": "a"}, "a": spec, "spec": {"a": 1}});
            object["spec"][&name] = value;
            let text = json::to_vec(&object);
            let object = json::parse(&text, ParseOptions::default()).unwrap().value;
            let (_, selected) = select(&text, &Wanted::of([vec!["spec", &name]])).unwrap();
            prop_assert_eq!(selected, json!({"spec": {&name: object["spec"][&name]}}));
        }
    }

    #[test]
    fn wanted_fields_of_list_items_are_selected() {
        let text =
            br#"{"a":[],"l":[{"n":1,"o":{"x":"]}\\\"","y":[1,2]}},2,{"o":3},[{"n":4}]],"metadata":{}}"#;
        let wanted =
            Wanted::of([vec!["l", "n"], vec!["l", "o", "y"], vec!["a", "n"], vec!["l", "n", "deeper"]]);
        let (metadata, selected) = select(text, &wanted).unwrap();
        assert_eq!(metadata, b"{}");
        assert_eq!(selected, json!({"a": [], "l": [{"n": 1, "o": {"y": [1, 2]}}, 2, {"o": 3}, [{"n": 4}]]}));
    }

    #[test]
    fn an_object_with_managed_fields_only_has_empty_metadata() {
        let text = br#"{"metadata":{"managedFields":[]}}"#;
        let (_, selected) = select(text, &Wanted::without_managed_fields()).unwrap();
        assert_eq!(selected, json!({"metadata": {}}));
    }

    #[test]
    fn malformed_json_is_not_split() {
        for text in ["", "[]", "{", r#"{"a""#, r#"{"a":"#, r#"{"metadata":1"#, r#"{"metadata": 1 }x"#] {
            assert!(select(text.as_bytes(), &Wanted::without_managed_fields()).is_none(), "{text}");
        }
    }
}
