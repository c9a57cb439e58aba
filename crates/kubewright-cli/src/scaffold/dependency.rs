//! The kubewright dependency of a project.

use std::path::Path;

use serde_json::{Value, json};

/// The kubewright dependency of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dependency {
    Version(String),
    Git(String),
    /// A local checkout.
    Path(String),
}

impl Default for Dependency {
    fn default() -> Self {
        Self::Version(env!("CARGO_PKG_VERSION").to_owned())
    }
}

impl Dependency {
    /// The checkout that this binary was built from, if it still exists.
    pub(crate) fn of_this_build() -> Self {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let checkout =
            crates.and_then(Path::parent).filter(|root| root.join("crates/kubewright/Cargo.toml").is_file());
        checkout.map_or_else(Self::default, |root| Self::Path(root.display().to_string()))
    }

    /// Values for the templates.
    pub(super) fn values(&self) -> Value {
        let quoted = |text: &str| Value::from(text).to_string();
        let source = |name: &str| match self {
            Self::Version(version) => format!("version = {}", quoted(version)),
            Self::Git(url) => format!("git = {}", quoted(url)),
            Self::Path(root) => format!("path = {}", quoted(&format!("{root}/crates/{name}"))),
        };
        let (path, install) = match self {
            Self::Version(version) => (None, Some(format!("--version {version}"))),
            Self::Git(url) => (None, Some(format!("--git {url}"))),
            Self::Path(root) => (Some(root), None),
        };
        let kubewright = match self {
            Self::Version(version) => quoted(version),
            _ => format!("{{ {} }}", source("kubewright")),
        };
        // With `cluster`, Deployments create Pods in tests.
        let envtest = format!("{{ {}, features = [\"cluster\"] }}", source("kubewright-envtest"));
        json!({ "kubewright": kubewright, "envtest": envtest, "path": path, "install": install })
    }
}
