//! The kind of control plane, selected by the environment variables of Go's envtest.

use std::ffi::OsString;
use std::path::PathBuf;

/// The kind of control plane.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Mode {
    /// An API server in the test process.
    #[default]
    Embedded,
    /// `etcd` and `kube-apiserver` processes, from a directory.
    Assets(PathBuf),
    /// The cluster of the current kubeconfig context. Objects of a test stay there; webhooks are removed at the end.
    Existing,
}

/// An invalid environment variable.
#[derive(Debug, thiserror::Error)]
#[error("invalid {variable}={value:?}: must be true or false")]
pub struct ModeError {
    variable: &'static str,
    value: String,
}

impl Mode {
    /// Reads `USE_EXISTING_CLUSTER` and `KUBEBUILDER_ASSETS`; embedded if neither is set.
    pub fn from_env() -> Result<Self, ModeError> {
        Self::from_variables(std::env::var_os("USE_EXISTING_CLUSTER"), std::env::var_os("KUBEBUILDER_ASSETS"))
    }

    fn from_variables(existing: Option<OsString>, assets: Option<OsString>) -> Result<Self, ModeError> {
        let existing = existing.unwrap_or_default().to_string_lossy().into_owned();
        match existing.to_ascii_lowercase().as_str() {
            "true" | "1" | "t" => return Ok(Self::Existing),
            "" | "false" | "0" | "f" => {}
            _ => return Err(ModeError { variable: "USE_EXISTING_CLUSTER", value: existing }),
        }
        Ok(match assets.filter(|folder| !folder.is_empty()) {
            Some(folder) => Self::Assets(folder.into()),
            None => Self::Embedded,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_cluster_takes_precedence_over_binaries_and_those_over_the_embedded_server() {
        let mode = |existing: Option<&str>, assets: Option<&str>| {
            Mode::from_variables(existing.map(Into::into), assets.map(Into::into))
        };
        assert_eq!(mode(None, None).unwrap(), Mode::Embedded);
        assert_eq!(mode(Some("false"), Some("")).unwrap(), Mode::Embedded);
        assert_eq!(mode(None, Some("bin")).unwrap(), Mode::Assets("bin".into()));
        assert_eq!(mode(Some("TRUE"), Some("bin")).unwrap(), Mode::Existing);
        let error = mode(Some("yes please"), None).unwrap_err();
        assert_eq!(error.to_string(), "invalid USE_EXISTING_CLUSTER=\"yes please\": must be true or false");
    }
}
