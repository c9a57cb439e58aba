//! Prints Rust syntax on one line, with approximately rustfmt's spacing.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use quote::ToTokens;

/// The text of a piece of syntax.
pub(super) fn tokens(syntax: &impl ToTokens) -> String {
    let mut text = String::new();
    stream(&mut text, syntax.to_token_stream());
    text.replace(",)", ")").replace(",>", ">").replace(", }", " }")
}

fn stream(text: &mut String, tokens: TokenStream) {
    let mut joint = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => (" { ", " }"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                if group.delimiter() != Delimiter::Brace && needs_space(text) && !text.ends_with(is_word) {
                    text.push(' ');
                }
                text.push_str(open);
                stream(text, group.stream());
                text.push_str(close);
                joint = false;
            }
            TokenTree::Punct(punct) => {
                let sign = punct.as_char();
                let spaced = matches!(sign, '=' | '+' | '|' | '{' | '}')
                    || (sign == '-' && punct.spacing() == Spacing::Joint);
                let ends_arrow = joint && sign == '>';
                match sign {
                    _ if ends_arrow => text.push_str("> "),
                    _ if joint => text.push(sign),
                    // `&` and lifetimes start a type.
                    '&' | '\'' | '*' | '#' | '?' | '!' if needs_space(text) && starts(sign) => {
                        text.push(' ');
                        text.push(sign);
                    }
                    _ if spaced => {
                        if !text.ends_with(' ') {
                            text.push(' ');
                        }
                        text.push(sign);
                        if punct.spacing() == Spacing::Alone {
                            text.push(' ');
                        }
                    }
                    _ => text.push(sign),
                }
                let is_path = text.ends_with("::");
                if matches!(sign, ',' | ';') || (sign == ':' && !is_path && punct.spacing() == Spacing::Alone)
                {
                    text.push(' ');
                }
                joint = punct.spacing() == Spacing::Joint;
            }
            word => {
                let word = word.to_string();
                if !joint && text.ends_with(|c: char| is_word(c) || matches!(c, '>' | ')' | ']' | '}')) {
                    text.push(' ');
                }
                text.push_str(&word);
                joint = false;
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a space precedes this token.
fn starts(sign: char) -> bool {
    !matches!(sign, '?' | '!')
}

fn needs_space(text: &str) -> bool {
    text.ends_with(|c: char| is_word(c) || matches!(c, '>' | ')' | ']'))
}
