//! `kubewright dev`: runs an operator and rebuilds it on each save.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use kubewright_apimachinery::duration::parse_go_duration;
use kubewright_runtime::connect;

use crate::cli::examples::examples;
use crate::dev::{self, Options, Where};
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Run the operator, and rebuild it on each save", "kubewright dev"),
    (
        "Run an example on a new cluster with three nodes",
        "kubewright dev --fresh --nodes 3 examples/markdown-view",
    ),
    ("Run against the current kubeconfig context", "kubewright dev --existing-cluster"),
    ("Exit when the samples are ready, for scripts", "kubewright dev --once --timeout 2m"),
    ("Pass an argument to the operator", "kubewright dev --operator-arg=--log-level=debug"),
];

/// Run an operator on an embedded cluster, and rebuild it on each save
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Project directory
    #[arg(value_name = "DIR", default_value = ".")]
    project: PathBuf,

    /// Start with a new cluster instead of the one from the last run
    #[arg(long)]
    fresh: bool,

    /// API server port on 127.0.0.1; 0 picks a free port [default: the port of the last run]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// Web UI port on 127.0.0.1; 0 picks a free port [default: the port of the last run]
    #[arg(long, value_name = "PORT")]
    page_port: Option<u16>,

    /// Number of simulated nodes
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    nodes: usize,

    /// Apply config/samples [default: on the first run with a cluster, and when a sample is saved]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    samples: Option<bool>,

    /// Use the cluster of the kubeconfig instead of the embedded one
    #[arg(long, conflicts_with_all = ["fresh", "port", "nodes"])]
    existing_cluster: bool,

    /// Kubeconfig of the existing cluster [default: KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE", requires = "existing_cluster")]
    kubeconfig: Option<PathBuf>,

    /// Kubeconfig context [default: the current context]
    #[arg(long, value_name = "NAME", requires = "existing_cluster")]
    context: Option<String>,

    /// Host at which the cluster reaches local webhooks [default: detected for kind, k3d and minikube]
    #[arg(long, value_name = "HOST", requires = "existing_cluster")]
    webhook_host: Option<String>,

    /// Run the operator as cluster admin (or the kubeconfig user) instead of with its generated RBAC rules
    #[arg(long)]
    as_admin: bool,

    /// Exit when the samples are ready; do not watch sources
    #[arg(long)]
    once: bool,

    /// Timeout of --once, counted from the end of the build
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    timeout: Duration,

    /// Operator binary, if the package has several
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,

    /// Argument for the operator (repeatable)
    #[arg(long = "operator-arg", value_name = "ARG", allow_hyphen_values = true)]
    operator: Vec<String>,

    /// Arguments for cargo, after `--`
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

/// Parses a Go duration: `90s`, `5m`, `1m30s`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let nanoseconds = parse_go_duration(text).ok().and_then(|it| u64::try_from(it).ok());
    nanoseconds
        .filter(|nanoseconds| *nanoseconds > 0)
        .map(Duration::from_nanos)
        .ok_or_else(|| format!("invalid duration {text:?}: use for example 90s, 5m or 1m30s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_go_syntax() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2h"), Ok(Duration::from_hours(2)));
        for wrong in ["", "5", "s", "5 m", "-5m", "1d", "0s", "4294967295h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
