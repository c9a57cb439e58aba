//! Shared by the commands that change a project: applies the difference between two project states to the
//! files on disk.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::error::Hint as _;
use crate::project::LockedRoot;
use crate::project::project_file::{self, ProjectFile};
use crate::scaffold::add::Changed;
use crate::scaffold::base::{self, Base};
use crate::scaffold::{self, Options, Plan, Rendered, Rendering, diff, render};
use crate::ui::Ui;

pub(crate) use crate::project::{read, write};

/// How to apply a change.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct How {
    /// Print the changes without writing them
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Overwrite or remove files that you changed
    #[arg(long)]
    pub(crate) force: bool,
}

/// The kind that a command operates on. On a terminal, the command prompts for missing parts.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// API group, without the project's domain
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    /// API version, such as v1 or v1beta1
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<String>,

    /// Kind, such as MarkdownView
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
}

impl Which {
    /// Group, version and kind, from flags or prompts.
    pub(crate) fn ask(&self, command: &[&str], ui: &Ui) -> Result<[String; 3]> {
        Ok([
            required("group", self.group.as_ref(), "shop", command, ui)?,
            required("version", self.version.as_ref(), "v1", command, ui)?,
            required("kind", self.kind.as_ref(), "Order", command, ui)?,
        ])
    }
}

/// Finds and locks the project that contains a directory.
pub(crate) fn open(folder: &Path, ui: &Ui) -> Result<(LockedRoot, ProjectFile)> {
    let absolute =
        std::path::absolute(folder).with_context(|| format!("cannot find {}", folder.display()))?;
    let root =
        absolute.ancestors().find(|above| above.join(project_file::PATH).is_file()).unwrap_or(&absolute);
    ProjectFile::load(root)?;
    let root = LockedRoot::lock(root, ui)?;
    // Read again: another command may have changed it before this one got the lock.
    let project = ProjectFile::load(&root)?;
    Ok((root, project))
}

/// Updates the files from one project state to another. Returns whether they were written.
pub(crate) fn change(root: &Path, changed: &Changed, how: How, ui: &Ui) -> Result<bool> {
    // Both renderings use the same options, so they cancel out.
    let options = Options::default();
    let (mut before, mut after) = scaffold::renderings(changed, &options, |path| read(root, path))?;
    if let Some(base) = read(root, base::PATH)? {
        let base = Base::read(&base)?;
        // An unmodified copy of a user's file is removed without --force.
        for (id, file) in before.iter_mut().filter(|(id, _)| !after.contains_key(*id)) {
            let recorded = base.files.get(id).filter(|recorded| recorded.path == file.path);
            if let Some(recorded) = recorded
                && read(root, &file.path)?.as_ref() == Some(&recorded.text)
            {
                file.text.clone_from(&recorded.text);
            }
        }
        let id = base::PATH.to_owned();
        let followed = base.follow(&before, &after);
        before.insert(id.clone(), base.rendered());
        after.insert(id, followed.rendered());
    }
    carry_out(root, &before, &after, how, ui)
}

/// Fails if a directory has a project.
pub(crate) fn check_is_new(root: &Path) -> Result<()> {
    if root.join(project_file::PATH).exists() {
        return Err(anyhow!("{} already contains a project", root.display()))
            .hint("use `kubewright create api` to add APIs, or `kubewright edit` to change settings");
    }
    Ok(())
}

/// Writes the files of a new project.
pub(crate) fn start(
    root: &Path,
    project: &ProjectFile,
    options: &Options,
    how: How,
    ui: &Ui,
) -> Result<bool> {
    let _lock = if how.dry_run {
        None
    } else {
        fs::create_dir_all(root).with_context(|| format!("cannot create {}", root.display()))?;
        Some(LockedRoot::lock_quietly(root)?)
    };
    // Check again: another `init` may have created a project before this one got the lock.
    check_is_new(root)?;
    let mut after = render(project, options);
    // Existing files belong to the user; updates leave them alone.
    let is_ours = |file: &Rendered| !file.yields || how.force || !root.join(&file.path).exists();
    let base = Base::of(&after, is_ours);
    after.insert(base::PATH.to_owned(), base.rendered());
    carry_out(root, &Rendering::new(), &after, how, ui)
}

/// Updates the files from one rendering to another. Returns whether they were written.
fn carry_out(root: &Path, before: &Rendering, after: &Rendering, how: How, ui: &Ui) -> Result<bool> {
    let plan = Plan::new(before, after, |path| read(root, path), how.force)?
        .map_err(|refusal| anyhow!(refusal))
        .hint(
            "nothing was written; use --dry-run --force to see what would be lost, and --force to apply it",
        )?;
    for note in &plan.notes {
        ui.note(note);
    }
    if how.dry_run {
        ui.print(diff(&plan.steps).as_bytes())?;
        return Ok(false);
    }
    let steps: Vec<_> = plan.steps.iter().map(|step| (step.path.clone(), step.after.clone())).collect();
    write(root, &steps)?;
    let mut lines = String::new();
    for (path, after) in steps.iter().filter(|(path, _)| path != base::PATH) {
        let _ = writeln!(lines, "{} {path}", if after.is_some() { "wrote" } else { "removed" });
    }
    ui.print(lines.as_bytes())?;
    Ok(true)
}

/// Returns the value of a flag, or prompts for it on a terminal.
pub(crate) fn required(
    flag: &str,
    value: Option<&String>,
    example: &str,
    command: &[&str],
    ui: &Ui,
) -> Result<String> {
    if let Some(value) = value {
        return Ok(value.clone());
    }
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        ui.print_styled_error(&format!("{flag} (for example {example}): "));
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).context("cannot read the value from the terminal")?;
        let answer = line.trim();
        if !answer.is_empty() {
            return Ok(answer.to_owned());
        }
    }
    let mut root = Cli::command();
    root.build();
    let command = command.iter().try_fold(&mut root, |command, name| command.find_subcommand_mut(name));
    let missing = format!("--{flag} is required, for example {example}");
    match command {
        Some(command) => Err(command.error(clap::error::ErrorKind::MissingRequiredArgument, missing).into()),
        None => Err(anyhow!(missing)),
    }
}
