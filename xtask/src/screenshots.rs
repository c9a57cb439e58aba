//! `cargo xtask screenshots`: takes the pictures of the page of `kubewright dev` for the documentation.
//!
//! Runs the test that starts `kubewright dev` on the example and opens its page in Chromium, with the directory of the
//! pictures in its environment.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The environment variable with the directory, which the test reads.
const VARIABLE: &str = "KUBEWRIGHT_PICTURES";
/// The test that takes the pictures.
const TEST: &str = "dev::example::the_example_becomes_available_on_both_clusters";

/// Arguments of `cargo xtask screenshots`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Needs Chromium and its driver, on Debian `apt-get install chromium chromium-driver`, and kubectl.

Examples:
  cargo xtask screenshots                  rewrite the pictures in docs/images
  cargo xtask screenshots --dir /tmp/new   write them elsewhere, to compare")]
pub struct ScreenshotsArgs {
    /// Write the pictures to DIR [default: docs/images]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Takes the pictures.
pub fn run(args: &ScreenshotsArgs) -> Result<()> {
    let folder = match &args.dir {
        Some(folder) => folder.clone(),
        None => crate::repo_root()?.join("docs/images"),
    };
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let folder = folder.canonicalize().with_context(|| format!("cannot read {}", folder.display()))?;
    let status = command(&folder).status().context("start cargo")?;
    ensure!(status.success(), "no pictures were taken ({status}); see the messages above");
    Ok(())
}

fn command(folder: &std::path::Path) -> Command {
    let mut command = crate::cargo();
    command.args(["test", "--package", "kubewright-cli", "--test", "it", "--", "--exact", TEST]);
    command.env(VARIABLE, folder);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_gets_the_directory_of_the_pictures() {
        let command = command("pictures".as_ref());
        assert!(
            command.get_envs().any(|(name, value)| name == VARIABLE && value == Some("pictures".as_ref()))
        );
        assert!(command.get_args().any(|argument| argument == TEST));
    }
}
