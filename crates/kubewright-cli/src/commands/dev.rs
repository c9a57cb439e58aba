//! `kubewright dev`: an operator that runs while it is written.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use kubewright_apimachinery::duration::parse_go_duration;
use kubewright_runtime::connect;

use crate::cli::examples::examples;
use crate::dev::{self, Options, Where};
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Run the operator in this folder, and again on each save", "kubewright dev"),
    (
        "The same for an example, with a new cluster of three nodes",
        "kubewright dev --fresh --nodes 3 examples/markdown-view",
    ),
    ("Run it against the cluster that kubectl uses", "kubewright dev --existing-cluster"),
    ("In a script: end when the samples are ready, or fail", "kubewright dev --once --timeout 2m"),
    ("Say more in the operator's log", "kubewright dev --operator-arg=--log-level=debug"),
];

/// Run an operator on a cluster inside this program, and rebuild it on each save
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Folder of the operator
    #[arg(value_name = "PROJECT", default_value = ".")]
    project: PathBuf,

    /// Begin with a new cluster, instead of the one that the last run left
    #[arg(long)]
    fresh: bool,

    /// Port of the API server, on 127.0.0.1; 0 is any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    /// Port of the page that shows what happens, on 127.0.0.1; 0 is any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    page_port: u16,

    /// Simulated nodes that run pods
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    nodes: usize,

    /// Apply config/samples; otherwise on the first run with a cluster, and when they are saved
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    samples: Option<bool>,

    /// Start no cluster, and use that of the kubeconfig
    #[arg(long, conflicts_with_all = ["fresh", "port", "nodes"])]
    existing_cluster: bool,

    /// Kubeconfig of that cluster; otherwise KUBECONFIG, or ~/.kube/config
    #[arg(long, value_name = "FILE", requires = "existing_cluster")]
    kubeconfig: Option<PathBuf>,

    /// Context in that kubeconfig; otherwise its current one
    #[arg(long, value_name = "NAME", requires = "existing_cluster")]
    context: Option<String>,

    /// Name or address by which that cluster reaches webhooks on this machine; known for kind, k3d and minikube
    #[arg(long, value_name = "HOST", requires = "existing_cluster")]
    webhook_host: Option<String>,

    /// Run the operator as administrator, or as the user of the kubeconfig, and not under its generated role
    #[arg(long)]
    as_admin: bool,

    /// End when the samples are ready, and watch no sources
    #[arg(long)]
    once: bool,

    /// How long that may take after the build
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    timeout: Duration,

    /// Program of the operator, where its package has several
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,

    /// Argument for the operator; repeat for several
    #[arg(long = "operator-arg", value_name = "ARG", allow_hyphen_values = true)]
    operator: Vec<String>,

    /// Arguments for cargo, behind `--`
    #[arg(value_name = "CARGO_ARGS", last = true)]
    cargo: Vec<String>,
}

pub(crate) fn run(args: Args, ui: &Ui) -> Result<()> {
    let cluster = if args.existing_cluster {
        Where::Existing(connect::Source { kubeconfig: args.kubeconfig, context: args.context })
    } else {
        Where::Embedded { port: args.port, nodes: args.nodes, fresh: args.fresh }
    };
    dev::run(
        Options {
            project: args.project,
            bin: args.bin,
            cargo: args.cargo,
            operator_args: args.operator,
            as_admin: args.as_admin,
            cluster,
            webhook_host: args.webhook_host,
            page_port: args.page_port,
            samples: args.samples,
            once: args.once.then_some(args.timeout),
        },
        ui.clone(),
    )
}

/// Reads a duration as Go's programs do: `90s`, `5m`, `1m30s`.
fn duration(text: &str) -> Result<Duration, String> {
    let nanoseconds = parse_go_duration(text).ok().and_then(|it| u64::try_from(it).ok());
    nanoseconds
        .filter(|nanoseconds| *nanoseconds > 0)
        .map(Duration::from_nanos)
        .ok_or_else(|| format!("{text:?} is no duration: give one such as 90s, 5m or 1m30s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_in_other_programs_of_kubernetes() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2h"), Ok(Duration::from_hours(2)));
        for wrong in ["", "5", "s", "5 m", "-5m", "1d", "0s", "4294967295h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
