//! The address by which the nodes of kind reach this machine.
//!
//! kind runs its nodes as containers of Docker, Podman or nerdctl. On Linux, the gateway of their network is this machine.
//! Docker Desktop and rootless Podman run containers in a virtual machine or network namespace of their own, and resolve a
//! name for the machine instead.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

/// The host by which a kind cluster reaches this machine; `None` if no container engine answers.
pub(super) fn kind_host() -> Option<String> {
    Engines { variable: |name: &str| std::env::var_os(name) }.kind_host()
}

/// The engines of this machine, as kind chooses them.
struct Engines<V> {
    /// Reads an environment variable.
    variable: V,
}

impl<V: Fn(&str) -> Option<OsString>> Engines<V> {
    fn kind_host(&self) -> Option<String> {
        match self.text("KIND_EXPERIMENTAL_PROVIDER").as_deref() {
            Some("podman") => self.podman(),
            Some("nerdctl") => self.docker("nerdctl"),
            Some(_) => self.docker("docker"),
            None => self.docker("docker").or_else(|| self.docker("nerdctl")).or_else(|| self.podman()),
        }
    }

    fn docker(&self, program: &str) -> Option<String> {
        let network = self.network("KIND_EXPERIMENTAL_DOCKER_NETWORK");
        let format = "{{range .IPAM.Config}}{{.Gateway}} {{end}}";
        let gateway = self.run(program, &["network", "inspect", &network, "--format", format])?;
        let system = self.run(program, &["info", "--format", "{{.OperatingSystem}}"]).unwrap_or_default();
        if system.contains("Docker Desktop") {
            Some("host.docker.internal".to_owned())
        } else {
            address(&gateway)
        }
    }

    fn podman(&self) -> Option<String> {
        let network = self.network("KIND_EXPERIMENTAL_PODMAN_NETWORK");
        let format = "{{range .Subnets}}{{.Gateway}} {{end}}";
        let gateway = self.run("podman", &["network", "inspect", &network, "--format", format])?;
        let security = self
            .run("podman", &["info", "--format", "{{.Host.Security.Rootless}} {{.Host.ServiceIsRemote}}"]);
        // Rootless, or in a virtual machine.
        if security.is_some_and(|security| security.contains("true")) {
            Some("host.containers.internal".to_owned())
        } else {
            address(&gateway)
        }
    }

    fn network(&self, variable: &str) -> String {
        self.text(variable).unwrap_or_else(|| "kind".to_owned())
    }

    fn text(&self, variable: &str) -> Option<String> {
        let text = (self.variable)(variable)?.into_string().ok()?;
        (!text.is_empty()).then_some(text)
    }

    /// The output of a program; `None` if it fails or does not exist.
    fn run(&self, program: &str, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new(program);
        if let Some(path) = (self.variable)("PATH") {
            command.env("PATH", path);
        }
        let output = command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The first IPv4 address.
fn address(gateways: &str) -> Option<String> {
    gateways.split_whitespace().find(|gateway| gateway.parse::<Ipv4Addr>().is_ok()).map(str::to_owned)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use tempfile::TempDir;

    use super::*;

    /// A folder with fake programs, each with the body of a shell script.
    fn programs(scripts: &[(&str, &str)]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, body) in scripts {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    fn host(folder: &TempDir, variables: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            if name == "PATH" {
                return Some(folder.path().as_os_str().to_owned());
            }
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        Engines { variable }.kind_host()
    }

    /// Answers for the network in `$1`, and for `info`.
    fn engine(network: &str, gateways: &str, info: &str) -> String {
        format!(
            "if [ \"$1\" = info ]; then echo '{info}'; exit 0; fi\n\
             if [ \"$3\" = {network} ]; then echo '{gateways}'; exit 0; fi\nexit 1"
        )
    }

    #[test]
    fn the_gateway_of_the_kind_network_is_this_machine() {
        let docker = engine("kind", "fc00:f853:ccd:e793::1 172.18.0.1 ", "Ubuntu 24.04 LTS");
        let folder = programs(&[("docker", &docker)]);
        assert_eq!(host(&folder, &[]).as_deref(), Some("172.18.0.1"));
        let other = [("KIND_EXPERIMENTAL_DOCKER_NETWORK", "lab")];
        assert_eq!(host(&folder, &other), None, "the network does not exist");
        let lab = programs(&[("docker", &engine("lab", "10.9.0.1", "Ubuntu"))]);
        assert_eq!(host(&lab, &other).as_deref(), Some("10.9.0.1"));
    }

    #[test]
    fn docker_desktop_resolves_a_name_for_this_machine() {
        let folder = programs(&[("docker", &engine("kind", "172.18.0.1", "Docker Desktop"))]);
        assert_eq!(host(&folder, &[]).as_deref(), Some("host.docker.internal"));
    }

    #[test]
    fn podman_is_used_if_kind_uses_it() {
        let podman = engine("kind", "10.89.0.1", "false false");
        let docker = engine("kind", "172.18.0.1", "Ubuntu");
        let both = programs(&[("docker", &docker), ("podman", &podman)]);
        assert_eq!(host(&both, &[]).as_deref(), Some("172.18.0.1"));
        let provider = [("KIND_EXPERIMENTAL_PROVIDER", "podman")];
        assert_eq!(host(&both, &provider).as_deref(), Some("10.89.0.1"));
        let alone = programs(&[("podman", &podman)]);
        assert_eq!(host(&alone, &[]).as_deref(), Some("10.89.0.1"));
        let rootless = programs(&[("podman", &engine("kind", "10.89.0.1", "true false"))]);
        assert_eq!(host(&rootless, &[]).as_deref(), Some("host.containers.internal"));
    }

    #[test]
    fn without_a_container_engine_there_is_no_host() {
        assert_eq!(host(&programs(&[]), &[]), None);
    }
}
