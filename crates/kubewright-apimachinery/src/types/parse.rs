//! Parser of `types.txt`.

use super::{Field, FieldType, Merge, Patch, Slot, Type, TypeRef, find, hint};

/// An invalid line of the table.
#[derive(Debug, thiserror::Error)]
#[error("facts: type {type_name}, at {at:?}: {problem}")]
pub struct ParseError {
    type_name: &'static str,
    at: String,
    problem: &'static str,
}

/// The lines of a table without comments.
pub fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    let mut from = 0;
    let lines = memchr::memchr_iter(b'\n', text.as_bytes()).map(move |end| {
        let line = &text[from..end];
        from = end + 1;
        line
    });
    lines.filter(|line| !line.starts_with('#'))
}

/// Creates one slot per line. The file is sorted by name.
pub(super) fn index(text: &'static str) -> Vec<Slot> {
    let mut slots = Vec::with_capacity(800);
    for line in lines(text) {
        let end = memchr::memchr(b' ', line.as_bytes()).unwrap_or(line.len());
        let (name, body) = (&line[..end], line.get(end + 1..).unwrap_or_default());
        slots.push(Slot { name, body, parsed: std::sync::OnceLock::new() });
    }
    slots
}

pub(super) fn parse(name: &'static str, body: &'static str) -> Result<Type, ParseError> {
    let package = &name[..name.rfind('.').map_or(0, |dot| dot + 1)];
    let mut ty = Type {
        name,
        kind_of: None,
        atomic: false,
        any: false,
        unions: None,
        fields: [].into(),
        by_name: [].into(),
    };
    let mut fields = Vec::new();
    for word in body.split(' ').filter(|word| !word.is_empty()) {
        if let Some(mark) = word.strip_prefix('@') {
            match mark.split_once('=') {
                None if mark == "atomic" => ty.atomic = true,
                None if mark == "any" => ty.any = true,
                Some(("kind", kind)) => ty.kind_of = Some(kind),
                Some(("unions", unions)) => ty.unions = Some(unions),
                _ => {
                    return Err(ParseError { type_name: name, at: word.to_owned(), problem: "unknown mark" });
                }
            }
        } else {
            let mut cursor = Cursor { rest: word, type_name: name, package };
            fields.push(cursor.field()?);
        }
    }
    let mut by_name: Vec<(u64, u16)> = fields.iter().map(|field| hint(field.name)).zip(0..).collect();
    by_name.sort_unstable();
    ty.fields = fields.into();
    ty.by_name = by_name.into();
    Ok(ty)
}

struct Cursor {
    rest: &'static str,
    type_name: &'static str,
    package: &'static str,
}

impl Cursor {
    fn field(&mut self) -> Result<Field, ParseError> {
        let Some((name, rest)) = self.rest.split_once(':') else {
            return Err(self.error("a field needs a colon"));
        };
        self.rest = rest;
        let (ty, mut enum_values) = self.ty()?;
        let mut field = Field {
            name,
            ty,
            required: false,
            pointer: false,
            always: false,
            merge: Merge::Unset,
            patch: Patch::default(),
            enum_values: [].into(),
            default: None,
        };
        while let Some(mark) = self.bump() {
            match mark {
                '!' => field.required = true,
                '?' => field.pointer = true,
                '+' => field.always = true,
                '@' => field.merge = self.merge()?,
                '~' => field.patch = self.patch()?,
                '%' => enum_values = self.bracket('|')?,
                '=' => field.default = Some(std::mem::take(&mut self.rest)),
                _ => return Err(self.error("unknown mark")),
            }
        }
        field.enum_values = enum_values;
        Ok(field)
    }

    /// Parses a type, and the enum of the list elements if there is one.
    fn ty(&mut self) -> Result<(FieldType, Box<[&'static str]>), ParseError> {
        let letter = |ty| Ok((ty, Box::from([])));
        match self.rest.as_bytes().first().copied() {
            Some(b'[') => {
                self.bump();
                let (of, mut values) = self.ty()?;
                if self.rest.starts_with('%') {
                    self.bump();
                    values = self.bracket('|')?;
                }
                self.expect(']')?;
                Ok((FieldType::List(Box::new(of)), values))
            }
            Some(b'{') => {
                self.bump();
                let (of, values) = self.ty()?;
                self.expect('}')?;
                Ok((FieldType::Map(Box::new(of)), values))
            }
            Some(first) if first.is_ascii_alphabetic() => {
                let end = self
                    .rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '.')
                    .unwrap_or(self.rest.len());
                let (word, rest) = self.rest.split_at(end);
                self.rest = rest;
                match word {
                    "s" => letter(FieldType::String),
                    "b" => letter(FieldType::Bool),
                    "i" => letter(FieldType::Int32),
                    "l" => letter(FieldType::Int64),
                    "n" => letter(FieldType::Number),
                    "y" => letter(FieldType::Bytes),
                    "q" => letter(FieldType::Quantity),
                    "x" => letter(FieldType::IntOrString),
                    "t" => letter(FieldType::Time),
                    "u" => letter(FieldType::MicroTime),
                    "f" => letter(FieldType::FieldsV1),
                    "r" => letter(FieldType::Raw),
                    "j" => letter(FieldType::Json),
                    _ => letter(FieldType::Object(self.reference(word)?)),
                }
            }
            _ => Err(self.error("no type here")),
        }
    }

    fn reference(&self, word: &str) -> Result<TypeRef, ParseError> {
        let found = if word.contains('.') { find(word) } else { find(&format!("{}{word}", self.package)) };
        found.ok_or_else(|| self.error("refers to a type that is not in the table"))
    }

    fn merge(&mut self) -> Result<Merge, ParseError> {
        match self.bump() {
            Some('a') => Ok(Merge::Atomic),
            Some('g') => Ok(Merge::Granular),
            Some('s') => Ok(Merge::Set),
            Some('m') => Ok(Merge::Map(self.bracket(',')?)),
            _ => Err(self.error("unknown list type")),
        }
    }

    fn patch(&mut self) -> Result<Patch, ParseError> {
        let mut patch = Patch::default();
        loop {
            match self.rest.as_bytes().first().copied() {
                Some(b'm') => patch.merge = true,
                Some(b'r') => patch.retain_keys = true,
                Some(b'p') => patch.replace = true,
                Some(b'(') => {
                    patch.key = self.bracket(',')?.first().copied();
                    break;
                }
                _ => break,
            }
            self.bump();
        }
        Ok(patch)
    }

    fn bracket(&mut self, separator: char) -> Result<Box<[&'static str]>, ParseError> {
        let inside = self.rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let Some((inside, rest)) = inside else {
            return Err(self.error("a bracket is missing"));
        };
        self.rest = rest;
        Ok(inside.split(separator).collect())
    }

    fn bump(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    fn expect(&mut self, wanted: char) -> Result<(), ParseError> {
        if self.bump() == Some(wanted) { Ok(()) } else { Err(self.error("a list or map is not closed")) }
    }

    fn error(&self, problem: &'static str) -> ParseError {
        ParseError { type_name: self.type_name, at: self.rest.to_owned(), problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_mark_is_reported_with_its_type_and_position() {
        let error = parse("x.v1.Y", "name:s! count:i&").unwrap_err();
        assert_eq!(error.to_string(), "facts: type x.v1.Y, at \"\": unknown mark");
    }

    #[test]
    fn a_default_may_contain_any_mark() {
        let ty = parse("x.v1.Y", "mode:s?=\"a!+%(b)\"").unwrap();
        assert_eq!(ty.field("mode").unwrap().default, Some("\"a!+%(b)\""));
    }

    #[test]
    fn the_enum_of_a_list_is_the_enum_of_its_elements() {
        let ty = parse("x.v1.Y", "modes:[s%(A|B)]@a").unwrap();
        let field = ty.field("modes").unwrap();
        assert_eq!(&*field.enum_values, ["A", "B"]);
        assert_eq!(field.merge, Merge::Atomic);
    }

    #[test]
    fn an_unknown_reference_is_an_error() {
        assert!(parse("x.v1.Y", "of:Nope").unwrap_err().to_string().contains("not in the table"));
    }
}
