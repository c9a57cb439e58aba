//! The programs that Go's envtest starts, played by this one.
//!
//! Called `kube-apiserver` or `etcd`, kubewright follows the flags, files and health checks that envtest counts on,
//! so that a folder with two links to it can be `KUBEBUILDER_ASSETS`. Flags that are not known change nothing and
//! are told of in one line, since people pass what their tests want of the real programs.

mod etcd;
mod flags;
mod kube_apiserver;
mod switches;

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;

use crate::ui::Ui;

/// A program that can be played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    KubeApiserver,
    Etcd,
}

impl Binary {
    pub(crate) const ALL: [Self; 2] = [Self::KubeApiserver, Self::Etcd];

    /// The name of its file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KubeApiserver => "kube-apiserver",
            Self::Etcd => "etcd",
        }
    }

    /// The program that is meant when this one is called so; none is kubewright itself.
    pub(crate) fn called(program: Option<&OsString>) -> Option<Self> {
        let name = Path::new(program?).file_name()?;
        Self::ALL.into_iter().find(|binary| name == binary.name())
    }

    /// Runs it to its end, with the arguments behind its name.
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
    fn the_last_part_of_the_path_says_which_program_is_meant() {
        let called = |program: &str| Binary::called(Some(&program.into()));
        assert_eq!(called("/opt/bin/kube-apiserver"), Some(Binary::KubeApiserver));
        assert_eq!(called("etcd"), Some(Binary::Etcd));
        assert_eq!(called("target/debug/kubewright"), None);
        assert_eq!(called("etcd/kubewright"), None);
        assert_eq!(Binary::called(None), None);
    }
}
