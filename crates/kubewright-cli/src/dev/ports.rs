//! The ports of the API server and the web UI. They stay the same between runs of a project, so that kubeconfigs and
//! browser tabs keep working.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::error::Hint as _;

/// Ports of 127.0.0.1; 0 stands for any free port.
#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) api: u16,
    pub(crate) page: u16,
    file: PathBuf,
}

impl Ports {
    /// The ports of the flags. Without a flag, the port of the last run if it is free. A taken port of a flag is an
    /// error, before anything has changed.
    pub(crate) fn choose(folder: &Path, api: Option<u16>, page: Option<u16>) -> Result<Self> {
        let file = folder.join("ports");
        let last = fs::read_to_string(&file).unwrap_or_default();
        let chosen = |flag: Option<u16>, name: &str| match flag {
            Some(port) => {
                bind(port).with_context(|| format!("cannot listen on 127.0.0.1:{port}"))?;
                Ok(port)
            }
            None => Ok(kept(&last, name).filter(|port| bind(*port).is_ok()).unwrap_or_default()),
        };
        let api = chosen(api, "api")
            .map_err(|error: anyhow::Error| error.context("failed to start the API server"))
            .hint("choose another --port, or use --port 0 for a free one")?;
        let page = chosen(page, "page")
            .map_err(|error: anyhow::Error| error.context("failed to start the web UI"))
            .hint("choose another --page-port, or use --page-port 0 for a free one")?;
        Ok(Self { api, page, file })
    }

    /// Records the opened ports for the next run. A port that was not opened keeps its last value.
    pub(crate) fn keep(&self, api: Option<u16>, page: Option<u16>) -> Result<()> {
        let last = fs::read_to_string(&self.file).unwrap_or_default();
        let mut text = String::new();
        for (name, opened) in [("api", api), ("page", page)] {
            if let Some(port) = opened.or_else(|| kept(&last, name)) {
                text.extend([name, " ", &port.to_string(), "\n"]);
            }
        }
        if text == last {
            return Ok(());
        }
        let folder = self.file.parent().unwrap_or(&self.file);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&self.file, text))
            .with_context(|| format!("cannot write {}", self.file.display()))
    }
}

fn bind(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

/// The port of the last run.
fn kept(text: &str, name: &str) -> Option<u16> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(key, _)| *key == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free() -> u16 {
        bind(0).unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn the_ports_of_the_last_run_are_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let choose = || Ports::choose(folder.path(), None, None).unwrap();
        assert_eq!((choose().api, choose().page), (0, 0));
        let (api, page) = (free(), free());
        choose().keep(Some(api), Some(page)).unwrap();
        assert_eq!((choose().api, choose().page), (api, page));
        // A run without a page keeps its port.
        choose().keep(Some(page), None).unwrap();
        assert_eq!((choose().api, choose().page), (page, page));
    }

    #[test]
    fn a_taken_port_of_the_last_run_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let taken = bind(0).unwrap();
        let port = taken.local_addr().unwrap().port();
        Ports::choose(folder.path(), None, None).unwrap().keep(Some(port), None).unwrap();
        assert_eq!(Ports::choose(folder.path(), None, None).unwrap().api, 0);
    }

    #[test]
    fn a_taken_port_of_a_flag_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let taken = bind(0).unwrap();
        let port = taken.local_addr().unwrap().port();
        for (api, page, what) in [(Some(port), None, "API server"), (None, Some(port), "web UI")] {
            let error = Ports::choose(folder.path(), api, page).unwrap_err();
            assert_eq!(error.to_string(), format!("failed to start the {what}"));
            assert_eq!(
                error.chain().nth(1).unwrap().to_string(),
                format!("cannot listen on 127.0.0.1:{port}")
            );
        }
        assert_eq!(Ports::choose(folder.path(), Some(0), Some(0)).unwrap().api, 0);
    }

    #[test]
    fn a_damaged_file_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ports"), "api x\npage 70000\n\u{0}").unwrap();
        let ports = Ports::choose(folder.path(), None, None).unwrap();
        assert_eq!((ports.api, ports.page), (0, 0));
    }
}
