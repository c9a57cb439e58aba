//! URLs, parsed like Go's `url.ParseRequestURI`.
//!
//! Accepts absolute URLs and absolute paths only. The fragment is cut off after parsing.

use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::Function;
use crate::error::EvalError;
use crate::value::{Evaluated, Extension, Map, Value};
use kubewright_apimachinery::field::quote;

/// The characters of a path that Go escapes.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@')
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'[')
    .remove(b']')
    .remove(b'%');

/// A parsed URL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Url {
    text: String,
    scheme: String,
    host: String,
    path: String,
    query: String,
}

impl Url {
    /// Parses `text`; fails with Go's error text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Self::read(text, true)?;
        let (text, _) = text.split_once('#').unwrap_or((text, ""));
        Self::read(text, false)
    }

    /// The original text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    fn read(text: &str, is_request: bool) -> Result<Self, String> {
        let failed = |problem: String| format!("parse {}: {problem}", quote(text));
        if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return Err(failed("net/url: invalid control character in URL".to_owned()));
        }
        if text.is_empty() && is_request {
            return Err(failed("empty url".to_owned()));
        }
        let (scheme, rest) = split_scheme(text).map_err(failed)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Self {
            text: text.to_owned(),
            scheme: scheme.to_lowercase(),
            query: query.to_owned(),
            ..Self::default()
        };
        if text == "*" {
            "*".clone_into(&mut url.path);
            return Ok(url);
        }
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                return Ok(url);
            }
            if is_request {
                return Err(failed("invalid URI for request".to_owned()));
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err(failed("first path segment in URL cannot contain colon".to_owned()));
            }
        }
        let mut path = rest;
        if let Some(after) = rest.strip_prefix("//")
            && (!scheme.is_empty() || !is_request && !rest.starts_with("///"))
        {
            let end = after.find('/').unwrap_or(after.len());
            url.host = host_of(&after[..end]).map_err(failed)?;
            path = &after[end..];
        }
        unescaped(path).map_err(failed)?;
        path.clone_into(&mut url.path);
        Ok(url)
    }

    fn hostname(&self) -> &str {
        match self.host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((inner, _)) => inner,
            None => self.host.split_once(':').map_or(&self.host, |(name, _)| name),
        }
    }

    fn port(&self) -> &str {
        let after = self.host.rfind(']').map_or(self.host.as_str(), |at| &self.host[at..]);
        after.rsplit_once(':').map_or("", |(_, port)| port)
    }

    /// The percent-encoded path. Existing escapes are kept.
    fn escaped_path(&self) -> String {
        utf8_percent_encode(&self.path, ESCAPED).to_string()
    }

    /// Query keys in order of first appearance, each with all its values.
    fn query_values(&self) -> Vec<(String, Vec<String>)> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text: &str| unescaped(&text.replace('+', " ")).ok();
            let (Some(key), Some(value)) = (decoded(key), decoded(value)) else { continue };
            match found.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => values.push(value),
                None => found.push((key, vec![value])),
            }
        }
        found
    }
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn host_of(authority: &str) -> Result<String, String> {
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
            if !user.chars().all(is_valid) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            host
        }
        None => authority,
    };
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        &host[end + 1..]
    } else {
        host.rfind(':').map_or("", |at| &host[at..])
    };
    let digits = port.strip_prefix(':').or(port.is_empty().then_some(""));
    if !digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(format!("invalid port {} after host", quote(port)));
    }
    if let Some(at) = host.find('%') {
        let escape = &host[at..(at + 3).min(host.len())];
        let is_hex = escape.len() == 3 && escape[1..].bytes().all(|byte| byte.is_ascii_hexdigit());
        // In a host, only non-ASCII bytes may be percent-encoded.
        if !is_hex || u8::from_str_radix(&escape[1..], 16).is_ok_and(|byte| byte < 0x80) {
            return Err(format!("invalid URL escape {}", quote(escape)));
        }
    }
    let is_valid =
        |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c);
    match host.chars().find(|c| !is_valid(*c)) {
        Some(c) => Err(format!("invalid character {} in host name", quote(&c.to_string()))),
        None => Ok(host.to_owned()),
    }
}

fn unescaped(text: &str) -> Result<String, String> {
    // Go rejects invalid escapes; the crate keeps them.
    for (at, _) in text.match_indices('%') {
        let digits = &text.as_bytes()[at + 1..];
        let digits = &digits[..digits.len().min(2)];
        if digits.len() < 2 || !digits.iter().all(u8::is_ascii_hexdigit) {
            let shown = String::from_utf8_lossy(digits);
            return Err(format!("invalid URL escape {}", quote(&format!("%{shown}"))));
        }
    }
    Ok(percent_decode_str(text).decode_utf8_lossy().into_owned())
}

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "url" => |args| match args {
            [Value::String(text)] => Some(match Url::parse(text) {
                Ok(url) => Ok(Value::Extension(Extension::Url(Arc::new(url)))),
                Err(error) => {
                    Err(EvalError::new(format!("URL parse error during conversion from string: {error}")))
                }
            }),
            _ => None,
        },
        "isURL" => |args| match args {
            [Value::String(text)] => Some(Ok(Value::Bool(Url::read(text, true).is_ok()))),
            _ => None,
        },
        "getScheme" => |args| part(args, |url| url.scheme.clone()),
        "getHost" => |args| part(args, |url| url.host.clone()),
        "getHostname" => |args| part(args, |url| url.hostname().to_owned()),
        "getPort" => |args| part(args, |url| url.port().to_owned()),
        "getEscapedPath" => |args| part(args, Url::escaped_path),
        "getQuery" => |args| match args {
            [Value::Extension(Extension::Url(url))] => {
                let entries = url.query_values().into_iter();
                let entries = entries.map(|(key, values)| (Value::string(key), Value::strings(values)));
                Some(Map::built(entries.collect()).map(Value::Map))
            }
            _ => None,
        },
        _ => return None,
    })
}

fn part<'a>(args: &[Value<'a>], of: fn(&Url) -> String) -> Option<Evaluated<'a>> {
    match args {
        [Value::Extension(Extension::Url(url))] => Some(Ok(Value::string(of(url)))),
        _ => None,
    }
}

/// Go's parse error; `None` if `text` is a valid request URL.
pub(super) fn problem(text: &str) -> Option<String> {
    Url::read(text, true).err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_parsed_into_its_parts() {
        let url = Url::parse("https://user@Example.com:80/a b%2Fc?k1=a&k2=b&k2=c#frag").unwrap();
        assert_eq!((url.scheme.as_str(), url.host.as_str()), ("https", "Example.com:80"));
        assert_eq!(
            (url.hostname(), url.port(), url.escaped_path().as_str()),
            ("Example.com", "80", "/a%20b%2Fc")
        );
        let values =
            |key: &str, values: &[&str]| (key.to_owned(), values.iter().map(|v| (*v).to_owned()).collect());
        assert_eq!(url.query_values(), [values("k1", &["a"]), values("k2", &["b", "c"])]);
        let v6 = Url::parse("https://[::1]:8080/").unwrap();
        assert_eq!((v6.host.as_str(), v6.hostname(), v6.port()), ("[::1]:8080", "::1", "8080"));
    }

    #[test]
    fn invalid_urls_have_gos_error_text() {
        let error = |text: &str| Url::parse(text).unwrap_err();
        assert_eq!(error("../a"), "parse \"../a\": invalid URI for request");
        assert_eq!(error(""), "parse \"\": empty url");
        assert_eq!(error("https://a:b/"), "parse \"https://a:b/\": invalid port \":b\" after host");
        assert_eq!(error("/%zz"), "parse \"/%zz\": invalid URL escape \"%zz\"");
        assert_eq!(error(":80"), "parse \":80\": missing protocol scheme");
        assert!(Url::parse("/path").is_ok() && Url::parse("mailto:a@b").is_ok());
    }
}
