//! `kubewright manifests`: what a compiled operator declares becomes the files under config/.
//!
//! The operator is built, and its program says what it declares; kubewright-manifests makes files of that. Nothing is
//! written if anything is wrong, and only what changed is written at all.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kubewright_manifests::crd;
use kubewright_manifests::declarations::Declarations;
use kubewright_manifests::files::{self, Changes, Files, Plan};
use kubewright_manifests::lint::{self, Finding, Level};

use crate::cli::examples::examples;
use crate::error::Hint as _;
use crate::project::{Project, Writes};
use crate::ui::{Ui, escape, style};

const EXAMPLES: &[(&str, &str)] = &[
    ("Write the manifests of the operator in this folder", "kubewright manifests"),
    ("Fail in CI if somebody forgot to", "kubewright manifests --check"),
    (
        "See what would change, for a feature of the operator",
        "kubewright manifests --dry-run -- --features beta",
    ),
];

/// Write CRDs, roles and webhook configurations from the compiled operator
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Folder of the operator
    #[arg(value_name = "PROJECT", default_value = ".")]
    project: PathBuf,

    /// Write nothing, and fail if the files are not what the code says
    #[arg(long, conflicts_with_all = ["dry_run", "prune"])]
    check: bool,

    /// Write nothing, and print what would change
    #[arg(long)]
    dry_run: bool,

    /// Remove files that nothing in the code produces any more
    #[arg(long)]
    prune: bool,

    /// Program of the operator, where its package has several
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,

    /// Cut descriptions in CRDs after so many characters; 0 leaves them out
    #[arg(long, value_name = "N")]
    max_description_length: Option<usize>,

    /// File with a text that each manifest begins with, as comments
    #[arg(long, value_name = "FILE")]
    header_file: Option<PathBuf>,

    /// Arguments for cargo, behind `--`
    #[arg(value_name = "CARGO_ARGS", last = true)]
    cargo: Vec<String>,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let project = Project::find(&args.project)?;
    let header = match &args.header_file {
        Some(file) => {
            fs::read_to_string(file).with_context(|| format!("cannot read the header {}", file.display()))?
        }
        None => String::new(),
    };
    let declarations = project.declarations(args.bin.as_deref(), &args.cargo, ui)?;
    let (definitions, mut findings) = definitions(&declarations, args.max_description_length);
    let plan = Plan::new(&declarations, &definitions, &header);
    let changes = plan.against(&disk(project.root())?);
    findings.extend(lint::check(&declarations, &definitions));
    for (file, source) in project.sources()? {
        // What cargo has compiled can be read; a file that it has not is nobody's.
        findings.extend(crd::dropped_validators(&file, &source).unwrap_or_default());
    }
    if !args.prune {
        findings.extend(changes.findings(&declarations));
    }
    tell(&mut findings, ui);
    let errors = findings.iter().filter(|finding| finding.level == Level::Error).count();
    if errors > 0 {
        let what = if errors == 1 { "an error".to_owned() } else { format!("{errors} errors") };
        bail!("{what} in what the operator declares; nothing was written");
    }
    if args.check {
        return check(&project, &changes, ui);
    }
    if args.dry_run {
        return ui.print_styled(&diff(&project, &changes, args.prune)?);
    }
    write(&project, &changes, args.prune, ui)
}

/// The definitions of all kinds with their files, and what was found while they were made.
fn definitions(
    declarations: &Declarations,
    longest: Option<usize>,
) -> (Vec<(String, serde_json::Value)>, Vec<Finding>) {
    let crd::Merged { definitions, findings } = crd::merge(declarations.kinds().cloned().collect());
    let definitions = definitions.into_iter().map(|mut made| {
        if let Some(longest) = longest {
            crd::limit_descriptions(&mut made.definition, longest);
        }
        (made.file, made.definition)
    });
    (definitions.collect(), findings)
}

/// The files that could have come from an earlier run.
fn disk(root: &Path) -> Result<Files> {
    let mut found = Files::new();
    let mut paths: Vec<String> = files::FIXED.iter().map(ToString::to_string).collect();
    match fs::read_dir(root.join(files::DEFINITIONS)) {
        Ok(entries) => {
            for entry in entries {
                let entry = entry.with_context(|| format!("cannot read {}", files::DEFINITIONS))?;
                if let Some(name) = entry.file_name().to_str() {
                    paths.push(format!("{}/{name}", files::DEFINITIONS));
                }
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", files::DEFINITIONS)),
    }
    for path in paths {
        match fs::read_to_string(root.join(&path)) {
            Ok(text) => {
                found.insert(path, text);
            }
            // What is no text is not ours, and is written over where it stands in our way.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
        }
    }
    Ok(found)
}

fn tell(findings: &mut Vec<Finding>, ui: &Ui) {
    lint::sort(findings);
    for finding in findings {
        let label = match finding.level {
            Level::Error => style::ERROR,
            Level::Warning => style::CAUSE,
        };
        let text = finding.to_string();
        let mut lines = text.lines().map(escape);
        let first = lines.next().unwrap_or_default();
        let (head, rest) = first.split_once(' ').unwrap_or((&first, ""));
        let mut told = format!("{label}{head}{label:#} {rest}\n");
        for line in lines {
            told.extend([&line, "\n"]);
        }
        ui.print_styled_error(&told);
    }
}

fn check(project: &Project, changes: &Changes, ui: &Ui) -> Result<()> {
    if changes.is_empty() {
        ui.note(&format!("{} as the code says", count(changes.unchanged.len())));
        return Ok(());
    }
    ui.print_styled(&diff(project, changes, true)?)?;
    let stale = changes.stale.iter().map(String::as_str);
    let paths: Vec<&str> = changes.write.keys().map(String::as_str).chain(stale).collect();
    Err(anyhow::anyhow!("not what the code says: {}", paths.join(", ")))
        .hint("run `kubewright manifests`, with --prune where files are left over, and commit what it writes")
}

/// What would change, as a unified diff.
fn diff(project: &Project, changes: &Changes, prune: bool) -> Result<String> {
    let mut text = String::new();
    let removed = changes.stale.iter().filter(|_| prune).map(|path| (path, ""));
    let written = changes.write.iter().map(|(path, new)| (path, new.as_str()));
    for (path, new) in written.chain(removed) {
        let old = match fs::read(project.root().join(path)) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
        };
        let before = if old.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() };
        let after = if new.is_empty() { "/dev/null".to_owned() } else { format!("b/{path}") };
        let lines = similar::TextDiff::from_lines(old.as_deref().unwrap_or_default(), new);
        let _ = write!(text, "{}", lines.unified_diff().header(&before, &after));
    }
    Ok(text)
}

fn write(project: &Project, changes: &Changes, prune: bool, ui: &Ui) -> Result<()> {
    let stale: &[String] = if prune { &changes.stale } else { &[] };
    let mut writes = Writes::new(project.root());
    for (path, text) in &changes.write {
        writes.write(path, text)?;
    }
    for path in stale {
        writes.remove(path);
    }
    writes.commit()?;
    let mut told = String::new();
    for path in changes.write.keys() {
        let _ = writeln!(told, "wrote {path}");
    }
    for path in stale {
        let _ = writeln!(told, "removed {path}");
    }
    ui.print(told.as_bytes())?;
    if told.is_empty() {
        ui.note(&format!("{} unchanged", count(changes.unchanged.len())));
    }
    Ok(())
}

fn count(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}
