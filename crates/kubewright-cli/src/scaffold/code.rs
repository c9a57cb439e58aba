//! Rust snippets whose layout depends on name lengths, so that rustfmt has nothing to change.

use super::kinds::{Admission, Controller, Kind};

/// Formats a method chain as rustfmt does, on one line if short. `indent` is the statement's indentation.
fn chain(parts: &[&str], indent: usize) -> String {
    let line = parts.concat();
    // rustfmt's `chain_width`; a trailing `?` counts and reduces it by one.
    let width = if line.ends_with('?') { 59 } else { 60 };
    if line.len() <= width {
        return line;
    }
    // `Environment::builder()` and `manager` stay on the first line.
    parts.join(&format!("\n{}", " ".repeat(indent + 4)))
}

/// The expression that registers a controller with the manager.
pub(super) fn registration(controller: &Controller) -> String {
    let of = format!(".controller({})", controller.reconciler);
    let named = controller.named.as_ref().map(|name| format!(".named(\"{name}\")"));
    let parts = ["manager", &of].into_iter().chain(named.as_deref()).chain([".register()"]);
    chain(&parts.collect::<Vec<_>>(), 4)
}

/// The expression that starts a test environment with the CRDs of `kinds`.
pub(super) fn environment(kinds: &[String]) -> String {
    if kinds.is_empty() {
        return "Environment::start().await?".to_owned();
    }
    let crd = |kind: &String| {
        let line = format!(".crd::<{kind}>()");
        if line.len() + 8 <= 100 { line } else { format!(".crd::<{kind}>(\n        )") }
    };
    let crds: Vec<String> = kinds.iter().map(crd).collect();
    let parts = ["Environment::builder()"].into_iter().chain(crds.iter().map(String::as_str));
    chain(&parts.chain([".start()", ".await?"]).collect::<Vec<_>>(), 4)
}

/// The expression that reads an object in a test.
pub(super) fn get(kind: &Kind<'_>, indent: usize) -> String {
    chain(&["client", &format!(".get::<{}>(&key)", kind.object_name()), ".await?"], indent)
}

/// A function signature in an impl, wrapped as rustfmt does.
fn function(name: &str, parameters: &[&str], result: &str) -> String {
    let line = format!("async fn {name}({}) -> {result}", parameters.join(", "));
    // Plus indentation and brace.
    if line.len() + 6 <= 100 {
        return line;
    }
    format!("async fn {name}(\n        {},\n    ) -> {result}", parameters.join(",\n        "))
}

/// The signature of `reconcile`.
pub(super) fn signature(kind: &Kind<'_>) -> String {
    let reports = kind.own && kind.imported.as_ref().is_none_or(|imported| imported.has_conditions);
    let (object, cx) = (format!("object: &{}", kind.object_name()), if reports { "cx" } else { "_cx" });
    function("reconcile", &["&self", &object, &format!("{cx}: &Context")], "Result<Outcome>")
}

/// The signature of a webhook handler method.
pub(super) fn handler(kind: &Kind<'_>, webhook: &Admission) -> String {
    let (name, object, with) = if webhook.mutating {
        ("default", format!("_object: &mut {}", kind.object_name()), "_request: &AdmissionRequest")
    } else {
        ("validate_create", format!("_new: &{}", kind.object_name()), "_v: &mut Validation<'_>")
    };
    function(name, &["&self", &object, with], "Result<(), Rejection>")
}

/// The `#[webhook]` attribute with non-default arguments.
pub(super) fn attribute(kind: &Kind<'_>, webhook: &Admission) -> String {
    let mut arguments = Vec::new();
    if let Some(name) = &webhook.named {
        arguments.push(format!("name = \"{name}\""));
    }
    if webhook.is_path_custom {
        arguments.push(format!("path = \"{}\"", webhook.path));
    }
    if let Some(label) = &kind.selected {
        arguments.push(format!("object_selector = {{ matchLabels: {{ \"{label}\": \"enabled\" }} }}"));
    }
    let line = arguments.join(", ");
    match arguments.len() {
        0 => "#[webhook]".to_owned(),
        1 => format!("#[webhook({line})]"),
        // rustfmt's `attr_fn_like_width`.
        _ if line.len() <= 70 => format!("#[webhook({line})]"),
        _ => format!("#[webhook(\n    {}\n)]", arguments.join(",\n    ")),
    }
}

/// The expression for a kind's conversion with its hub and spokes.
pub(super) fn conversion(kind: &Kind<'_>) -> String {
    let name = kind.struct_name();
    let hub = format!("Conversion::hub::<{}::{name}>()", kind.resource.version);
    let spokes: Vec<String> =
        kind.spokes().iter().map(|spoke| format!(".spoke::<{spoke}::{name}>()")).collect();
    let parts = [hub.as_str()].into_iter().chain(spokes.iter().map(String::as_str));
    let parts: Vec<&str> = parts.collect();
    // rustfmt breaks a single call only if the line is too long.
    let line = parts.concat();
    if parts.len() == 2 && line.len() + 4 <= 100 { line } else { chain(&parts, 4) }
}

/// The round-trip statement of a conversion test.
pub(super) fn round_trip(object: &str, sample: &str) -> String {
    let line = format!("is_unchanged::<{object}>({sample})?;");
    if line.len() + 4 <= 100 {
        return line;
    }
    format!("is_unchanged::<{object}>(\n        {sample},\n    )?;")
}

/// The macro call that declares the CRD of a type.
pub(super) fn crds(of: &str) -> String {
    let line = format!("kubewright::crds!({of});");
    if line.len() <= 100 { line } else { format!("kubewright::crds!(\n    {of}\n);") }
}

/// The statement that registers a controller or webhook.
pub(super) fn register(module: &str, manager: &str) -> String {
    let line = format!("{module}::register({manager})?;");
    if line.len() + 4 <= 100 {
        return line;
    }
    format!("{module}::register(\n        {manager},\n    )?;")
}

/// A string constant.
pub(super) fn text_constant(name: &str, text: &str) -> String {
    let (name, text) = (format!("const {name}: &str ="), format!("\"{text}\";"));
    // rustfmt leaves a text in the first line if it is too long for the second one, too.
    if name.len() + 1 + text.len() <= 100 || text.len() + 4 > 100 {
        format!("{name} {text}")
    } else {
        format!("{name}\n    {text}")
    }
}

/// A constant with the content of a sample file.
pub(super) fn sample_text(name: &str, file: &str) -> String {
    let name = format!("const {name}: &str =");
    let path = format!("\"../../config/samples/{file}\"");
    let text = format!("include_str!({path});");
    if name.len() + 1 + text.len() <= 100 {
        format!("{name} {text}")
    } else if text.len() + 4 <= 100 {
        format!("{name}\n    {text}")
    } else {
        format!("{name} include_str!(\n    {path}\n);")
    }
}
