//! `kubewright envtest assets`: creates a `KUBEBUILDER_ASSETS` directory with kubewright as kube-apiserver
//! and etcd.
//!
//! Go test suites also run `kubectl` from that directory, so the one on PATH is linked too. Standard output
//! carries exactly one line for a shell to evaluate; progress goes to standard error. Only links to
//! kubewright are overwritten.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};

use crate::binaries::Binary;
use crate::cli::examples::examples;
use crate::error::Hint as _;
use crate::ui::Ui;

const KUBECTL: &str = "kubectl";

const EXAMPLES: &[(&str, &str)] = &[
    ("Create the directory and use it in this shell", r#"eval "$(kubewright envtest assets bin/k8s)""#),
    ("Write copies, for container images", "kubewright envtest assets --copy bin/k8s"),
    ("Preview the changes", "kubewright envtest assets --dry-run bin/k8s"),
];

/// Create a KUBEBUILDER_ASSETS directory with kubewright as kube-apiserver and etcd
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Directory to create or update
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Write copies instead of symlinks
    #[arg(long)]
    copy: bool,

    /// Print what would be written
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let program = std::env::current_exe().context("cannot determine the path of this executable")?;
    let folder = std::path::absolute(&args.folder)
        .with_context(|| format!("{} is not a directory", args.folder.display()))?;
    let places: Vec<PathBuf> = Binary::ALL.iter().map(|binary| folder.join(binary.name())).collect();
    // Check all files first, so that a failure leaves no partial directory.
    let stale = places.iter().map(|place| replaceable(place, &program)).collect::<Result<Vec<_>>>()?;
    for (place, stale) in places.iter().zip(stale) {
        let how = if args.copy { "a copy of" } else { "a symlink to" };
        if args.dry_run {
            ui.note(&format!("would write {}, {how} {}", place.display(), program.display()));
            continue;
        }
        write(place, &program, args.copy, stale)
            .with_context(|| format!("cannot write {}", place.display()))?;
        ui.note(&format!("wrote {}, {how} {}", place.display(), program.display()));
    }
    offer_kubectl(args, &folder, ui)?;
    ui.print(format!("export KUBEBUILDER_ASSETS={}\n", quoted(&folder.to_string_lossy())).as_bytes())
}

/// Links the kubectl on PATH into the directory. An existing kubectl that is not a symlink stays.
fn offer_kubectl(args: &Args, folder: &Path, ui: &Ui) -> Result<()> {
    let place = folder.join(KUBECTL);
    let found = fs::symlink_metadata(&place).ok();
    if found.as_ref().is_some_and(|found| !found.is_symlink()) {
        return Ok(());
    }
    let Some(program) = on_path(KUBECTL, folder) else {
        ui.note(
            "kubectl not found on PATH; for tests that call kubectl, install it and run this command again",
        );
        return Ok(());
    };
    let how = if args.copy { "a copy of" } else { "a symlink to" };
    if args.dry_run {
        ui.note(&format!("would write {}, {how} {}", place.display(), program.display()));
        return Ok(());
    }
    write(&place, &program, args.copy, found.is_some())
        .with_context(|| format!("cannot write {}", place.display()))?;
    ui.note(&format!("wrote {}, {how} {}", place.display(), program.display()));
    Ok(())
}

/// Finds a program on PATH, outside of `folder`.
fn on_path(name: &str, folder: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders =
        std::env::split_paths(&path).filter(|it| std::path::absolute(it).is_ok_and(|it| it != folder));
    let mut programs = folders.filter_map(|it| fs::canonicalize(it.join(name)).ok());
    programs.find(|program| {
        fs::metadata(program).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

/// Whether the file exists and may be replaced. Files that are not ours are an error.
fn replaceable(place: &Path, program: &Path) -> Result<bool> {
    let found = match fs::symlink_metadata(place) {
        Ok(found) => found,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound) => return Ok(false),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", place.display())),
    };
    let ours = if found.is_symlink() {
        // A dangling symlink to kubewright is ours too.
        fs::read_link(place).is_ok_and(|to| to.file_name() == program.file_name())
    } else {
        found.is_file() && same_content(place, program)
    };
    if ours {
        return Ok(true);
    }
    Err(anyhow!("{} already exists and is not a link to kubewright", place.display())
        .hint("choose another directory, or remove the file"))
}

fn same_content(one: &Path, other: &Path) -> bool {
    let length = |path| fs::metadata(path).map(|found| found.len()).ok();
    length(one) == length(other) && fs::read(one).ok() == fs::read(other).ok()
}

fn write(place: &Path, program: &Path, copy: bool, stale: bool) -> std::io::Result<()> {
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    if stale {
        fs::remove_file(place)?;
    }
    if copy { fs::copy(program, place).map(drop) } else { std::os::unix::fs::symlink(program, place) }
}

/// Quotes a string for a POSIX shell.
fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_quoted() {
        assert_eq!(quoted("/opt/bin-1.36/k8s_x"), "/opt/bin-1.36/k8s_x");
        assert_eq!(quoted("/my folder/it's"), r"'/my folder/it'\''s'");
    }
}
