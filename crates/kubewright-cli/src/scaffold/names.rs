//! Name validation and conversion for Kubernetes and Rust.

use std::fmt::Display;

use kubewright_apimachinery::names::dns1123_label;

/// Why a name is invalid.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the {what} `{name}` {why}")]
pub(crate) struct InvalidName {
    what: &'static str,
    name: String,
    why: String,
}

fn refuse(what: &'static str, name: &str, why: impl Display) -> Result<(), InvalidName> {
    Err(InvalidName { what, name: name.to_owned(), why: why.to_string() })
}

/// Validates a DNS subdomain, such as a domain or group.
pub(crate) fn check_domain(what: &'static str, name: &str) -> Result<(), InvalidName> {
    if name.len() > 253 {
        return refuse(what, name, "is longer than 253 characters");
    }
    if name.split('.').all(is_label) {
        return Ok(());
    }
    refuse(what, name, "is not a DNS name such as example.com: use lowercase letters, digits, `-` and dots")
}

/// Validates a version: `v1`, `v1beta2`, `v2alpha1`.
pub(crate) fn check_version(name: &str) -> Result<(), InvalidName> {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_version = name.strip_prefix('v').is_some_and(|rest| {
        let stage = ["alpha", "beta"].iter().find_map(|stage| rest.split_once(stage));
        stage.map_or(number(rest), |(major, minor)| number(major) && number(minor))
    });
    if is_version { Ok(()) } else { refuse("version", name, "must look like v1, v1beta1 or v2alpha1") }
}

/// Validates a kind: `MarkdownView`.
pub(crate) fn check_kind(name: &str) -> Result<(), InvalidName> {
    if !name.starts_with(|first: char| first.is_ascii_uppercase())
        || !name.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        return refuse(
            "kind",
            name,
            "must look like MarkdownView: an uppercase letter, then letters and digits",
        );
    }
    if name.len() > 63 {
        return refuse("kind", name, "is longer than 63 characters");
    }
    if name == "Self" {
        return refuse("kind", name, "is a Rust keyword");
    }
    Ok(())
}

/// The Rust type of a kind: its name, unless that would shadow a type that the generated file uses.
pub(crate) fn struct_name(kind: &str) -> String {
    // Rust's prelude, which derive macros use, and imports of the types file.
    const NEEDED: &[&str] = &[
        "AsMut",
        "AsRef",
        "AsyncFn",
        "AsyncFnMut",
        "AsyncFnOnce",
        "Box",
        "Clone",
        "Condition",
        "Copy",
        "Default",
        "Deserialize",
        "DoubleEndedIterator",
        "Drop",
        "Eq",
        "ExactSizeIterator",
        "Extend",
        "Fn",
        "FnMut",
        "FnOnce",
        "From",
        "FromIterator",
        "Future",
        "Into",
        "IntoFuture",
        "IntoIterator",
        "Iterator",
        "JsonSchema",
        "Option",
        "Ord",
        "PartialEq",
        "PartialOrd",
        "Result",
        "Send",
        "Serialize",
        "Sized",
        "String",
        "Sync",
        "ToOwned",
        "ToString",
        "TryFrom",
        "TryInto",
        "Unpin",
        "Vec",
    ];
    if NEEDED.contains(&kind) { format!("{kind}Object") } else { kind.to_owned() }
}

/// The name of a kind's type in its controller and test: an alias if they import the same name.
pub(crate) fn object_name(kind: &str) -> String {
    // Imports of the controller and its test.
    const IMPORTED: &[&str] = &[
        "AdmissionRequest",
        "ApplyConfiguration",
        "Arc",
        "Client",
        "ConditionUpdate",
        "Context",
        "CustomResource",
        "CustomResourceExt",
        "Defaulter",
        "Duration",
        "Environment",
        "Error",
        "Key",
        "KeyReconciler",
        "KubeSchema",
        "ListOptions",
        "Manager",
        "Object",
        "Outcome",
        "Patch",
        "Reconciler",
        "RegisterError",
        "Rejection",
        "Resource",
        "ResourceExt",
        "Validation",
        "Validator",
    ];
    if IMPORTED.contains(&kind) { format!("{kind}Object") } else { struct_name(kind) }
}

/// Validates a plural resource name: `markdownviews`.
pub(crate) fn check_plural(name: &str) -> Result<(), InvalidName> {
    let starts = name.starts_with(|first: char| first.is_ascii_lowercase());
    if starts && is_label(name) {
        return Ok(());
    }
    refuse("plural", name, "must look like markdownviews: a lowercase letter, then letters, digits and `-`")
}

/// Validates a project name, which is a cargo package name and a prefix of object names.
pub(crate) fn check_project(name: &str) -> Result<(), InvalidName> {
    let what = "project name";
    if !is_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return refuse(
            what,
            name,
            "must start with a lowercase letter and contain only letters, digits and `-`",
        );
    }
    if name.len() > 38 {
        return refuse(what, name, "is longer than 38 characters, so object names would be too long");
    }
    let crates = [
        "anyhow",
        "k8s-openapi",
        "kube",
        "kubewright",
        "kubewright-envtest",
        "schemars",
        "serde",
        "serde-json",
        "tokio",
        "test",
        "std",
        "core",
        "alloc",
        "proc-macro",
        "build",
        "deps",
        "examples",
        "incremental",
    ];
    if crates.contains(&name) || is_keyword(&name.replace('-', "_")) {
        return refuse(what, name, "is a reserved name in Rust");
    }
    Ok(())
}

/// Validates a controller name: `markdown-view-backup`.
pub(crate) fn check_controller(name: &str) -> Result<(), InvalidName> {
    let starts = name.starts_with(|first: char| first.is_ascii_lowercase());
    if starts && is_label(name) {
        return Ok(());
    }
    refuse(
        "controller name",
        name,
        "must look like order-backup: a lowercase letter, then letters, digits and `-`",
    )
}

/// Validates a webhook path: `/mutate-order`. The API server accepts lowercase letters, digits, `-` and `.`
/// between `/`.
pub(crate) fn check_webhook_path(name: &str) -> Result<(), InvalidName> {
    let steps = name.strip_prefix('/').unwrap_or_default();
    if steps.split('/').all(|step| step.split('.').all(is_label)) && name != CONVERT_PATH {
        return Ok(());
    }
    if name == CONVERT_PATH {
        return refuse("path", name, "is reserved for conversion");
    }
    refuse("path", name, "must look like /mutate-order: `/`, then lowercase letters, digits, `-` and `.`")
}

/// Path of all conversion webhooks.
const CONVERT_PATH: &str = "/convert";

/// A project name for a directory name.
pub(crate) fn project_of(folder: &str) -> String {
    folder.to_lowercase().replace(['_', ' ', '.'], "-").trim_matches('-').to_owned()
}

/// The plural, by the English rules that Kubernetes uses for its kinds.
pub(crate) fn plural(kind: &str) -> String {
    let word = kind.to_lowercase();
    if word == "endpoints" {
        return word;
    }
    let consonant_y = word.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    if let Some(stem) = consonant_y {
        return format!("{stem}ies");
    }
    let hisses = ["s", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(end));
    if hisses { format!("{word}es") } else { format!("{word}s") }
}

/// A Rust module name: `markdown_view` for `MarkdownView`, `http_route` for `HTTPRoute`.
pub(crate) fn module(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut text = String::new();
    for (at, &char) in chars.iter().enumerate() {
        if !char.is_ascii_alphanumeric() {
            text.push('_');
            continue;
        }
        let before = at.checked_sub(1).map(|before| chars[before]);
        let follows_word =
            before.is_some_and(|before| before.is_ascii_lowercase() || before.is_ascii_digit());
        let starts_word = before.is_some_and(|before| before.is_ascii_uppercase())
            && chars.get(at + 1).is_some_and(char::is_ascii_lowercase);
        if char.is_ascii_uppercase() && (follows_word || starts_word) {
            text.push('_');
        }
        text.push(char.to_ascii_lowercase());
    }
    // Keywords and leading digits are not valid names.
    if is_keyword(&text) {
        text.push('_');
    } else if text.starts_with(|first: char| first.is_ascii_digit()) {
        text.insert(0, '_');
    }
    text
}

/// A Rust type name: `OrderBackup` for `order-backup`.
pub(crate) fn type_name(name: &str) -> String {
    name.split(['-', '_', '.'])
        .map(|word| {
            let mut chars = word.chars();
            chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect::<String>()
        })
        .collect()
}

/// `a` or `an`, by the first letter.
pub(crate) fn article(word: &str) -> &'static str {
    if word.starts_with(['A', 'E', 'I', 'O']) { "an" } else { "a" }
}

fn is_label(text: &str) -> bool {
    dns1123_label(text).is_empty()
}

fn is_keyword(text: &str) -> bool {
    [
        "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
        "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
        "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self",
        "static", "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
        "virtual", "where", "while", "yield",
    ]
    .contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_match_the_built_in_kinds() {
        for (kind, expected) in [
            ("MarkdownView", "markdownviews"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("Ingress", "ingresses"),
            ("Mesh", "meshes"),
            ("Batch", "batches"),
            ("Box", "boxes"),
            ("Endpoints", "endpoints"),
        ] {
            assert_eq!(plural(kind), expected);
        }
    }

    #[test]
    fn modules_are_snake_case_and_not_keywords() {
        for (name, expected) in [
            ("MarkdownView", "markdown_view"),
            ("HTTPRoute", "http_route"),
            ("CronJob", "cron_job"),
            ("S3Bucket", "s3_bucket"),
            ("Match", "match_"),
            ("ship-yard", "ship_yard"),
            ("collector.ip", "collector_ip"),
            ("3scale", "_3scale"),
        ] {
            assert_eq!(module(name), expected);
        }
    }

    #[test]
    fn invalid_names_are_rejected() {
        assert!(check_domain("group", "Apps").is_err() && check_domain("group", "a..b").is_err());
        assert!(check_domain("group", "collector.ip").is_ok());
        assert!(["v1", "v1beta1", "v2alpha10"].iter().all(|name| check_version(name).is_ok()));
        assert!(
            ["1", "v", "vbeta1", "v1gamma1", "V1", "v1beta"].iter().all(|name| check_version(name).is_err())
        );
        assert!(["markdownView", "Markdown-View", "", "Self"].iter().all(|name| check_kind(name).is_err()));
        assert!(["kube", "type", "Shop", "1st"].iter().all(|name| check_project(name).is_err()));
        assert_eq!(
            check_kind("order").unwrap_err().to_string(),
            "the kind `order` must look like MarkdownView: an uppercase letter, then letters and digits"
        );
    }

    #[test]
    fn a_kind_that_shadows_an_import_gets_another_type_or_an_alias() {
        assert_eq!((struct_name("Order"), object_name("Order")), ("Order".to_owned(), "Order".to_owned()));
        assert_eq!(
            (struct_name("Client"), object_name("Client")),
            ("Client".to_owned(), "ClientObject".to_owned())
        );
        assert_eq!(struct_name("Option"), "OptionObject");
        assert_eq!(object_name("Option"), "OptionObject");
    }

    #[test]
    fn webhook_paths_are_validated_as_the_api_server_does() {
        assert!(["/mutate-order", "/a/b.c", "/1"].iter().all(|path| check_webhook_path(path).is_ok()));
        let wrong = ["mutate", "/", "/Mutate", "/a//b", "/a b", "/convert", "/a?b"];
        assert!(wrong.iter().all(|path| check_webhook_path(path).is_err()));
    }

    #[test]
    fn a_controller_name_becomes_a_type() {
        assert_eq!(type_name("order-backup"), "OrderBackup");
        assert_eq!(project_of("My_Operator"), "my-operator");
    }
}
