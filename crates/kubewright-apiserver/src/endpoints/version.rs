//! The Kubernetes version that a server reports.
//!
//! It affects `/version` and the OpenAPI documents and nothing else: kinds, fields and rules are always those
//! of [`KubernetesVersion::default`].

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

/// The first minor version that reports its emulation version.
const EMULATION_SINCE: u16 = 33;

/// A version of Kubernetes, such as v1.36.4.
///
/// ```
/// use kubewright_apiserver::KubernetesVersion;
///
/// let version: KubernetesVersion = "1.34".parse()?;
/// assert_eq!(version.to_string(), "v1.34.0");
/// assert_eq!(KubernetesVersion::default().to_string(), "v1.36.4");
/// # Ok::<(), kubewright_apiserver::VersionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    minor: u16,
    patch: u16,
}

impl KubernetesVersion {
    /// The version that the server implements.
    const OWN: Self = Self { minor: 36, patch: 4 };

    /// The response of `/version`. Commit and date are known only for the implemented version; for others
    /// they have the values of a build without version information.
    pub(crate) fn info(self) -> Value {
        let (minor, own) = (self.minor.to_string(), self == Self::OWN);
        let mut info = json!({
            "major": "1",
            "minor": minor,
            "gitVersion": self.to_string(),
            "gitCommit": if own { "bb826b1d48562f110659e64e8ec444327433db95" } else { "" },
            "gitTreeState": if own { "clean" } else { "" },
            "buildDate": if own { "2026-08-20T03:06:27Z" } else { "1970-01-01T00:00:00Z" },
            "goVersion": "go1.26.5",
            "compiler": "gc",
            "platform": "linux/amd64",
        });
        if self.minor >= EMULATION_SINCE {
            info["emulationMajor"] = "1".into();
            info["emulationMinor"] = minor.into();
            info["minCompatibilityMajor"] = "1".into();
            info["minCompatibilityMinor"] = (self.minor - 1).to_string().into();
        }
        info
    }
}

impl Default for KubernetesVersion {
    fn default() -> Self {
        Self::OWN
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v1.{}.{}", self.minor, self.patch)
    }
}

/// The text is not a Kubernetes version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a Kubernetes version; use a version such as 1.34 or v1.34.2")]
pub struct VersionError(String);

impl FromStr for KubernetesVersion {
    type Err = VersionError;

    /// Parses `1.34`, `v1.34` or `v1.34.2`; the patch version defaults to 0.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let parts: Vec<&str> = text.strip_prefix('v').unwrap_or(text).split('.').collect();
        let parsed = match parts[..] {
            ["1", minor] => number(minor).map(|minor| Self { minor, patch: 0 }),
            ["1", minor, patch] => {
                number(minor).zip(number(patch)).map(|(minor, patch)| Self { minor, patch })
            }
            _ => None,
        };
        parsed.ok_or_else(|| VersionError(text.to_owned()))
    }
}

/// A version number: up to three digits, without leading zeros.
fn number(text: &str) -> Option<u16> {
    let digits = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = text == "0" || !text.starts_with('0');
    (digits && plain).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_with_and_without_prefix_and_patch() {
        for (text, version) in [("1.34", "v1.34.0"), ("v1.30", "v1.30.0"), ("1.36.4", "v1.36.4")] {
            assert_eq!(text.parse::<KubernetesVersion>().unwrap().to_string(), version);
        }
    }

    #[test]
    fn an_invalid_version_is_rejected_with_an_example() {
        for text in ["", "1", "v1", "2.0", "1.x", "1.34.", "1.+4", "1.034", "1.34.2-rc.1", " 1.34", "1.4000"]
        {
            let error = text.parse::<KubernetesVersion>().unwrap_err();
            assert!(error.to_string().ends_with("use a version such as 1.34 or v1.34.2"), "{error}");
        }
    }

    #[test]
    fn only_versions_with_emulation_report_it() {
        let info = |text: &str| text.parse::<KubernetesVersion>().unwrap().info();
        assert_eq!(info("1.33")["minCompatibilityMinor"], "32");
        assert_eq!(info("1.32").get("emulationMinor"), None);
        assert_eq!(info("1.32")["gitVersion"], "v1.32.0");
    }
}
