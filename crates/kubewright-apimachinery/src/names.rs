//! Name formats: label keys, DNS names, port names and others.
//!
//! Each function returns upstream's error messages, or none if the value is valid. Lengths are in bytes, even
//! if the message says characters. The hand-written matchers accept exactly the regular expression in the
//! message.

mod ip;

pub use ip::{
    cidr, cidr_warnings, interface_address, ip, ip_warnings, legacy_cidr, legacy_ip, parse_cidr_sloppy,
    parse_ip_sloppy,
};

/// Maximum length of a DNS label, a label value and the name part of a label key.
pub const LABEL_MAX_LENGTH: usize = 63;
/// Maximum length of a DNS subdomain and of most object names.
pub const SUBDOMAIN_MAX_LENGTH: usize = 253;

const DNS1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_LABEL_MESSAGE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
    characters or '-', and must start and end with an alphanumeric character";
const DNS1123_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS1123_SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_KEY_MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and \
    end with an alphanumeric character";

/// A DNS label according to RFC 1123.
pub fn dns1123_label(value: &str) -> Vec<String> {
    check_dns1123_label(value, max_length_error)
}

/// [`dns1123_label`] with the messages of declarative validation (`k8s-short-name`).
pub fn short_name(value: &str) -> Vec<String> {
    check_dns1123_label(value, max_bytes_error)
}

fn check_dns1123_label(value: &str, too_long: fn(usize) -> String) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > LABEL_MAX_LENGTH {
        errors.push(too_long(LABEL_MAX_LENGTH));
    }
    if !is_dns1123_label(value) {
        errors.push(if is_dns1123_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            regex_error(DNS1123_LABEL_MESSAGE, DNS1123_LABEL, &["my-name", "123-abc"])
        });
    }
    errors
}

/// DNS labels joined by dots.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    check_dns1123_subdomain(value, max_length_error)
}

/// [`dns1123_subdomain`] with the messages of declarative validation (`k8s-long-name`).
pub fn long_name(value: &str) -> Vec<String> {
    check_dns1123_subdomain(value, max_bytes_error)
}

fn check_dns1123_subdomain(value: &str, too_long: fn(usize) -> String) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > SUBDOMAIN_MAX_LENGTH {
        errors.push(too_long(SUBDOMAIN_MAX_LENGTH));
    }
    if !is_dns1123_subdomain(value) {
        errors.push(regex_error(DNS1123_SUBDOMAIN_MESSAGE, DNS1123_SUBDOMAIN, &["example.com"]));
    }
    errors
}

/// [`long_name`] that also accepts upper case (`k8s-long-name-caseless`).
pub fn long_name_caseless(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > SUBDOMAIN_MAX_LENGTH {
        errors.push(max_bytes_error(SUBDOMAIN_MAX_LENGTH));
    }
    if !is_dns1123_subdomain(&value.to_ascii_lowercase()) {
        let message = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must \
            start and end with an alphanumeric character";
        errors.push(regex_error(message, DNS1123_SUBDOMAIN, &["Example.com"]));
    }
    errors
}

/// A DNS subdomain with underscores allowed, as in DNS search paths.
pub fn dns1123_subdomain_with_underscore(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > SUBDOMAIN_MAX_LENGTH {
        errors.push(max_length_error(SUBDOMAIN_MAX_LENGTH));
    }
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label);
        is_word(label, is_lower_alphanumeric, |b| is_lower_alphanumeric(b) || b == b'-' || b == b'_')
    };
    if !value.split('.').all(is_label) {
        let message = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', \
            '-' or '.', and must start and end with an alphanumeric character";
        let regex = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
        errors.push(regex_error(message, regex, &["example.com"]));
    }
    errors
}

/// A DNS label according to RFC 1035, which starts with a letter.
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > LABEL_MAX_LENGTH {
        errors.push(max_length_error(LABEL_MAX_LENGTH));
    }
    if !(is_dns1123_label(value) && value.starts_with(|c: char| c.is_ascii_lowercase())) {
        let message = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with \
            an alphabetic character, and end with an alphanumeric character";
        errors.push(regex_error(message, "[a-z]([-a-z0-9]*[a-z0-9])?", &["my-name", "abc-123"]));
    }
    errors
}

/// A wildcard DNS subdomain: `*.` and a DNS subdomain.
pub fn wildcard_dns1123_subdomain(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > SUBDOMAIN_MAX_LENGTH {
        errors.push(max_length_error(SUBDOMAIN_MAX_LENGTH));
    }
    if !value.strip_prefix("*.").is_some_and(is_dns1123_subdomain) {
        let message = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, \
            which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric \
            character";
        let regex = format!(r"\*\.{DNS1123_SUBDOMAIN}");
        errors.push(regex_error(message, &regex, &["*.example.com"]));
    }
    errors
}

/// A label key (qualified name): a name with an optional DNS subdomain prefix.
pub fn label_key(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let parts: Vec<&str> = value.split('/').collect();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors.extend(long_name(prefix).into_iter().map(|error| format!("prefix part {error}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                label_key_error()
            )];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX_LENGTH {
        errors.push(format!("name part {}", max_bytes_error(LABEL_MAX_LENGTH)));
    }
    if !is_label_name(name) {
        errors.push(format!("name part {}", label_key_error()));
    }
    errors
}

fn label_key_error() -> String {
    regex_error(LABEL_KEY_MESSAGE, LABEL_KEY, &["MyName", "my.name", "123-abc"])
}

/// The value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > LABEL_MAX_LENGTH {
        errors.push(max_bytes_error(LABEL_MAX_LENGTH));
    }
    if !(value.is_empty() || is_label_name(value)) {
        let message = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
            '.', and must start and end with an alphanumeric character";
        errors.push(regex_error(message, &format!("({LABEL_KEY})?"), &["MyValue", "my_value", "12345"]));
    }
    errors
}

/// A URL path segment. Accepts the empty string and any length.
pub fn path_segment_name(value: &str) -> Vec<String> {
    if matches!(value, "." | "..") {
        return vec![format!("may not be '{value}'")];
    }
    path_segment_prefix(value)
}

/// The prefix of a [`path_segment_name`].
pub fn path_segment_prefix(value: &str) -> Vec<String> {
    let contained = ["/", "%"].into_iter().filter(|part| value.contains(part));
    contained.map(|part| format!("may not contain '{part}'")).collect()
}

/// A key of a ConfigMap or Secret.
pub fn config_map_key(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > SUBDOMAIN_MAX_LENGTH {
        errors.push(max_length_error(SUBDOMAIN_MAX_LENGTH));
    }
    if !is_all(value, |b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')) {
        let message = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        errors.push(regex_error(message, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]));
    }
    errors.extend(parent_directory_error(value));
    errors
}

/// The name of an environment variable before Kubernetes 1.30 relaxed the format.
pub fn env_var_name(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if !is_all(value, is_inner) || value.starts_with(|c: char| c.is_ascii_digit()) {
        let message = "a valid environment variable name must consist of alphabetic characters, digits, '_', \
            '-', or '.', and must not start with a digit";
        let examples = ["my.env-name", "MY_ENV.NAME", "MyEnvName1"];
        errors.push(regex_error(message, "[-._a-zA-Z][-._a-zA-Z0-9]*", &examples));
    }
    errors.extend(parent_directory_error(value));
    errors
}

/// The name of an environment variable: printable ASCII except `=`.
pub fn relaxed_env_var_name(value: &str) -> Vec<String> {
    if value.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    if value.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'=') {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .to_owned(),
    ]
}

/// The name of an HTTP header.
pub fn http_header_name(value: &str) -> Vec<String> {
    if is_all(value, |b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    let message = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![regex_error(message, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// A C identifier.
pub fn c_identifier(value: &str) -> Vec<String> {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if is_all(value, is_inner) && !value.starts_with(|c: char| c.is_ascii_digit()) {
        return Vec::new();
    }
    let message = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
        alphanumeric characters or '_'";
    vec![regex_error(message, "[A-Za-z_][A-Za-z0-9_]*", &["my_name", "MY_NAME", "MyName"])]
}

/// The name of a port: an IANA service name.
pub fn port_name(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 15 {
        errors.push(max_length_error(15));
    }
    if !is_all(value, |b| is_lower_alphanumeric(b) || b == b'-') {
        errors.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !value.bytes().any(|b| b.is_ascii_lowercase()) {
        errors.push("must contain at least one letter (a-z)".to_owned());
    }
    if value.contains("--") {
        errors.push("must not contain consecutive hyphens".to_owned());
    }
    if value.starts_with('-') || value.ends_with('-') {
        errors.push("must not begin or end with a hyphen".to_owned());
    }
    errors
}

/// A port number.
pub fn port_number(value: i64) -> Vec<String> {
    in_range(value, 1, 65535)
}

/// A Unix user or group ID.
pub fn user_id(value: i64) -> Vec<String> {
    in_range(value, 0, i64::from(i32::MAX))
}

/// A number from `low` to `high`.
pub fn in_range(value: i64, low: i64, high: i64) -> Vec<String> {
    if (low..=high).contains(&value) {
        return Vec::new();
    }
    vec![format!("must be between {low} and {high}, inclusive")]
}

/// A percentage such as `25%`.
pub fn percent(value: &str) -> Vec<String> {
    if value.strip_suffix('%').is_some_and(|number| is_all(number, |b| b.is_ascii_digit())) {
        return Vec::new();
    }
    let message = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![regex_error(message, "[0-9]+%", &["1%", "93%"])]
}

/// An integer in canonical form: no plus sign, no leading zeros.
pub fn decimal_integer(value: &str) -> Vec<String> {
    if value.is_empty() {
        return vec!["must be non-empty".to_owned()];
    }
    let digits = value.strip_prefix('-').unwrap_or(value);
    if value == "0" || (is_all(digits, |b| b.is_ascii_digit()) && !digits.starts_with('0')) {
        return Vec::new();
    }
    vec!["must be a valid decimal integer in canonical form".to_owned()]
}

/// A domain-prefixed path, such as `acme.io/foo`. Returns the invalid part with each message. The caller must
/// check that the value is not empty.
pub fn domain_prefixed_path(value: &str) -> Vec<(String, String)> {
    let (host, path) = value.split_once('/').unwrap_or_default();
    if host.is_empty() || path.is_empty() {
        let message = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return vec![(value.to_owned(), message.to_owned())];
    }
    let mut errors: Vec<_> = dns1123_subdomain(host).into_iter().map(|e| (host.to_owned(), e)).collect();
    if !is_all(path, |b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b)) {
        let error = regex_error("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
        errors.push((path.to_owned(), error));
    }
    errors
}

/// A [`label_key`] with a domain prefix. The caller must check that the value is not empty.
pub fn domain_prefixed_key(value: &str) -> Vec<String> {
    let mut errors = label_key(value);
    if errors.is_empty() && !value.contains('/') {
        errors.push("must be a domain-prefixed key (such as \"acme.io/foo\")".to_owned());
    }
    errors
}

/// A domain of at least three labels. All messages are joined to one. The caller must check that the value is
/// not empty.
pub fn fully_qualified_name(value: &str) -> Vec<String> {
    let errors = dns1123_subdomain(value);
    if !errors.is_empty() {
        return vec![errors.join(",")];
    }
    if value.split('.').count() < 3 {
        return vec!["should be a domain with at least three segments separated by dots".to_owned()];
    }
    Vec::new()
}

/// A domain of at least two labels with an optional trailing dot. Returns the invalid part with each message.
/// The caller must check that the value is not empty.
pub fn fully_qualified_domain_name(value: &str) -> Vec<(String, String)> {
    let value = value.strip_suffix('.').unwrap_or(value);
    let errors = dns1123_subdomain(value);
    if !errors.is_empty() {
        return vec![(value.to_owned(), errors.join(","))];
    }
    if !value.contains('.') {
        let message = "should be a domain with at least two segments separated by dots";
        return vec![(value.to_owned(), message.to_owned())];
    }
    for label in value.split('.') {
        let errors = dns1123_label(label);
        if !errors.is_empty() {
            return vec![(label.to_owned(), errors.join(","))];
        }
    }
    Vec::new()
}

/// Replaces the trailing dash of a `generateName` for validation, because a suffix will follow. Like
/// upstream, replaces the last two bytes by one.
pub fn mask_trailing_dash(name: &str) -> String {
    match name.len().checked_sub(2).and_then(|end| name.get(..end)) {
        Some(start) if name.ends_with('-') => format!("{start}a"),
        _ => name.to_owned(),
    }
}

/// `must be no more than 63 characters`
pub fn max_length_error(length: usize) -> String {
    format!("must be no more than {length} characters")
}

/// Like [`max_length_error`], in the wording of newer checks.
fn max_bytes_error(length: usize) -> String {
    format!("must be no more than {length} bytes")
}

/// A message with its regular expression and valid examples.
pub fn regex_error(message: &str, regex: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{message} (regex used for validation is '{regex}')");
    }
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

/// ConfigMap keys and variable names become file names, so `..` is rejected.
fn parent_directory_error(value: &str) -> Option<String> {
    match value {
        "." | ".." => Some(format!("must not be '{value}'")),
        _ if value.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

fn is_dns1123_label(value: &str) -> bool {
    is_word(value, is_lower_alphanumeric, |b| is_lower_alphanumeric(b) || b == b'-')
}

fn is_dns1123_subdomain(value: &str) -> bool {
    value.split('.').all(is_dns1123_label)
}

fn is_label_name(value: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    is_word(value, |b| b.is_ascii_alphanumeric(), is_inner)
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Whether the value is not empty, starts and ends with `is_end` and contains only `is_inner`.
fn is_word(value: &str, is_end: impl Fn(u8) -> bool, is_inner: impl Fn(u8) -> bool) -> bool {
    match value.as_bytes() {
        [] => false,
        [only] => is_end(*only),
        [first, inner @ .., last] => {
            is_end(*first) && is_end(*last) && inner.iter().all(|&byte| is_inner(byte))
        }
    }
}

/// Whether the value is not empty and all bytes match.
fn is_all(value: &str, is_kind: impl Fn(u8) -> bool) -> bool {
    !value.is_empty() && value.bytes().all(is_kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(validate: fn(&str) -> Vec<String>, good: &[&str], bad: &[&str]) {
        for value in good {
            assert_eq!(validate(value), Vec::<String>::new(), "{value:?}");
        }
        for value in bad {
            assert_ne!(validate(value), Vec::<String>::new(), "{value:?}");
        }
    }

    #[test]
    fn a_dns_label_is_lower_case_letters_digits_and_inner_dashes() {
        check(
            dns1123_label,
            &["a", "ab", "0", "a-b", "a--b", &"a".repeat(63)],
            &["", "A", "-", "-a", "a-", "a.b", "a_b", "a b", "é", &"a".repeat(64)],
        );
        check(dns1035_label, &["a", "a0", "a-b"], &["", "0", "0a", "-a", "a-", "A"]);
    }

    #[test]
    fn a_dns_label_error_contains_the_regex_and_examples() {
        insta::assert_snapshot!(dns1123_label("A").join("; "), @"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')");
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(dns1123_label(&"a".repeat(64)), ["must be no more than 63 characters"]);
        assert_eq!(short_name(&"a".repeat(64)), ["must be no more than 63 bytes"]);
        insta::assert_snapshot!(dns1035_label("0").join("; "), @"a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')");
    }

    #[test]
    fn a_dns_subdomain_is_labels_and_dots() {
        check(
            dns1123_subdomain,
            &["a", "a.b", "0.1.2", "a-b.c-d", &["a"; 127].join(".")],
            &["", ".", "a.", ".a", "a..b", "A.b", "a_b", "a.-b", &["a"; 128].join(".")],
        );
        insta::assert_snapshot!(dns1123_subdomain("a_b").join("; "), @"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
        check(dns1123_subdomain_with_underscore, &["_a", "a_b.c", "_tcp.x"], &["_", "a_", "__a", "_-a", ""]);
        check(long_name_caseless, &["Example.COM"], &["-A", ""]);
    }

    #[test]
    fn a_wildcard_is_a_star_before_a_subdomain() {
        check(wildcard_dns1123_subdomain, &["*.a", "*.a.b"], &["*", "*.", "a.b", "*.*.a", "*a.b", "f*.a"]);
        assert!(wildcard_dns1123_subdomain("*")[0].ends_with(r"regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"));
    }

    #[test]
    fn a_label_key_is_a_name_with_an_optional_domain() {
        check(
            label_key,
            &["a", "A", "a.b_c-d", "example.com/A", "0", &"a".repeat(63)],
            &["", "/", "a/", "/a", "a/b/c", "-a", "a-", "A.com/b", "t~x", "a b", &"a".repeat(64)],
        );
    }

    #[test]
    fn a_label_key_error_names_the_invalid_part() {
        assert_eq!(label_key("/a"), ["prefix part must be non-empty"]);
        assert_eq!(label_key("a/")[0], "name part must be non-empty");
        assert_eq!(label_key("a/").len(), 2);
        assert_eq!(label_key(&"a".repeat(64)), ["name part must be no more than 63 bytes"]);
        insta::assert_snapshot!(label_key("t~x").join("; "), @"name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')");
        insta::assert_snapshot!(label_key("a/b/c").join("; "), @"a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
        assert!(label_key("A/b")[0].starts_with("prefix part a lowercase RFC 1123 subdomain must"));
    }

    #[test]
    fn a_label_value_may_be_empty() {
        check(label_value, &["", "a", "A_b.c-0", &"a".repeat(63)], &["-", "a ", "a/b", &"a".repeat(64)]);
        insta::assert_snapshot!(label_value("a b").join("; "), @"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
    }

    #[test]
    fn a_path_segment_contains_no_slash_or_percent_sign() {
        check(path_segment_name, &["", "a", "system:x", "..."], &[".", ".."]);
        assert_eq!(path_segment_name("."), ["may not be '.'"]);
        assert_eq!(path_segment_name("a/%"), ["may not contain '/'", "may not contain '%'"]);
        check(path_segment_prefix, &[".", ".."], &["a/"]);
    }

    #[test]
    fn config_map_keys_and_variables_must_be_valid_file_names() {
        check(config_map_key, &["a", ".a", "A_b-c.d"], &["", "a/b", "a b", "."]);
        assert_eq!(config_map_key(".."), ["must not be '..'"]);
        assert_eq!(config_map_key("..a"), ["must not start with '..'"]);
        check(env_var_name, &["A", "_a", "my.env-name"], &["", "0a", "a b", "a=b", ".", "..a"]);
        check(relaxed_env_var_name, &["0a", "a b", "~", ".."], &["", "a=b", "é", "a\n"]);
    }

    #[test]
    fn identifiers_and_header_names_are_validated() {
        check(c_identifier, &["a", "_", "A0_b"], &["", "0a", "a-b"]);
        check(http_header_name, &["X-A", "-"], &["", "a b", "a_b"]);
    }

    #[test]
    fn a_port_name_is_an_iana_service_name() {
        check(
            port_name,
            &["http", "a-1", "a", "80a"],
            &["", "80", "-a", "a-", "a--b", "A", "abcdefghijklmnop"],
        );
        assert_eq!(
            port_name("-1--"),
            [
                "must contain at least one letter (a-z)",
                "must not contain consecutive hyphens",
                "must not begin or end with a hyphen"
            ]
        );
    }

    #[test]
    fn ports_and_user_ids_have_ranges() {
        assert!(port_number(1).is_empty() && port_number(65535).is_empty());
        assert_eq!(port_number(0), ["must be between 1 and 65535, inclusive"]);
        assert_eq!(user_id(-1), ["must be between 0 and 2147483647, inclusive"]);
        check(percent, &["0%", "93%"], &["", "%", "1", "-1%", "1%%", "1.5%"]);
        check(decimal_integer, &["0", "-5", "123"], &["", "-", "-0", "007", "+1", "1a", "-01"]);
    }

    #[test]
    fn domain_prefixes_are_validated() {
        assert!(domain_prefixed_path("acme.io/foo/bar~1").is_empty());
        for wrong in ["acme.io", "/a", "acme.io/", "A.io/x", "acme.io/a b"] {
            assert!(!domain_prefixed_path(wrong).is_empty(), "{wrong}");
        }
        assert!(domain_prefixed_key("acme.io/foo").is_empty());
        assert_eq!(domain_prefixed_key("foo"), ["must be a domain-prefixed key (such as \"acme.io/foo\")"]);
        assert!(fully_qualified_name("a.b.c").is_empty());
        assert!(!fully_qualified_name("a.b").is_empty());
        assert!(fully_qualified_domain_name("a.b.").is_empty());
        assert!(!fully_qualified_domain_name("a").is_empty());
    }

    #[test]
    fn the_trailing_dash_of_a_generate_name_is_masked() {
        assert_eq!(mask_trailing_dash("my-name-"), "my-nama");
        assert_eq!(mask_trailing_dash("-"), "-");
        assert_eq!(mask_trailing_dash("é-"), "é-");
        assert_eq!(mask_trailing_dash("abc"), "abc");
    }
}
