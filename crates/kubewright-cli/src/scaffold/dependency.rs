//! Where a project has kubewright from.

use std::path::Path;

use serde_json::{Value, json};

/// Where a project has kubewright from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dependency {
    Version(String),
    Git(String),
    /// A checkout.
    Path(String),
}

impl Default for Dependency {
    fn default() -> Self {
        Self::Version(env!("CARGO_PKG_VERSION").to_owned())
    }
}

impl Dependency {
    /// The checkout that this program was built from, while it is there.
    pub(crate) fn of_this_build() -> Self {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let checkout =
            crates.and_then(Path::parent).filter(|root| root.join("crates/kubewright/Cargo.toml").is_file());
        checkout.map_or_else(Self::default, |root| Self::Path(root.display().to_string()))
    }

    /// What templates fill in.
    pub(super) fn values(&self) -> Value {
        let crates = |of: &dyn Fn(&str) -> String| (of("kubewright"), of("kubewright-envtest"));
        let quoted = |text: &str| Value::from(text).to_string();
        let ((kubewright, envtest), path, install) = match self {
            Self::Version(version) => {
                (crates(&|_| quoted(version)), None, Some(format!("--version {version}")))
            }
            Self::Git(url) => {
                (crates(&|_| format!("{{ git = {} }}", quoted(url))), None, Some(format!("--git {url}")))
            }
            Self::Path(root) => {
                let of = |name: &str| format!("{{ path = {} }}", quoted(&format!("{root}/crates/{name}")));
                (crates(&of), Some(root), None)
            }
        };
        json!({ "kubewright": kubewright, "envtest": envtest, "path": path, "install": install })
    }
}
