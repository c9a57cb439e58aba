//! Pieces of Rust whose form depends on how long names are: rustfmt has nothing to change in what is made.

use super::kinds::{Controller, Kind};

/// How rustfmt writes calls on calls: in one line, if that is short.
fn chain(parts: &[&str]) -> String {
    let line = parts.concat();
    if line.len() <= 60 { line } else { parts.join("\n        ") }
}

/// How a controller is given to the manager.
pub(super) fn registration(controller: &Controller) -> String {
    let of = format!(".controller({})", controller.reconciler);
    let named = controller.named.as_ref().map(|name| format!(".named(\"{name}\")"));
    let parts = ["manager", &of].into_iter().chain(named.as_deref()).chain([".register()"]);
    chain(&parts.collect::<Vec<_>>())
}

/// How a test starts its control plane.
pub(super) fn environment(kind: &Kind<'_>, versions: usize) -> String {
    let definitions = if versions > 1 {
        ".crds_from(\"config/crd/bases\")".to_owned()
    } else {
        format!(".crd::<{}>()", kind.resource.kind)
    };
    chain(&["Environment::builder()", &definitions, ".start()", ".await?"])
}

/// The head of a reconciler's function, in as many lines as rustfmt gives it.
pub(super) fn signature(kind: &Kind<'_>) -> String {
    let reports = kind.own && kind.imported.as_ref().is_none_or(|imported| imported.has_conditions);
    let (object, cx) = (format!("object: &{}", kind.resource.kind), if reports { "cx" } else { "_cx" });
    let line = format!("async fn reconcile(&self, {object}, {cx}: &Context) -> Result<Outcome>");
    // With its indentation and the brace.
    if line.len() + 6 <= 100 {
        return line;
    }
    format!(
        "async fn reconcile(\n        &self,\n        {object},\n        {cx}: &Context,\n    ) -> Result<Outcome>"
    )
}
