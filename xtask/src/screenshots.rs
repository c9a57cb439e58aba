//! `cargo xtask screenshots`: takes the pictures of the page of `kubewright dev` for the documentation.
//!
//! Runs the test that starts README's command and opens its page in Chromium, with a new directory for the pictures in
//! its environment. Pictures are replaced only if all of them were taken.

pub mod png;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// The environment variable with the directory, which the test reads.
const VARIABLE: &str = "KUBEWRIGHT_PICTURES";
/// The test that takes the pictures.
const TEST: &str = "dev::page::the_page_shows_the_operator_of_the_readme";
/// The pictures.
const PICTURES: [&str; 8] = [
    "dev-page-1280-dark.png",
    "dev-page-1280-light.png",
    "dev-page-1440-dark.png",
    "dev-page-1440-light.png",
    "dev-page-1920-dark.png",
    "dev-page-1920-light.png",
    "dev-page-dark.png",
    "dev-page-light.png",
];

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
    let taken = crate::target_dir(&crate::repo_root()?).join("screenshots");
    // Pictures of an earlier run must not hide that one is missing.
    if taken.exists() {
        fs::remove_dir_all(&taken).with_context(|| format!("cannot remove {}", taken.display()))?;
    }
    fs::create_dir_all(&taken).with_context(|| format!("cannot create {}", taken.display()))?;
    let status = command(&taken).status().context("start cargo")?;
    ensure!(status.success(), "no pictures were taken ({status}); see the messages above");
    for (name, size) in replace(&taken, &folder, png::shrink)? {
        println!("{name}: {} kB", size / 1000);
    }
    Ok(())
}

/// Writes the pictures with fewer bytes, if all of them were taken. Returns their sizes.
fn replace(
    taken: &Path,
    folder: &Path,
    shrink: impl Fn(&[u8]) -> Result<Vec<u8>>,
) -> Result<Vec<(&'static str, usize)>> {
    let mut pictures = Vec::new();
    for name in PICTURES {
        match fs::read(taken.join(name)) {
            Ok(picture) if picture.is_empty() => bail!("the test `{TEST}` wrote an empty {name}"),
            Ok(picture) => {
                let small = shrink(&picture).with_context(|| format!("cannot shrink {name}"))?;
                pictures.push((name, small));
            }
            Err(error) => return Err(error).with_context(|| format!("the test `{TEST}` wrote no {name}")),
        }
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (name, picture) in &pictures {
        let path = folder.join(name);
        fs::write(&path, picture).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(pictures.into_iter().map(|(name, picture)| (name, picture.len())).collect())
}

fn command(folder: &Path) -> Command {
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
    #[test]
    fn a_missing_or_empty_picture_is_an_error_and_replaces_nothing() {
        let (taken, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let same = |picture: &[u8]| Ok(picture.to_vec());
        let missing = replace(taken.path(), folder.path(), same).unwrap_err().to_string();
        assert_eq!(missing, format!("the test `{TEST}` wrote no dev-page-1280-dark.png"));
        for name in PICTURES {
            fs::write(taken.path().join(name), name).unwrap();
        }
        fs::write(taken.path().join("dev-page-light.png"), "").unwrap();
        let empty = replace(taken.path(), folder.path(), same).unwrap_err().to_string();
        assert_eq!(empty, format!("the test `{TEST}` wrote an empty dev-page-light.png"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        fs::write(taken.path().join("dev-page-light.png"), "picture").unwrap();
        assert_eq!(replace(taken.path(), folder.path(), same).unwrap().len(), PICTURES.len());
        assert_eq!(fs::read(folder.path().join("dev-page-light.png")).unwrap(), b"picture");
    }
}
