//! URIs, parsed like Go's `url.ParseRequestURI`: absolute URIs and absolute paths.

/// Whether the text is a URI or an absolute path.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = scheme(text) else { return false };
    let (rest, _query) = rest.split_once('?').unwrap_or((rest, ""));
    if !rest.starts_with('/') {
        // `mailto:a@b` is opaque; without a scheme, the path must be absolute.
        return scheme.is_some();
    }
    let authority = rest.strip_prefix("//").filter(|_| scheme.is_some() || !rest.starts_with("///"));
    let path = match authority {
        None => rest,
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if !is_authority(authority) {
                return false;
            }
            path
        }
    };
    is_escaped(path, |_| true)
}

/// The optional scheme and the rest; `None` if the text starts with a colon.
fn scheme(text: &str) -> Option<(Option<&str>, &str)> {
    for (at, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return None,
            b':' => return Some((Some(&text[..at]), &text[at + 1..])),
            _ => break,
        }
    }
    Some((None, text))
}

fn is_authority(authority: &str) -> bool {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    user.is_none_or(is_user) && is_host(host)
}

fn is_user(user: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    user.chars().all(allowed) && is_escaped(user, |_| true)
}

fn is_host(host: &str) -> bool {
    let port = |text: &str| {
        text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
    };
    let name = if host.starts_with('[') {
        let Some(end) = host.rfind(']') else { return false };
        if !port(&host[end + 1..]) {
            return false;
        }
        let inside = &host[1..end];
        let (address, zone) = match inside.find("%25") {
            Some(at) => (&inside[..at], &inside[at + 3..]),
            None => (inside, ""),
        };
        return address.parse::<std::net::Ipv6Addr>().is_ok() && is_escaped(zone, |_| true);
    } else if let Some(colon) = host.rfind(':') {
        if !port(&host[colon..]) {
            return false;
        }
        &host[..colon]
    } else {
        host
    };
    let allowed =
        |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c);
    // In a host, only non-ASCII bytes may be percent-encoded.
    name.chars().all(allowed) && is_escaped(name, |byte| byte >= 0x80)
}

/// Whether every `%` is followed by two hexadecimal digits of a byte that may be percent-encoded.
fn is_escaped(text: &str, may: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(percent) = bytes[at..].iter().position(|b| *b == b'%') {
        let digits = bytes.get(at + percent + 1..at + percent + 3).and_then(|d| std::str::from_utf8(d).ok());
        let byte = digits
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|d| u8::from_str_radix(d, 16).ok());
        if !byte.is_some_and(&may) {
            return false;
        }
        at += percent + 3;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_uris_and_paths_are_accepted() {
        for good in [
            "http://foo.bar/#com",
            "http://foobar.中文网/",
            "ftp://foobar.ru/",
            "http://user:pass@www.foobar.com/",
            "http://duckduckgo.com/?q=%2F",
            "http://localhost:3000/",
            "http://foobar.com?foo=bar",
            "xyz://foobar.com",
            "http://www.foo_bar.com/",
            "http://foobar.com/t$-_.+!*\\'(),",
            "mailto:someone@example.com",
            "/abs/test/dir",
            "http://[::1]:8080/x",
            "*",
        ] {
            assert!(is_request_uri(good), "{good}");
        }
        for bad in [
            "",
            "foobar.com",
            "invalid.",
            ".com",
            "./rel/test/dir",
            "not a uri",
            ":x",
            "http://a b/",
            "http://a/%zz",
            "http://a:port/",
            "http://[::1/",
        ] {
            assert!(!is_request_uri(bad), "{bad}");
        }
    }
}
