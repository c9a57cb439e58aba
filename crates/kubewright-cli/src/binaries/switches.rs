//! `--feature-gates` and `--runtime-config`: validated as kube-apiserver does, and compared with what is
//! served.
//!
//! Neither has an effect: the gates and API versions are the Kubernetes v1.36 defaults. Values that
//! kube-apiserver rejects are errors; values that differ from the defaults cause a warning.

use anyhow::{Context as _, Result, bail};
use kubewright_apis::facts;

use super::flags::Given;
use crate::error::Hint as _;

/// Validates the gates. Returns a warning if any are set.
pub(super) fn feature_gates(given: &Given) -> Result<Option<String>> {
    let mut names = Vec::new();
    for gate in given.list("feature-gates") {
        let Some((name, value)) = gate.split_once('=') else {
            return Err(anyhow::anyhow!("missing bool value for {gate}"))
                .context("invalid --feature-gates")
                .hint("use NAME=true or NAME=false");
        };
        boolean(value).with_context(|| format!("invalid value {name}={value}"))?;
        names.push(name.trim());
    }
    Ok((!names.is_empty()).then(|| {
        format!(
            "feature gates keep the Kubernetes v1.36 defaults: --feature-gates={} has no effect",
            names.join(",")
        )
    }))
}

/// Validates API groups, versions and resources to enable or disable. Returns a warning if one differs from
/// what is served.
pub(super) fn runtime_config(given: &Given) -> Result<Option<String>> {
    let mut unavailable = Vec::new();
    for entry in given.list("runtime-config") {
        // A key without a value means true.
        let (key, value) = entry.split_once('=').unwrap_or((entry, "true"));
        let on = boolean(value).with_context(|| format!("invalid value --runtime-config={key}={value}"))?;
        let as_asked = match key {
            "api/ga" => on,
            "api/beta" | "api/alpha" => !on,
            // Not supported in either direction.
            "api/all" => false,
            "api/legacy" => bail!("--runtime-config api/legacy is not supported by Kubernetes v1.36"),
            _ => is_served(key) == on,
        };
        if !as_asked {
            unavailable.push(format!("{key}={on}"));
        }
    }
    Ok((!unavailable.is_empty()).then(|| {
        format!(
            "only the default API versions are served: --runtime-config={} has no effect",
            unavailable.join(",")
        )
    }))
}

/// Whether `group/version` or `group/version/resource` is served. The core group has no name: `v1`.
fn is_served(key: &str) -> bool {
    facts::resources().iter().any(|resource| {
        let api_version = match resource.group {
            "" => resource.version.to_owned(),
            group => format!("{group}/{}", resource.version),
        };
        let rest = key.strip_prefix(&api_version);
        rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('/') == Some(resource.plural))
    })
}

/// Parses a boolean as Go's strconv does.
fn boolean(text: &str) -> Result<bool> {
    match text.trim() {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => bail!("strconv.ParseBool: parsing {other:?}: invalid syntax"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::flags::{Asked, Program};
    use super::*;

    const PROGRAM: Program = Program { name: "server", about: "", flags: &[] };

    fn given(line: &str) -> Given {
        let args: Vec<_> = line.split_whitespace().map(std::ffi::OsString::from).collect();
        match PROGRAM.parse(&args) {
            Ok(Asked::Run(given)) => given,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn gates_are_checked_and_reported() {
        let read = |line: &str| feature_gates(&given(line)).map_err(|error| format!("{error:#}"));
        assert_eq!(read("--v=1"), Ok(None));
        let warned = read("--feature-gates=AllAlpha=false,A=true --feature-gates B=1").unwrap().unwrap();
        assert!(warned.contains("--feature-gates=AllAlpha,A,B has no effect"), "{warned}");
        assert!(read("--feature-gates=A").unwrap_err().contains("missing bool value for A"));
        assert!(read("--feature-gates=A=maybe").unwrap_err().contains("invalid value A=maybe"));
    }

    #[test]
    fn versions_that_match_the_defaults_cause_no_warning() {
        let read = |line: &str| runtime_config(&given(line)).map_err(|error| format!("{error:#}"));
        for line in ["--runtime-config=api/ga=true", "--runtime-config=v1,apps/v1=true,batch/v1/jobs=true"] {
            assert_eq!(read(line), Ok(None), "{line}");
        }
        assert_eq!(read("--runtime-config=example.com/v1=false --runtime-config api/alpha=false"), Ok(None));
        for entry in ["apps/v1=false", "example.com/v1=true", "api/all=true", "batch/v1/jobs=false"] {
            let warned = read(&format!("--runtime-config={entry}")).unwrap().unwrap();
            assert!(warned.contains(entry), "{warned}");
        }
        assert!(read("--runtime-config=apps/v1=x").unwrap_err().contains("invalid syntax"));
    }
}
