//! Parses image references for the default pull policy.
//!
//! Uses the grammar of the distribution project. An invalid reference has no tag; it is not an error here.

/// The default pull policy of an image: `Always` for an explicit or implicit tag `latest`.
pub(super) fn pull_policy(image: &str) -> &'static str {
    if tag(image).is_some_and(|tag| tag == "latest") { "Always" } else { "IfNotPresent" }
}

/// The tag of a valid reference. It is `latest` without tag and digest, and absent with only a digest.
fn tag(image: &str) -> Option<&str> {
    if image.len() == 64 && is_hex(image) {
        return None;
    }
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return None;
    }
    let (name, tag) = match name.rsplit_once(':') {
        // A colon before the last slash separates the port of the registry.
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    };
    if !is_name(name) || tag.is_some_and(|tag| !is_tag(tag)) {
        return None;
    }
    tag.or(if digest.is_none() { Some("latest") } else { None })
}

/// `registry:5000/path/name`, `path/name` or `name`.
fn is_name(name: &str) -> bool {
    let path = match name.split_once('/') {
        Some((first, rest)) if is_registry(first) => {
            if !is_host(first) {
                return false;
            }
            rest
        }
        _ => name,
    };
    name.len() <= 255 && path.split('/').all(is_path_component)
}

/// Whether the part before the first slash is a registry host rather than a path component.
fn is_registry(part: &str) -> bool {
    part.contains(['.', ':']) || part == "localhost" || part.chars().any(char::is_uppercase)
}

fn is_host(host: &str) -> bool {
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if !host.starts_with('[') || host.ends_with(']') => (host, Some(port)),
        _ => (host, None),
    };
    if port.is_some_and(|port| port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit())) {
        return false;
    }
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':');
    }
    host.split('.').all(|part| {
        part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.ends_with(|c: char| c.is_ascii_alphanumeric())
    })
}

/// Lower-case letters and digits, separated by `.`, `_`, `__` or any number of `-`.
fn is_path_component(part: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = part.as_bytes();
    if !bytes.first().copied().is_some_and(is_word) || !bytes.last().copied().is_some_and(is_word) {
        return false;
    }
    bytes
        .split(|&b| is_word(b))
        .filter(|separator| !separator.is_empty())
        .all(|separator| matches!(separator, b"." | b"_" | b"__") || separator.iter().all(|&b| b == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let mut bytes = tag.bytes();
    tag.len() <= 128
        && bytes.next().is_some_and(is_word)
        && bytes.all(|b| is_word(b) || matches!(b, b'.' | b'-'))
}

/// Whether the algorithm is known and its hexadecimal value has the right length.
fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length && is_hex(hex)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_with_tag_latest_or_no_tag_are_always_pulled() {
        for image in ["nginx", "nginx:latest", "a.b:5000/c/d", "localhost/x", "localhost:5000/x:latest"] {
            assert_eq!(pull_policy(image), "Always", "{image}");
        }
    }

    #[test]
    fn images_with_another_tag_or_a_digest_are_pulled_if_not_present() {
        let digest = format!("nginx@sha256:{}", "a".repeat(64));
        for image in ["nginx:1", "a.b:5000/c/d:v1.2", digest.as_str()] {
            assert_eq!(pull_policy(image), "IfNotPresent", "{image}");
        }
    }

    #[test]
    fn an_invalid_reference_has_no_tag() {
        let hex = "a".repeat(64);
        for image in ["", " nginx", "Nginx", "a//b", "a_-b", "-a", "nginx:", "nginx@sha256:12", hex.as_str()]
        {
            assert_eq!(pull_policy(image), "IfNotPresent", "{image:?}");
        }
    }
}
