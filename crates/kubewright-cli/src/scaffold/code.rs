//! Pieces of Rust whose form depends on how long names are: rustfmt has nothing to change in what is made.

use super::kinds::{Controller, Kind};

/// A method chain as rustfmt formats it: on one line if that is short. `indent` is that of the statement.
fn chain(parts: &[&str], indent: usize) -> String {
    let line = parts.concat();
    // rustfmt's `chain_width`; a final `?` takes part, and leaves less room.
    let width = if line.ends_with('?') { 59 } else { 60 };
    if line.len() <= width {
        return line;
    }
    // `Environment::builder()` and `manager` alone stay on the first line.
    parts.join(&format!("\n{}", " ".repeat(indent + 4)))
}

/// How a controller is given to the manager.
pub(super) fn registration(controller: &Controller) -> String {
    let of = format!(".controller({})", controller.reconciler);
    let named = controller.named.as_ref().map(|name| format!(".named(\"{name}\")"));
    let parts = ["manager", &of].into_iter().chain(named.as_deref()).chain([".register()"]);
    chain(&parts.collect::<Vec<_>>(), 4)
}

/// How a test starts its control plane, with the CRDs of the types `kinds`.
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

/// How a test reads an object, in a statement with this indentation.
pub(super) fn get(kind: &Kind<'_>, indent: usize) -> String {
    chain(&["client", &format!(".get::<{}>(&key)", kind.object_name()), ".await?"], indent)
}

/// The head of a reconciler's function, in as many lines as rustfmt gives it.
pub(super) fn signature(kind: &Kind<'_>) -> String {
    let reports = kind.own && kind.imported.as_ref().is_none_or(|imported| imported.has_conditions);
    let (object, cx) = (format!("object: &{}", kind.object_name()), if reports { "cx" } else { "_cx" });
    let line = format!("async fn reconcile(&self, {object}, {cx}: &Context) -> Result<Outcome>");
    // With its indentation and the brace.
    if line.len() + 6 <= 100 {
        return line;
    }
    format!(
        "async fn reconcile(\n        &self,\n        {object},\n        {cx}: &Context,\n    ) -> Result<Outcome>"
    )
}

/// A statement that registers a controller, in a function.
pub(super) fn register(module: &str, manager: &str) -> String {
    let line = format!("{module}::register({manager})?;");
    if line.len() + 4 <= 100 {
        return line;
    }
    format!("{module}::register(\n        {manager},\n    )?;")
}

/// The constant with the text of a sample.
pub(super) fn sample_text(file: &str) -> String {
    let name = "const SAMPLE: &str =";
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
