//! Validators for Kubernetes names.

/// A DNS label: up to 63 lower-case letters, digits and `-`. Used for namespaces.
pub(crate) fn is_dns_label(name: &str) -> bool {
    let inner = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    name.len() <= 63 && has_ends(name, is_lower) && name.bytes().all(inner)
}

/// A DNS label that starts with a letter. Used for Services.
pub(crate) fn is_service_name(name: &str) -> bool {
    is_dns_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase())
}

/// A DNS subdomain: labels separated by dots, up to 253 characters. Used for groups and most object names.
pub(crate) fn is_dns_subdomain(name: &str) -> bool {
    let label = |label: &str| {
        let inner = |letter: u8| is_lower(letter) || letter == b'-';
        has_ends(label, is_lower) && label.bytes().all(inner)
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// A name with an optional DNS subdomain prefix and `/`. Used for label keys and condition names.
pub(crate) fn is_qualified_name(name: &str) -> bool {
    match name.split_once('/') {
        Some((domain, name)) => is_dns_subdomain(domain) && is_label_text(name),
        None => is_label_text(name),
    }
}

/// A label value: empty, or a name of up to 63 characters.
pub(crate) fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_label_text(value)
}

/// A single path segment. Used for role names.
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
    fn names_are_validated_as_in_the_api_server() {
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
