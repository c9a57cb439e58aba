//! Which texts Kubernetes takes for names.
//!
//! Owns the shapes of names, and nothing of what they name.

/// Letters, digits and `-`, starting and ending with a letter or digit, 63 at most: namespaces.
pub(crate) fn is_dns_label(name: &str) -> bool {
    let inner = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    name.len() <= 63 && has_ends(name, is_lower) && name.bytes().all(inner)
}

/// A label that starts with a letter: Services.
pub(crate) fn is_service_name(name: &str) -> bool {
    is_dns_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Labels with dots between them, 253 letters at most: groups, names of most objects.
pub(crate) fn is_dns_subdomain(name: &str) -> bool {
    let label = |label: &str| {
        let inner = |letter: u8| is_lower(letter) || letter == b'-';
        has_ends(label, is_lower) && label.bytes().all(inner)
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// A name, with a domain and `/` before it or not: keys of labels, names of conditions.
pub(crate) fn is_qualified_name(name: &str) -> bool {
    match name.split_once('/') {
        Some((domain, name)) => is_dns_subdomain(domain) && is_label_text(name),
        None => is_label_text(name),
    }
}

/// What a label may say: nothing, or what a name may be.
pub(crate) fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_label_text(value)
}

/// One part of a path: names of roles.
pub(crate) fn is_path_segment(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '%'])
}

fn is_label_text(text: &str) -> bool {
    let inner = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_' | b'.');
    text.len() <= 63 && has_ends(text, |letter| letter.is_ascii_alphanumeric()) && text.bytes().all(inner)
}

fn is_lower(letter: u8) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit()
}

fn has_ends(text: &str, end: impl Fn(u8) -> bool) -> bool {
    text.bytes().next().is_some_and(&end) && text.bytes().next_back().is_some_and(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_as_the_api_server_takes_them() {
        assert!(
            is_dns_label("kube-system") && is_dns_label("0") && !is_dns_label("") && !is_dns_label("a.b")
        );
        assert!(
            !is_dns_label("Prod")
                && !is_dns_label("-a")
                && !is_dns_label("a-")
                && !is_dns_label(&"a".repeat(64))
        );
        assert!(is_service_name("webhook-service") && !is_service_name("1st"));
        assert!(
            is_dns_subdomain("rbac.authorization.k8s.io")
                && !is_dns_subdomain("a..b")
                && !is_dns_subdomain("a.")
        );
        assert!(
            is_qualified_name("app.kubernetes.io/name")
                && is_qualified_name("App_1")
                && !is_qualified_name("a/b/c")
        );
        assert!(is_label_value("") && is_label_value("A.b-c") && !is_label_value("a b"));
        assert!(is_path_segment("system:leader") && !is_path_segment("a/b") && !is_path_segment(".."));
    }
}
