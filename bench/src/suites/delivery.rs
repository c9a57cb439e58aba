//! Delivering an operator: duration and size of images.
//!
//! `kubewright image build` in a scaffolded project, in wall time. The first build compiles every dependency
//! in release mode, which takes minutes, and is done once per run. Pushes go to Debian's docker-registry on
//! loopback. Durations have no peer: a Dockerfile needs a container runtime and a base image. The size has one: the
//! image of kubebuilder's Dockerfile for the operator of the tutorial, as `docker images` shows it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::dev::scaffold::{LOGGED, Project, seconds};
use super::{Bench, Suite};
use crate::binary;
use crate::row::{Row, Rows, Unit};

pub(crate) const SUITE: Suite = Suite { name: "delivery", run };

/// The largest image, in MB.
const SIZE_MB: f64 = 12.0;
/// The unpacked image of kubebuilder's Dockerfile for MarkdownView, in bytes, and its name in the table.
const DOCKERFILE: (&str, f64) = ("Dockerfile of kubebuilder (Go)", 50e6);

fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Rows::default();
    bench.progress.say("delivery: building kubewright");
    let kubewright = binary::build("kubewright-cli", "kubewright", &[])?;
    let project = Project::make(&kubewright)?;
    let libc = if has_target()? { "musl" } else { "glibc" };
    bench.progress.say(&format!("delivery: first image with {libc}, takes minutes"));
    let registry = Registry::start()?;
    let build = |output: &str| {
        let line = format!("image build --quiet --libc {libc} --output {output}");
        seconds(project.command(&kubewright).args(line.split(' ')))
    };
    let push = |repository: &str| build(&format!("push --tag {}/{repository}:v1", registry.address));
    rows.sample(&format!("first image of a new project, {libc}"), Unit::Seconds, build("oci-layout")?);
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("delivery: round {round} of {}", bench.rounds));
        rows.sample("image of a compiled operator, OCI layout", Unit::Millis, build("oci-layout")?);
        rows.sample("image of a compiled operator, docker archive", Unit::Millis, build("docker-archive")?);
        // Every repository is empty at first. The registry does not share blobs between them.
        let repository = format!("round{round}");
        rows.sample("push of a compiled operator", Unit::Millis, push(&repository)?);
        rows.sample("push of an image that the registry has", Unit::Millis, push(&repository)?);
        project.change_reconciler(LOGGED, &format!("{LOGGED}, round {round}"))?;
        let name = format!("image after editing the reconciler, {libc}");
        rows.sample(&name, Unit::Seconds, build("oci-layout")?);
        let image = project.path("dist/image");
        let size = layers(&image, compressed)?;
        rows.sample(&format!("image, compressed layers, {libc}"), Unit::Megabytes, size).target =
            Some(SIZE_MB);
        let size = layers(&image, unpacked)?;
        rows.sample_beside(&format!("image, unpacked layers, {libc}"), Unit::Megabytes, size, DOCKERFILE);
    }
    Ok(rows.into_vec())
}

/// A registry on a free port of this machine.
struct Registry {
    child: Child,
    address: String,
    _data: TempDir,
}

impl Registry {
    fn start() -> Result<Self> {
        let data = tempfile::tempdir().context("create a temporary directory")?;
        let config = data.path().join("config.yml");
        let root = data.path().display();
        fs::write(
            &config,
            format!(
                "version: 0.1\nlog: {{level: info, accesslog: {{disabled: true}}}}\n\
                 storage: {{filesystem: {{rootdirectory: {root}/data}}}}\nhttp: {{addr: '127.0.0.1:0'}}\n"
            ),
        )
        .context("write the configuration of the registry")?;
        let (log, input) = std::io::pipe().context("create a pipe")?;
        let child = Command::new("docker-registry")
            .arg("serve")
            .arg(&config)
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(input)
            .spawn()
            .context(
                "start docker-registry; `cargo xtask ci --only tools` installs it in target/tools/bin",
            )?;
        let mut registry = Self { child, address: String::new(), _data: data };
        let mut lines = BufReader::new(log).lines().map_while(Result::ok);
        let line =
            lines.find(|line| line.contains("listening on ")).context("the registry does not listen")?;
        let address = line.split("listening on ").nth(1).unwrap_or_default();
        address.split(['"', ' ']).next().unwrap_or_default().clone_into(&mut registry.address);
        // A full pipe would block the registry. The thread ends with it.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(registry)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // The registry may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the static target is installed.
fn has_target() -> Result<bool> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", &target])
        .stdin(Stdio::null())
        .output()
        .context("start rustc")?;
    ensure!(output.status.success(), "rustc does not know the target {target}");
    Ok(Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// The sum of the sizes of the layers of a layout with one image, in bytes.
fn layers(layout: &Path, size: impl Fn(&Path) -> Result<u64>) -> Result<f64> {
    let read = |path: &Path| -> Result<serde_json::Value> {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("parse {}", path.display()))
    };
    let blob = |digest: &str| layout.join("blobs/sha256").join(digest.trim_start_matches("sha256:"));
    let index = read(&layout.join("index.json"))?;
    let digest = index["manifests"][0]["digest"].as_str().context("no manifest in index.json")?;
    let manifest = read(&blob(digest))?;
    let layers = manifest["layers"].as_array().context("no layers in the manifest")?;
    let mut sum = 0;
    for layer in layers {
        sum += size(&blob(layer["digest"].as_str().context("a layer has no digest")?))?;
    }
    #[expect(clippy::cast_precision_loss, reason = "images are smaller than 2^53 bytes")]
    Ok(sum as f64)
}

fn compressed(layer: &Path) -> Result<u64> {
    Ok(fs::metadata(layer).with_context(|| format!("read {}", layer.display()))?.len())
}

/// The last four bytes of a gzip file are the size of its content.
fn unpacked(layer: &Path) -> Result<u64> {
    let data = fs::read(layer).with_context(|| format!("read {}", layer.display()))?;
    let size = data.last_chunk().with_context(|| format!("{} is not a gzip file", layer.display()))?;
    Ok(u32::from_le_bytes(*size).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_the_sum_of_the_layers() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = folder.path().join("blobs/sha256");
        fs::create_dir_all(&blobs).unwrap();
        fs::write(folder.path().join("index.json"), r#"{"manifests": [{"digest": "sha256:ab"}]}"#).unwrap();
        let layers_of_it = r#"{"layers": [{"digest": "sha256:01"}, {"digest": "sha256:02"}]}"#;
        fs::write(blobs.join("ab"), layers_of_it).unwrap();
        fs::write(blobs.join("01"), [0, 1, 0, 0, 0]).unwrap();
        fs::write(blobs.join("02"), [0, 1, 0, 0]).unwrap();
        assert!((layers(folder.path(), compressed).unwrap() - 9.0).abs() < 0.1);
        assert!((layers(folder.path(), unpacked).unwrap() - 257.0).abs() < 0.1);
    }
}
