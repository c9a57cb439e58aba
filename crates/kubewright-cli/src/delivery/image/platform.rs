//! Platforms of an image, and the Rust targets that build for them.

use std::fmt;
use std::str::FromStr;

use elf::abi;

/// C library of the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Libc {
    /// Static binary; needs the musl target of Rust
    #[default]
    Musl,
    /// Dynamic binary with a copy of this machine's glibc; for this machine's platform only
    Glibc,
}

/// An operating system and CPU architecture, in Go's notation: `linux/arm64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Platform(&'static Row);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    architecture: &'static str,
    variant: Option<&'static str>,
    /// The architecture in the words of Rust.
    rust: &'static str,
    /// The machine in ELF headers.
    machine: u16,
    musl: &'static str,
    glibc: &'static str,
    /// The Debian directory of shared libraries.
    multiarch: &'static str,
}

/// Platforms for which rustup offers musl targets.
const ROWS: &[Row] = &[
    Row {
        architecture: "amd64",
        variant: None,
        rust: "x86_64",
        machine: abi::EM_X86_64,
        musl: "x86_64-unknown-linux-musl",
        glibc: "x86_64-unknown-linux-gnu",
        multiarch: "x86_64-linux-gnu",
    },
    Row {
        architecture: "arm64",
        variant: None,
        rust: "aarch64",
        machine: abi::EM_AARCH64,
        musl: "aarch64-unknown-linux-musl",
        glibc: "aarch64-unknown-linux-gnu",
        multiarch: "aarch64-linux-gnu",
    },
    Row {
        architecture: "arm",
        variant: Some("v7"),
        rust: "arm",
        machine: abi::EM_ARM,
        musl: "armv7-unknown-linux-musleabihf",
        glibc: "armv7-unknown-linux-gnueabihf",
        multiarch: "arm-linux-gnueabihf",
    },
    Row {
        architecture: "ppc64le",
        variant: None,
        rust: "powerpc64",
        machine: abi::EM_PPC64,
        musl: "powerpc64le-unknown-linux-musl",
        glibc: "powerpc64le-unknown-linux-gnu",
        multiarch: "powerpc64le-linux-gnu",
    },
    Row {
        architecture: "riscv64",
        variant: None,
        rust: "riscv64",
        machine: abi::EM_RISCV,
        musl: "riscv64gc-unknown-linux-musl",
        glibc: "riscv64gc-unknown-linux-gnu",
        multiarch: "riscv64-linux-gnu",
    },
];

impl Platform {
    /// Linux on the architecture of this machine; containers run Linux on every host.
    pub(crate) fn host() -> Option<Self> {
        ROWS.iter().find(|row| row.rust == std::env::consts::ARCH).map(Self)
    }

    /// The platform of an ELF machine.
    pub(crate) fn of_machine(machine: u16) -> Option<Self> {
        ROWS.iter().find(|row| row.machine == machine).map(Self)
    }

    pub(crate) fn architecture(self) -> &'static str {
        self.0.architecture
    }

    pub(crate) fn variant(self) -> Option<&'static str> {
        self.0.variant
    }

    pub(crate) fn machine(self) -> u16 {
        self.0.machine
    }

    pub(crate) fn multiarch(self) -> &'static str {
        self.0.multiarch
    }

    /// The Rust target.
    pub(crate) fn target(self, libc: Libc) -> &'static str {
        match libc {
            Libc::Musl => self.0.musl,
            Libc::Glibc => self.0.glibc,
        }
    }

    /// All platforms, for messages.
    fn all() -> String {
        ROWS.iter().map(|row| Self(row).to_string()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "linux/{}", self.0.architecture)?;
        self.0.variant.map_or(Ok(()), |variant| write!(f, "/{variant}"))
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Docker accepts both names of the only variants in use.
        let name = match text {
            "linux/arm" => "linux/arm/v7",
            "linux/arm64/v8" => "linux/arm64",
            name => name,
        };
        let found = ROWS.iter().map(Self).find(|platform| platform.to_string() == name);
        found.ok_or_else(|| format!("unknown platform: supported are {}", Self::all()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_have_the_names_of_docker() {
        let parsed = |text: &str| text.parse::<Platform>().map(|platform| platform.to_string());
        assert_eq!(parsed("linux/amd64").as_deref(), Ok("linux/amd64"));
        assert_eq!(parsed("linux/arm64/v8").as_deref(), Ok("linux/arm64"));
        assert_eq!(parsed("linux/arm").as_deref(), Ok("linux/arm/v7"));
        assert_eq!(
            parsed("windows/amd64").unwrap_err(),
            "unknown platform: supported are linux/amd64, linux/arm64, linux/arm/v7, linux/ppc64le, linux/riscv64"
        );
    }

    #[test]
    fn each_platform_has_a_musl_target_and_a_machine() {
        let arm: Platform = "linux/arm64".parse().unwrap();
        assert_eq!(arm.target(Libc::Musl), "aarch64-unknown-linux-musl");
        assert_eq!(Platform::of_machine(arm.machine()), Some(arm));
    }
}
