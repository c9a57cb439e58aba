//! Loads archives into local clusters with their own tools.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow};

use crate::error::Hint as _;
use crate::ui::Ui;

/// Where an archive is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Cluster {
    /// All nodes of a kind cluster
    Kind,
    /// All nodes of a minikube profile
    Minikube,
    /// All nodes of a k3d cluster
    K3d,
    /// The containerd of this machine, in the namespace of Kubernetes
    Containerd,
}

impl Cluster {
    /// The tool and its arguments.
    fn command(self, archive: &Path, name: Option<&str>) -> (&'static str, Vec<OsString>) {
        let file = archive.as_os_str().to_owned();
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let named = |flag: &str| name.map(|name| words(&[flag, name])).unwrap_or_default();
        match self {
            Self::Kind => ("kind", [words(&["load", "image-archive"]), vec![file], named("--name")].concat()),
            Self::Minikube => {
                ("minikube", [words(&["image", "load"]), vec![file], named("--profile")].concat())
            }
            Self::K3d => ("k3d", [words(&["image", "import"]), vec![file], named("--cluster")].concat()),
            Self::Containerd => {
                let namespace = name.unwrap_or("k8s.io");
                ("ctr", [words(&["--namespace", namespace, "images", "import"]), vec![file]].concat())
            }
        }
    }

    fn install_advice(self) -> &'static str {
        match self {
            Self::Kind => "install kind",
            Self::Minikube => "install minikube",
            Self::K3d => "install k3d",
            Self::Containerd => "install containerd, which has ctr",
        }
    }

    /// Loads an archive. The tool's output goes to the user.
    pub(crate) fn load(self, archive: &Path, name: Option<&str>, ui: &Ui) -> Result<()> {
        let archive = std::path::absolute(archive).context("cannot find the archive")?;
        let (program, arguments) = self.command(&archive, name);
        let line: Vec<String> = std::iter::once(program.to_owned())
            .chain(arguments.iter().map(|word| word.to_string_lossy().into_owned()))
            .collect();
        let line = line.join(" ");
        ui.note(&format!("running `{line}`"));
        let mut command = Command::new(program);
        command.args(&arguments).stdin(Stdio::null());
        if ui.is_quiet() {
            command.stdout(Stdio::null());
        } else {
            // Standard output has only our result.
            command.stdout(std::io::stderr());
        }
        let shown = archive.display();
        let status = command.status().map_err(|error| {
            let is_missing = error.kind() == ErrorKind::NotFound;
            let error = anyhow!(error).context(format!("cannot start {program}; the archive is {shown}"));
            if is_missing {
                error.hint(format!(
                    "{}, or copy the archive to the node and run `{line}` there",
                    self.install_advice()
                ))
            } else {
                error
            }
        })?;
        if !status.success() {
            let advice = match self {
                Self::Containerd => "ctr needs root: run the command with sudo",
                _ => "check that the cluster runs; --name selects another one",
            };
            return Err(anyhow!("`{line}` failed ({status}); the archive is {shown}")).hint(advice);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_gets_its_own_arguments() {
        let line = |cluster: Cluster, name: Option<&str>| {
            let (program, arguments) = cluster.command(Path::new("/a/image.tar"), name);
            let words: Vec<String> =
                arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            format!("{program} {}", words.join(" "))
        };
        assert_eq!(line(Cluster::Kind, None), "kind load image-archive /a/image.tar");
        assert_eq!(line(Cluster::Kind, Some("dev")), "kind load image-archive /a/image.tar --name dev");
        assert_eq!(line(Cluster::Minikube, Some("dev")), "minikube image load /a/image.tar --profile dev");
        assert_eq!(line(Cluster::K3d, Some("dev")), "k3d image import /a/image.tar --cluster dev");
        assert_eq!(line(Cluster::Containerd, None), "ctr --namespace k8s.io images import /a/image.tar");
    }
}
