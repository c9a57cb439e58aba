//! `kubewright completion`: prints shell completion scripts.

use anyhow::Result;
use clap::ValueEnum;

use crate::cli;
use crate::cli::examples::examples;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    (
        "bash: enable completion in this shell; add the line to ~/.bashrc to keep it",
        "source <(kubewright completion bash)",
    ),
    (
        "zsh: enable completion in new shells; ~/.zshrc must run `compinit`",
        r#"kubewright completion zsh > "${fpath[1]}/_kubewright""#,
    ),
    (
        "fish: enable completion in new shells",
        "kubewright completion fish > ~/.config/fish/completions/kubewright.fish",
    ),
    (
        "PowerShell: enable completion in this shell; add it to $PROFILE to keep it",
        "kubewright completion powershell | Out-String | Invoke-Expression",
    ),
];

/// Print a shell completion script
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Shell to print the script for
    shell: Shell,
}

/// The shells that kubebuilder supports.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

impl From<Shell> for clap_complete::Shell {
    fn from(shell: Shell) -> Self {
        match shell {
            Shell::Bash => Self::Bash,
            Shell::Zsh => Self::Zsh,
            Shell::Fish => Self::Fish,
            Shell::Powershell => Self::PowerShell,
        }
    }
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    // clap_complete panics when its writer fails, so it writes to memory and the `Ui` reports errors.
    let mut script = Vec::new();
    clap_complete::generate(
        clap_complete::Shell::from(args.shell),
        &mut cli::command_for_completion(),
        "kubewright",
        &mut script,
    );
    ui.print(&script)?;
    if ui.prints_to_terminal() {
        ui.note("run `kubewright completion --help` to see how to install this script");
    }
    Ok(())
}
