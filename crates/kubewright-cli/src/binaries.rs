//! Stand-ins for the programs that Go's envtest starts.
//!
//! Called as `kube-apiserver` or `etcd`, kubewright supports the flags, files and health checks that envtest
//! relies on, so a directory with two symlinks to it can be `KUBEBUILDER_ASSETS`. Unknown flags are ignored
//! with one warning, because tests pass flags of the real programs.

mod audit_log;
mod etcd;
mod flags;
mod kube_apiserver;
mod switches;

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;

use crate::ui::Ui;

/// A program that kubewright replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    KubeApiserver,
    Etcd,
}

impl Binary {
    pub(crate) const ALL: [Self; 2] = [Self::KubeApiserver, Self::Etcd];

    /// File name of the program.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KubeApiserver => "kube-apiserver",
            Self::Etcd => "etcd",
        }
    }

    /// Returns the program for an `argv[0]`, or `None` for kubewright itself.
    pub(crate) fn called(program: Option<&OsString>) -> Option<Self> {
        let name = Path::new(program?).file_name()?;
        Self::ALL.into_iter().find(|binary| name == binary.name())
    }

    /// Runs the program with its arguments (without `argv[0]`).
    pub(crate) fn run(self, args: &[OsString], ui: &Ui) -> Result<()> {
        match self {
            Self::KubeApiserver => kube_apiserver::run(args, ui),
            Self::Etcd => etcd::run(args, ui),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_name_selects_the_program() {
        let called = |program: &str| Binary::called(Some(&program.into()));
        assert_eq!(called("/opt/bin/kube-apiserver"), Some(Binary::KubeApiserver));
        assert_eq!(called("etcd"), Some(Binary::Etcd));
        assert_eq!(called("target/debug/kubewright"), None);
        assert_eq!(called("etcd/kubewright"), None);
        assert_eq!(Binary::called(None), None);
    }
}
