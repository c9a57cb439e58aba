//! Parses the arguments of an attribute: comma-separated `key = value`.
//!
//! Checks the types of values. Collects all errors until [`Arguments::finish`], so that the user sees them at
//! once, each at its token.

use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::token::{Brace, Bracket, Paren};
use syn::{Error, Ident, LitBool, LitInt, LitStr, Token, braced, bracketed, parenthesized};

use crate::nearest::{did_you_mean, nearest};

/// The arguments of an attribute.
pub(crate) struct Shape {
    /// The name of the attribute.
    pub(crate) name: &'static str,
    pub(crate) keys: &'static [&'static str],
    /// Keys of similar tools such as controller-gen, with a replacement.
    pub(crate) foreign: &'static [(&'static str, &'static str)],
}

/// The parsed arguments of one attribute and the errors found so far.
pub(crate) struct Arguments {
    entries: Vec<(Ident, Value)>,
    errors: Option<Error>,
}

pub(crate) enum Value {
    Text(Word),
    Flag(bool, Span),
    Number(i64, Span),
    /// An identifier.
    Word(Word),
    /// `[a, b]`
    List(Vec<Value>, Span),
    /// `(a, b)`
    Pair(Vec<Value>, Span),
    /// `{ a: b }`
    Map(Vec<(Word, Value)>, Span),
}

/// A string with its span.
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) span: Span,
}

impl Arguments {
    /// Parses the arguments. Reports keys that the attribute does not have.
    pub(crate) fn read(tokens: TokenStream, shape: &Shape) -> Result<Self, Error> {
        let parse = Punctuated::<Entry, Token![,]>::parse_terminated;
        let mut arguments = Self { entries: Vec::new(), errors: None };
        for Entry(key, value) in syn::parse::Parser::parse2(parse, tokens)? {
            let name = key.unraw().to_string();
            if arguments.entries.iter().any(|(other, _)| *other == key) {
                arguments.wrong(key.span(), format!("duplicate key `{name}`"));
            } else if shape.keys.contains(&name.as_str()) {
                arguments.entries.push((key, value));
            } else if let Some((_, instead)) = shape.foreign.iter().find(|(foreign, _)| *foreign == name) {
                arguments.wrong(key.span(), format!("`{name}` is not a key of #[{}]; {instead}", shape.name));
            } else if let Some(near) = nearest(&name, shape.keys.iter().copied()) {
                arguments.wrong(key.span(), format!("unknown key `{name}`; did you mean `{near}`?"));
                // Keep the value, so that the intended key is not reported as missing.
                arguments.entries.push((Ident::new(near, key.span()), value));
            } else {
                let what = format!("unknown key `{name}`; expected one of {}", shape.keys.join(", "));
                arguments.wrong(key.span(), what);
            }
        }
        Ok(arguments)
    }

    /// Records an error.
    pub(crate) fn wrong(&mut self, span: Span, what: impl std::fmt::Display) {
        let error = Error::new(span, what);
        match &mut self.errors {
            Some(errors) => errors.combine(error),
            None => self.errors = Some(error),
        }
    }

    /// Returns the recorded errors, if any.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.errors.map_or(Ok(()), Err)
    }

    /// Whether the attribute has neither arguments nor errors.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.errors.is_none()
    }

    /// The span of a key, if present.
    pub(crate) fn key(&self, key: &str) -> Option<Span> {
        self.entries.iter().find(|(other, _)| other == key).map(|(key, _)| key.span())
    }

    /// The value of a key, of any type.
    pub(crate) fn value(&mut self, key: &str) -> Option<Value> {
        let at = self.entries.iter().position(|(other, _)| other == key)?;
        // Keep the key, because later checks need its span.
        let taken = Value::Flag(false, Span::call_site());
        Some(std::mem::replace(&mut self.entries[at].1, taken))
    }

    /// Whether a key is set to `false`.
    pub(crate) fn is_false(&self, key: &str) -> bool {
        self.entries.iter().any(|(other, value)| other == key && matches!(value, Value::Flag(false, _)))
    }

    /// A non-empty string.
    pub(crate) fn text(&mut self, key: &str) -> Option<Word> {
        match self.value(key)? {
            Value::Text(word) if word.text.trim().is_empty() => {
                self.wrong(word.span, format!("`{key}` is empty; remove it, or set a value"));
                None
            }
            Value::Text(word) => Some(word),
            other => {
                self.wrong(other.span(), format!("`{key}` must be a string: `{key} = \"...\"`"));
                None
            }
        }
    }

    /// A string that `right` accepts. `form` names the expected format in the error.
    pub(crate) fn text_like(&mut self, key: &str, right: impl Fn(&str) -> bool, form: &str) -> Option<Word> {
        let word = self.text(key)?;
        if right(&word.text) {
            return Some(word);
        }
        self.wrong(word.span, format!("`{}` is not a valid {form}", word.text));
        None
    }

    /// A boolean.
    pub(crate) fn flag(&mut self, key: &str) -> Option<bool> {
        match self.value(key)? {
            Value::Flag(flag, _) => Some(flag),
            other => {
                self.wrong(other.span(), format!("`{key}` must be `true` or `false`, without quotes"));
                None
            }
        }
    }

    /// A number in a range.
    pub(crate) fn number(&mut self, key: &str, least: i64, most: i64) -> Option<i64> {
        match self.value(key)? {
            Value::Number(number, _) if (least..=most).contains(&number) => Some(number),
            other => {
                self.wrong(other.span(), format!("`{key}` must be a number from {least} to {most}"));
                None
            }
        }
    }

    /// One of a few values, with or without quotes.
    pub(crate) fn choice(&mut self, key: &str, choices: &[&'static str]) -> Option<&'static str> {
        let word = match self.value(key)? {
            Value::Text(word) | Value::Word(word) => word,
            other => {
                self.wrong(other.span(), format!("`{key}` must be one of {}", list_of(choices)));
                return None;
            }
        };
        if let Some(choice) = choices.iter().find(|choice| **choice == word.text) {
            return Some(choice);
        }
        let near = match did_you_mean(&word.text, choices.iter().copied()) {
            near if near.is_empty() => format!("; expected {}", list_of(choices)),
            near => near,
        };
        self.wrong(word.span, format!("unknown value `{}` of `{key}`{near}", word.text));
        None
    }

    /// A list of names: a string with commas, or a list of strings. Empty names are errors unless `empty` is
    /// set.
    pub(crate) fn words(&mut self, key: &str, empty: bool) -> Option<Vec<Word>> {
        let none = format!("`{key}` is empty; add at least one name");
        let (texts, commas) = match self.value(key)? {
            Value::Text(word) if word.text.trim().is_empty() && !empty => {
                self.wrong(word.span, none);
                return None;
            }
            Value::List(items, span) if items.is_empty() => {
                self.wrong(span, none);
                return None;
            }
            Value::Text(word) => (vec![word], true),
            Value::List(items, _) => {
                let mut texts = Vec::new();
                for item in items {
                    match item {
                        Value::Text(word) => texts.push(word),
                        other => self.wrong(other.span(), format!("`{key}` must be a list of strings")),
                    }
                }
                (texts, false)
            }
            other => {
                let what = format!(
                    "`{key}` must be a list of names: `{key} = \"a, b\"` or `{key} = [\"a\", \"b\"]`"
                );
                self.wrong(other.span(), what);
                return None;
            }
        };
        let mut words: Vec<Word> = Vec::new();
        for Word { text, span } in texts {
            let alone = !commas || text.trim().is_empty();
            let parts = if alone { vec![text.trim()] } else { text.split(',').map(str::trim).collect() };
            for part in parts {
                if words.iter().any(|other| other.text == part) {
                    self.wrong(span, format!("duplicate `{part}` in `{key}`"));
                } else if part.is_empty() && !(empty && alone) {
                    self.wrong(span, format!("`{key}` contains an empty name"));
                } else if part.contains(';') {
                    self.wrong(
                        span,
                        format!(
                            "names in `{key}` must be separated by commas: `{}`",
                            part.replace(';', ", ")
                        ),
                    );
                } else if part.contains([' ', '\t', '\n', ',']) {
                    let apart: Vec<&str> =
                        part.split([' ', '\t', '\n', ',']).filter(|it| !it.is_empty()).collect();
                    let apart = if commas { apart.join(", ") } else { apart.join("\", \"") };
                    self.wrong(span, format!("`{part}` is not a single name; write \"{apart}\""));
                } else {
                    words.push(Word { text: part.to_owned(), span });
                }
            }
        }
        Some(words)
    }
}

impl Value {
    pub(crate) fn span(&self) -> Span {
        match self {
            Self::Text(word) | Self::Word(word) => word.span,
            Self::Flag(_, span)
            | Self::Number(_, span)
            | Self::List(_, span)
            | Self::Pair(_, span)
            | Self::Map(_, span) => *span,
        }
    }
}

/// `a`, `b` or `c`.
fn list_of(choices: &[&str]) -> String {
    let quoted: Vec<String> = choices.iter().map(|choice| format!("`{choice}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// One `key = value`.
struct Entry(Ident, Value);

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self, Error> {
        let key = input
            .call(Ident::parse_any)
            .map_err(|error| Error::new(error.span(), "expected `key = value`"))?;
        let equals = input.parse::<Token![=]>();
        equals.map_err(|error| Error::new(error.span(), format!("expected `{key} = ...`")))?;
        Ok(Self(key, input.parse()?))
    }
}

impl Parse for Value {
    fn parse(input: ParseStream<'_>) -> Result<Self, Error> {
        if input.peek(LitStr) {
            let text: LitStr = input.parse()?;
            return Ok(Self::Text(Word { text: text.value(), span: text.span() }));
        }
        if input.peek(LitBool) {
            let flag: LitBool = input.parse()?;
            return Ok(Self::Flag(flag.value, flag.span));
        }
        if input.peek(LitInt) || input.peek(Token![-]) {
            let minus: Option<Token![-]> = input.parse()?;
            let number: LitInt = input.parse()?;
            let value: i64 = number.base10_parse()?;
            return Ok(Self::Number(if minus.is_some() { -value } else { value }, number.span()));
        }
        let inside;
        if input.peek(Bracket) {
            let span = bracketed!(inside in input).span.join();
            let items = Punctuated::<Self, Token![,]>::parse_terminated(&inside)?;
            return Ok(Self::List(items.into_iter().collect(), span));
        }
        if input.peek(Paren) {
            let span = parenthesized!(inside in input).span.join();
            let items = Punctuated::<Self, Token![,]>::parse_terminated(&inside)?;
            return Ok(Self::Pair(items.into_iter().collect(), span));
        }
        if input.peek(Brace) {
            let span = braced!(inside in input).span.join();
            let members = Punctuated::<Member, Token![,]>::parse_terminated(&inside)?;
            return Ok(Self::Map(members.into_iter().map(|Member(key, value)| (key, value)).collect(), span));
        }
        let word = input.call(Ident::parse_any).map_err(|error| Error::new(error.span(), "missing value"))?;
        Ok(Self::Word(Word { text: word.unraw().to_string(), span: word.span() }))
    }
}

/// One `key: value`.
struct Member(Word, Value);

impl Parse for Member {
    fn parse(input: ParseStream<'_>) -> Result<Self, Error> {
        let key = match input.parse()? {
            Value::Text(word) | Value::Word(word) => word,
            other => return Err(Error::new(other.span(), "a key must be a string")),
        };
        input.parse::<Token![:]>()?;
        Ok(Self(key, input.parse()?))
    }
}

/// Checks that the attribute's documentation names every key.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_documented(shape: &Shape) {
    let name = shape.name;
    let (before, _) = include_str!("lib.rs").split_once(&format!("pub fn {name}(")).expect("a function");
    let docs = before.rsplit("\n\n").next().expect("documentation");
    for key in shape.keys {
        assert!(docs.contains(&format!("`{key}`")), "`{key}` of #[{name}] is not documented");
    }
}
