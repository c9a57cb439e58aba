//! The syntax of `object!`: `Kind { key: value, ... }`.
//!
//! Distinguishes objects from blocks and literals from expressions. Independent of Kubernetes types.

use proc_macro2::{Span, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned as _;
use syn::token::{Brace, Bracket, Paren};
use syn::{
    Error, Expr, Ident, LitBool, LitFloat, LitInt, LitStr, Path, Token, braced, bracketed, parenthesized,
};

/// The whole input of the macro.
pub(super) struct Input {
    pub(super) kind: KindName,
    pub(super) body: Body,
}

/// The notation of the kind.
pub(super) enum KindName {
    /// `Deployment`, `apps::v1::Deployment`, or the path of a Rust type.
    Path(Path),
    /// `"apps/v1" Deployment`
    Versioned(LitStr, Ident),
}

/// `{ key: value, ... }`
pub(super) struct Body {
    pub(super) entries: Vec<Entry>,
    /// Set if the object ends with `..`: other field managers own the remaining fields.
    pub(super) open: Option<Span>,
    pub(super) span: Span,
}

pub(super) struct Entry {
    pub(super) key: Key,
    /// The question mark of `key?: option`.
    pub(super) optional: Option<Span>,
    pub(super) value: Node,
}

pub(super) enum Key {
    /// `key` or `"key"`
    Name(String, Span),
    /// `(expression)`
    Computed(Expr),
}

pub(super) enum Node {
    Text(LitStr),
    Integer(i128, Span),
    Float(f64, Span),
    Bool(LitBool),
    Null(Span),
    Object(Body),
    List(Vec<Self>, Span),
    Expression(Expr),
}

impl Node {
    pub(super) fn span(&self) -> Span {
        match self {
            Self::Text(text) => text.span(),
            Self::Integer(_, span) | Self::Float(_, span) | Self::Null(span) | Self::List(_, span) => *span,
            Self::Bool(flag) => flag.span(),
            Self::Object(body) => body.span,
            Self::Expression(expression) => expression.span(),
        }
    }
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> Result<Self, Error> {
        if input.is_empty() {
            return Err(
                input.error("expected a kind and its fields: `Deployment { metadata: { ... }, ... }`")
            );
        }
        let kind = if input.peek(LitStr) {
            KindName::Versioned(input.parse()?, input.parse()?)
        } else {
            KindName::Path(input.call(Path::parse_mod_style)?)
        };
        let body = input.parse()?;
        if !input.is_empty() {
            return Err(input.error("unexpected token after the object"));
        }
        Ok(Self { kind, body })
    }
}

impl Parse for Body {
    fn parse(input: ParseStream<'_>) -> Result<Self, Error> {
        let content;
        let brace = braced!(content in input);
        let (mut entries, mut open) = (Vec::new(), None);
        while !content.is_empty() {
            if content.peek(Token![..]) {
                open = Some(content.parse::<Token![..]>()?.span());
                if !content.is_empty() {
                    return Err(content.error("`..` must be the last entry of an object"));
                }
                break;
            }
            entries.push(content.parse()?);
            if !content.is_empty() {
                content.parse::<Token![,]>()?;
            }
        }
        Ok(Self { entries, open, span: brace.span.join() })
    }
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self, Error> {
        let key = if input.peek(LitStr) {
            let text: LitStr = input.parse()?;
            Key::Name(text.value(), text.span())
        } else if input.peek(Paren) {
            let content;
            parenthesized!(content in input);
            Key::Computed(content.parse()?)
        } else {
            let name = input.call(Ident::parse_any)?;
            Key::Name(name.unraw().to_string(), name.span())
        };
        let optional = input.parse::<Option<Token![?]>>()?.map(|mark| mark.span());
        input.parse::<Token![:]>()?;
        Ok(Self { key, optional, value: input.parse()? })
    }
}

impl Parse for Node {
    fn parse(input: ParseStream<'_>) -> Result<Self, Error> {
        if stands_alone(input, 2) && input.peek(Token![-]) {
            let minus: Token![-] = input.parse()?;
            return match Self::literal(input)? {
                Some(Self::Integer(number, span)) => Ok(Self::Integer(-number, span)),
                Some(Self::Float(number, span)) => Ok(Self::Float(-number, span)),
                _ => Err(Error::new(minus.span(), "expected a number after `-`")),
            };
        }
        if stands_alone(input, 1) {
            if let Some(literal) = Self::literal(input)? {
                return Ok(literal);
            }
            if input.peek(Brace) && is_object(input)? {
                return input.parse().map(Self::Object);
            }
            if input.peek(Bracket) && !is_repeat(input)? {
                let content;
                let bracket = bracketed!(content in input);
                let items = content.parse_terminated(Self::parse, Token![,])?;
                return Ok(Self::List(items.into_iter().collect(), bracket.span.join()));
            }
        }
        input.parse().map(Self::Expression)
    }
}

impl Node {
    fn literal(input: ParseStream<'_>) -> Result<Option<Self>, Error> {
        if input.peek(LitStr) {
            return input.parse().map(|text| Some(Self::Text(text)));
        }
        if input.peek(LitInt) {
            let number: LitInt = input.parse()?;
            return Ok(Some(Self::Integer(number.base10_parse()?, number.span())));
        }
        if input.peek(LitFloat) {
            let number: LitFloat = input.parse()?;
            return Ok(Some(Self::Float(number.base10_parse()?, number.span())));
        }
        if input.peek(LitBool) {
            return input.parse().map(|flag| Some(Self::Bool(flag)));
        }
        if input.peek(Ident) && input.fork().parse::<Ident>()? == "null" {
            return Ok(Some(Self::Null(input.parse::<Ident>()?.span())));
        }
        Ok(None)
    }
}

/// Whether the value consists of exactly the next `tokens` tokens.
fn stands_alone(input: ParseStream<'_>, tokens: usize) -> bool {
    let fork = input.fork();
    (0..tokens).all(|_| fork.parse::<TokenTree>().is_ok()) && (fork.is_empty() || fork.peek(Token![,]))
}

/// Whether the braces contain entries. Otherwise they are a block.
fn is_object(input: ParseStream<'_>) -> Result<bool, Error> {
    let fork = input.fork();
    let content;
    braced!(content in fork);
    if content.is_empty() || content.peek(Token![..]) {
        return Ok(true);
    }
    content.parse::<TokenTree>()?;
    let mark: Option<Token![?]> = content.parse()?;
    Ok(content.peek(Token![:]) && (mark.is_some() || !content.peek(Token![::])))
}

/// Whether the brackets contain `value; count`, which is an expression.
fn is_repeat(input: ParseStream<'_>) -> Result<bool, Error> {
    let fork = input.fork();
    let content;
    bracketed!(content in fork);
    while !content.is_empty() {
        if content.peek(Token![;]) {
            return Ok(true);
        }
        content.parse::<TokenTree>()?;
    }
    Ok(false)
}
