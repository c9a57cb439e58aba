//! `kubewright version`: prints the kubewright version and the embedded Kubernetes version.
//!
//! `kubewright --version` prints the same first line.

use std::env;

use anyhow::Result;
use serde::Serialize;

use crate::cli::examples::examples;
use crate::output::Format;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Print the version", "kubewright version"),
    ("Print only the version number", "kubewright version --short"),
    ("Print build information as JSON", "kubewright version -o json"),
];

/// Print the kubewright version and the embedded Kubernetes API version
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Print only the version number
    #[arg(long, conflicts_with = "output")]
    short: bool,

    /// Output format
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let build = Build::this();
    let text = match args.output {
        Some(format) => format.render(&build)?,
        None if args.short => format!("{}\n", build.version),
        None => build.describe(ui.is_verbose()),
    };
    ui.print(text.as_bytes())
}

/// The text after the name in `kubewright --version`: the version and, if known, the commit.
pub(crate) fn line() -> String {
    Build::this().line()
}

/// Build information with the field names of Kubernetes' `version.Info`, sorted by name.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Build {
    #[serde(skip_serializing_if = "Option::is_none")]
    git_commit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_commit_date: Option<&'static str>,
    kubernetes_version: &'static str,
    platform: String,
    version: &'static str,
}

impl Build {
    /// Release builds pass the commit in two variables. A build script that calls git would relink the binary
    /// after every commit, and could report the commit of an enclosing repository.
    fn this() -> Self {
        Self {
            git_commit: option_env!("KUBEWRIGHT_GIT_COMMIT"),
            git_commit_date: option_env!("KUBEWRIGHT_GIT_COMMIT_DATE"),
            kubernetes_version: "v1.36",
            platform: platform(env::consts::OS, env::consts::ARCH),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// Cargo's format: `0.1.0 (0123456789 2026-01-31)`.
    fn line(&self) -> String {
        let commit = self.git_commit.map(|commit| commit.get(..9).unwrap_or(commit));
        let known: Vec<&str> = commit.into_iter().chain(self.git_commit_date).collect();
        if known.is_empty() {
            self.version.to_owned()
        } else {
            format!("{} ({})", self.version, known.join(" "))
        }
    }

    fn describe(&self, verbose: bool) -> String {
        let (line, kubernetes, platform) = (self.line(), self.kubernetes_version, &self.platform);
        let commit = self.git_commit.unwrap_or("unknown");
        let details =
            if verbose { format!("Platform: {platform}\nCommit: {commit}\n") } else { String::new() };
        format!("kubewright {line}\nKubernetes API: {kubernetes}\n{details}")
    }
}

/// The platform in Go's notation, as container images use it: `linux/amd64`.
fn platform(os: &str, arch: &str) -> String {
    let os = if os == "macos" { "darwin" } else { os };
    let arch = match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        arch => arch,
    };
    format!("{os}/{arch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(git_commit: Option<&'static str>, git_commit_date: Option<&'static str>) -> Build {
        let platform = platform("macos", "aarch64");
        Build { git_commit, git_commit_date, kubernetes_version: "v1.36", platform, version: "1.2.3" }
    }

    #[test]
    fn the_line_contains_the_commit_and_its_date_if_known() {
        let commit = Some("0123456789abcdef0123456789abcdef01234567");
        assert_eq!(build(commit, Some("2026-01-31")).line(), "1.2.3 (012345678 2026-01-31)");
        assert_eq!(build(commit, None).line(), "1.2.3 (012345678)");
        assert_eq!(build(Some("0123"), None).line(), "1.2.3 (0123)");
        assert_eq!(build(None, None).line(), "1.2.3");
    }

    #[test]
    fn the_verbose_output_has_the_full_commit_and_the_platform() {
        insta::assert_snapshot!(build(Some("0123456789abcdef"), Some("2026-01-31")).describe(true), @"
        kubewright 1.2.3 (012345678 2026-01-31)
        Kubernetes API: v1.36
        Platform: darwin/arm64
        Commit: 0123456789abcdef
        ");
    }

    #[test]
    fn unknown_fields_are_omitted() {
        insta::assert_snapshot!(Format::Json.render(&build(None, None)).unwrap(), @r#"
        {
          "kubernetesVersion": "v1.36",
          "platform": "darwin/arm64",
          "version": "1.2.3"
        }
        "#);
        insta::assert_snapshot!(Format::Yaml.render(&build(Some("0123456"), Some("2026-01-31"))).unwrap(), @r#"
        gitCommit: "0123456"
        gitCommitDate: "2026-01-31"
        kubernetesVersion: "v1.36"
        platform: "darwin/arm64"
        version: "1.2.3"
        "#);
    }
}
