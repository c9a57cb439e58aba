//! Recipe: custom flags.

use std::process::ExitCode;

use clap::Parser;
use kubewright::k8s_openapi::api::core::v1::Namespace;
use kubewright::prelude::*;
use kubewright::tracing;
use kubewright::{Context, Flags, Key, Result};

/// Reports namespaces without an owner.
#[derive(Parser)]
pub struct Cli {
    /// Label that names the owner of a namespace
    #[arg(long, value_name = "LABEL", default_value = "example.com/owner")]
    owner_label: String,

    #[command(flatten)]
    flags: Flags,
}

pub struct NamespaceReconciler {
    owner_label: String,
}

impl Reconciler for NamespaceReconciler {
    type Object = Namespace;

    async fn reconcile(&self, namespace: &Namespace, cx: &Context) -> Result<Outcome> {
        if !namespace.labels().contains_key(&self.owner_label) {
            tracing::warn!("Namespace {} has no label {}", cx.key(), self.owner_label);
        }
        Ok(Outcome::done())
    }
}

pub fn main() -> ExitCode {
    let Cli { owner_label, flags } = Cli::parse();
    kubewright::operator!().run_with(flags, async |manager: Manager| {
        manager.controller(NamespaceReconciler { owner_label }).register()?;
        manager.run().await
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use clap::error::ErrorKind;
    use kubewright_envtest::{Environment, Logs};

    use super::*;

    #[test]
    fn own_flags_and_those_of_every_operator_are_parsed() {
        let cli = Cli::try_parse_from(["operator", "--owner-label=team", "--leader-elect"]).ok();
        assert_eq!(cli.map(|cli| cli.owner_label).as_deref(), Some("team"));
        let help = Cli::command().render_long_help().to_string();
        assert!(help.contains("--owner-label <LABEL>") && help.contains("--metrics-bind-address"), "{help}");
        let wrong = Cli::try_parse_from(["operator", "--owner-lable=team"]).err();
        assert_eq!(wrong.map(|error| error.kind()), Some(ErrorKind::UnknownArgument));
        // `main` is compiled, and ends in an error code instead of a panic.
        let _: fn() -> ExitCode = main;
    }

    #[tokio::test]
    async fn the_reconciler_gets_the_value() -> Result<()> {
        let env = Environment::start().await?;
        let logs = Logs::capture();
        let cli = Cli::try_parse_from(["operator", "--owner-label=team"])?;
        let reconciler = NamespaceReconciler { owner_label: cli.owner_label };
        env.reconcile_once(&reconciler, &Key::cluster("default")).await?;
        assert_eq!(logs.lines_with("Namespace default has no label team").len(), 1, "{}", logs.text());
        Ok(())
    }
}
