//! `kubewright completion`: the script that completes commands and flags in a shell.

use anyhow::Result;
use clap::ValueEnum;

use crate::cli;
use crate::cli::examples::examples;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    (
        "bash: complete in this shell; put the line into ~/.bashrc to keep it",
        "source <(kubewright completion bash)",
    ),
    (
        "zsh: complete in new shells; `compinit` must run in ~/.zshrc",
        r#"kubewright completion zsh > "${fpath[1]}/_kubewright""#,
    ),
    (
        "fish: complete in new shells",
        "kubewright completion fish > ~/.config/fish/completions/kubewright.fish",
    ),
    (
        "PowerShell: complete in this shell; put the line into $PROFILE to keep it",
        "kubewright completion powershell | Out-String | Invoke-Expression",
    ),
];

/// Print the script that completes kubewright's commands in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// The shell to write for
    shell: Shell,
}

/// The shells that kubebuilder writes for.
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
    // clap_complete panics when its writer fails; memory does not, and the `Ui` reports what does.
    let mut script = Vec::new();
    clap_complete::generate(
        clap_complete::Shell::from(args.shell),
        &mut cli::command_for_completion(),
        "kubewright",
        &mut script,
    );
    ui.print(&script)?;
    if ui.prints_to_terminal() {
        ui.note("this is a script for the shell; `kubewright completion --help` says where to put it");
    }
    Ok(())
}
