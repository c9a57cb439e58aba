//! The flags of an operator: as typed ([`Flags`]), and resolved into options ([`Settings`]).
//!
//! Names and defaults are those of kubebuilder's scaffold, so that its manifests work. There is no flag without an
//! effect.

mod values;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as _;
use clap::builder::{ArgPredicate, StyledStr, Styles};
use kubewright_runtime::webhook::{CertificateMode, WebhookOptions};
use kubewright_runtime::{BindAddress, LeaderElectionOptions, ManagerOptions, connect, logs};

use self::values::{Namespaces, NamespacesError, Patience};

const CLUSTER: &str = "Cluster";
const SERVERS: &str = "Probes and metrics";
const ELECTION: &str = "Leader election";
const WEBHOOKS: &str = "Webhooks";
const LOGS: &str = "Logs";

/// The flags of every operator.
///
/// [`Operator::run_with_args`](crate::Operator::run_with_args) adds custom flags. A program with its own command line can
/// flatten these flags into it instead:
///
/// ```
/// use kubewright::Flags;
/// use kubewright::clap::{self, Parser};
///
/// #[derive(Parser)]
/// struct Cli {
///     /// The image to deploy
///     #[arg(long)]
///     image: String,
///     #[command(flatten)]
///     flags: Flags,
/// }
///
/// let cli = Cli::parse_from(["operator", "--image", "nginx", "--leader-elect"]);
/// // kubewright::operator!().run_with(cli.flags, async |manager| { ... })
/// # let _ = (cli.image, cli.flags);
/// ```
#[derive(Debug, Clone)]
pub struct Flags(Typed);

// clap uses the doc comment of a derived type as the program's description, so it derives from another type.
impl clap::Args for Flags {
    fn augment_args(command: clap::Command) -> clap::Command {
        Typed::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Typed::augment_args_for_update(command)
    }
}

impl clap::FromArgMatches for Flags {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        Typed::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

#[derive(Debug, Clone, clap::Args)]
struct Typed {
    /// Path to a kubeconfig file; defaults to KUBECONFIG, ~/.kube/config, or the in-cluster service account
    #[arg(long, value_name = "FILE", help_heading = CLUSTER)]
    kubeconfig: Option<PathBuf>,

    /// Name of the kubeconfig context; defaults to the current context
    #[arg(long, value_name = "NAME", help_heading = CLUSTER)]
    context: Option<String>,

    /// Comma-separated namespaces to watch; defaults to WATCH_NAMESPACE, or all namespaces
    #[arg(long, value_name = "NAMES", help_heading = CLUSTER)]
    namespace: Option<Namespaces>,

    /// Graceful shutdown timeout; negative waits forever
    #[arg(long, value_name = "DURATION", default_value = "30s", help_heading = CLUSTER)]
    #[arg(allow_hyphen_values = true)]
    graceful_shutdown_timeout: Patience,

    /// Address of the health probe server, such as :8081 or 127.0.0.1:0; 0 disables it
    #[arg(long, value_name = "ADDRESS", default_value = ":8081", help_heading = SERVERS)]
    health_probe_bind_address: BindAddress,

    /// Address of the metrics server, such as :8443; 0 disables it
    #[arg(long, value_name = "ADDRESS", default_value = "0", help_heading = SERVERS)]
    metrics_bind_address: BindAddress,

    /// Serve metrics over HTTPS, with authentication and authorization by the API server
    #[arg(long, value_name = "BOOL", default_value = "true", help_heading = SERVERS)]
    #[arg(value_parser = values::boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    metrics_secure: bool,

    /// Directory with the metrics server certificate and key; defaults to a self-signed certificate
    #[arg(long, value_name = "DIR", help_heading = SERVERS)]
    metrics_cert_path: Option<PathBuf>,

    /// File name of the certificate in that directory
    #[arg(long, value_name = "FILE", default_value = "tls.crt", help_heading = SERVERS)]
    metrics_cert_name: String,

    /// File name of its key
    #[arg(long, value_name = "FILE", default_value = "tls.key", help_heading = SERVERS)]
    metrics_cert_key: String,

    /// Address of the pprof server, such as 127.0.0.1:6060; 0 disables it
    #[arg(long, value_name = "ADDRESS", default_value = "0", help_heading = SERVERS)]
    pprof_bind_address: BindAddress,

    /// Address of the debug page, such as :8444; 0 disables it. It is read-only, and secured like the metrics
    #[arg(long, value_name = "ADDRESS", default_value = "0", help_heading = SERVERS)]
    debug_page_bind_address: BindAddress,

    /// Address of the webhook server, such as :9443; 0 disables it
    #[arg(long, value_name = "ADDRESS", default_value = ":9443", help_heading = WEBHOOKS)]
    webhook_bind_address: BindAddress,

    /// Port of the webhook server on all interfaces
    #[arg(long, value_name = "PORT", help_heading = WEBHOOKS, conflicts_with = "webhook_bind_address")]
    webhook_port: Option<u16>,

    /// Source of the webhook certificate: self-signed, files or none (plain HTTP behind a proxy)
    #[arg(long, value_name = "MODE", help_heading = WEBHOOKS)]
    #[arg(value_parser = ["self-signed", "files", "none"], hide_possible_values = true)]
    #[arg(
        default_value = "self-signed",
        default_value_if("webhook_cert_path", ArgPredicate::IsPresent, "files")
    )]
    webhook_cert_mode: String,

    /// Directory with the webhook certificate and its key
    #[arg(long, value_name = "DIR", help_heading = WEBHOOKS, required_if_eq("webhook_cert_mode", "files"))]
    webhook_cert_path: Option<PathBuf>,

    /// File name of the certificate in that directory
    #[arg(long, value_name = "FILE", default_value = "tls.crt", help_heading = WEBHOOKS)]
    webhook_cert_name: String,

    /// File name of its key
    #[arg(long, value_name = "FILE", default_value = "tls.key", help_heading = WEBHOOKS)]
    webhook_cert_key: String,

    /// Service in front of the webhook server [default: WEBHOOK_SERVICE_NAME, or webhook-service]
    #[arg(long, value_name = "NAME", help_heading = WEBHOOKS)]
    webhook_service_name: Option<String>,

    /// Namespace of that Service [default: POD_NAMESPACE, or the pod's namespace]
    #[arg(long, value_name = "NAME", help_heading = WEBHOOKS)]
    webhook_service_namespace: Option<String>,

    /// Additional DNS name of the self-signed webhook certificate; can be repeated
    #[arg(long, value_name = "NAME", help_heading = WEBHOOKS, value_parser = values::dns_name)]
    webhook_cert_extra_name: Vec<String>,

    /// DNS domain of the cluster, for the self-signed webhook certificate
    #[arg(long, value_name = "DOMAIN", default_value = "cluster.local", help_heading = WEBHOOKS)]
    #[arg(value_parser = values::dns_name)]
    webhook_cluster_domain: String,

    /// Enable leader election, so that only one replica is active
    #[arg(long, value_name = "BOOL", default_value = "false", help_heading = ELECTION)]
    #[arg(value_parser = values::boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    leader_elect: bool,

    /// Name of the leader election Lease; defaults to the operator's name
    #[arg(long, value_name = "NAME", help_heading = ELECTION)]
    leader_election_id: Option<String>,

    /// Namespace of the Lease; defaults to the pod's namespace
    #[arg(long, value_name = "NAME", help_heading = ELECTION)]
    leader_election_namespace: Option<String>,

    /// How long standby replicas wait after the last renewal before they acquire the Lease
    #[arg(long, value_name = "DURATION", default_value = "15s", help_heading = ELECTION)]
    #[arg(value_parser = values::duration)]
    leader_election_lease_duration: Duration,

    /// How long the leader tries to renew the Lease before it gives up
    #[arg(long, value_name = "DURATION", default_value = "10s", help_heading = ELECTION)]
    #[arg(value_parser = values::duration)]
    leader_election_renew_deadline: Duration,

    /// How long to wait between attempts
    #[arg(long, value_name = "DURATION", default_value = "2s", help_heading = ELECTION)]
    #[arg(value_parser = values::duration)]
    leader_election_retry_period: Duration,

    /// Log level (off, error, warn, info, debug, trace), optionally per target, such as info,kube=warn; defaults to
    /// RUST_LOG, or info
    #[arg(long, value_name = "LEVEL", help_heading = LOGS)]
    #[arg(value_parser = values::log_level, conflicts_with = "zap_log_level")]
    log_level: Option<String>,

    /// Log format: auto (text on a terminal, JSON elsewhere), text or json
    #[arg(long, value_name = "FORMAT", help_heading = LOGS)]
    #[arg(value_parser = values::log_format(), conflicts_with = "zap_encoder")]
    #[arg(default_value = "auto", hide_possible_values = true)]
    log_format: logs::Format,

    #[arg(long, hide = true, value_parser = values::zap_log_level)]
    zap_log_level: Option<String>,

    #[arg(long, hide = true, value_parser = values::zap_encoder())]
    zap_encoder: Option<logs::Format>,

    #[arg(long, hide = true, default_value = "false")]
    #[arg(value_parser = values::boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    zap_devel: bool,
}

/// The environment variables that an operator reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    /// `WATCH_NAMESPACE`.
    pub(crate) watch_namespace: Option<String>,
    /// `WEBHOOK_SERVICE_NAME`.
    pub(crate) webhook_service_name: Option<String>,
    /// `POD_NAMESPACE`.
    pub(crate) pod_namespace: Option<String>,
}

impl Environment {
    /// The environment of this process.
    pub(crate) fn of_process() -> Self {
        let filled = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            watch_namespace: std::env::var("WATCH_NAMESPACE").ok(),
            webhook_service_name: filled("WEBHOOK_SERVICE_NAME"),
            pod_namespace: filled("POD_NAMESPACE"),
        }
    }
}

/// The resolved flags: options for the parts of the runtime.
pub(crate) struct Settings {
    pub(crate) logs: logs::Options,
    pub(crate) source: connect::Source,
    pub(crate) manager: ManagerOptions,
}

impl Flags {
    /// Resolves the flags of an operator in an environment.
    pub(crate) fn settle(
        self,
        operator: &str,
        default_lease: &str,
        environment: Environment,
    ) -> Result<Settings, NamespacesError> {
        let typed = self.0;
        let namespaces = match (typed.namespace, environment.watch_namespace.as_deref()) {
            (Some(namespaces), _) => namespaces,
            (None, Some(names)) => Namespaces::of_environment(names)?,
            (None, None) => Namespaces::default(),
        };
        let election = LeaderElectionOptions {
            namespace: typed.leader_election_namespace,
            lease_duration: typed.leader_election_lease_duration,
            renew_deadline: typed.leader_election_renew_deadline,
            retry_period: typed.leader_election_retry_period,
            ..LeaderElectionOptions::new(typed.leader_election_id.unwrap_or_else(|| default_lease.to_owned()))
        };
        let webhooks = WebhookOptions {
            bind_address: match typed.webhook_port {
                Some(port) => BindAddress::port(port),
                None => typed.webhook_bind_address,
            },
            certificates: match (typed.webhook_cert_mode.as_str(), typed.webhook_cert_path) {
                ("files", Some(folder)) => CertificateMode::Files {
                    certificate: folder.join(typed.webhook_cert_name),
                    key: folder.join(typed.webhook_cert_key),
                },
                ("none", _) => CertificateMode::None,
                _ => CertificateMode::SelfSigned,
            },
            service_name: typed
                .webhook_service_name
                .or(environment.webhook_service_name)
                .unwrap_or_else(|| WebhookOptions::default().service_name),
            service_namespace: typed.webhook_service_namespace.or(environment.pod_namespace),
            extra_names: typed.webhook_cert_extra_name,
            cluster_domain: typed.webhook_cluster_domain,
            ..WebhookOptions::default()
        };
        let manager = ManagerOptions {
            metrics_bind_address: typed.metrics_bind_address,
            metrics_secure: typed.metrics_secure,
            metrics_cert_path: typed.metrics_cert_path,
            metrics_cert_name: typed.metrics_cert_name,
            metrics_cert_key: typed.metrics_cert_key,
            health_probe_bind_address: typed.health_probe_bind_address,
            pprof_bind_address: typed.pprof_bind_address,
            debug_page_bind_address: typed.debug_page_bind_address,
            webhooks,
            leader_election: typed.leader_elect.then_some(election),
            graceful_shutdown_timeout: typed.graceful_shutdown_timeout.0,
            ..ManagerOptions::new(operator).namespaces(namespaces.0)
        };
        let mut logs = logs::Options {
            format: typed.zap_encoder.unwrap_or(typed.log_format),
            level: typed.zap_log_level.or(typed.log_level),
            ..logs::Options::default()
        };
        // zap's development mode changes the defaults.
        if typed.zap_devel {
            if logs.format == logs::Format::Auto {
                logs.format = logs::Format::Text;
            }
            logs.level.get_or_insert_with(|| "debug".to_owned());
        }
        Ok(Settings {
            logs,
            source: connect::Source { kubeconfig: typed.kubeconfig, context: typed.context },
            manager,
        })
    }
}

/// An invalid command line, or the text of `--help` or `--version`.
///
/// [`Display`](fmt::Display) is the text to print.
#[derive(Debug)]
pub struct FlagsError(clap::Error);

impl FlagsError {
    /// The exit code: 0 for help and version, 2 for an invalid command line.
    pub fn exit_code(&self) -> u8 {
        u8::try_from(self.0.exit_code()).unwrap_or(2)
    }

    /// Prints the text, with colors on a terminal: help and version to stdout, errors to stderr.
    pub fn print(&self) -> std::io::Result<()> {
        self.0.print()
    }
}

impl fmt::Display for FlagsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for FlagsError {}

impl From<clap::Error> for FlagsError {
    fn from(error: clap::Error) -> Self {
        Self(error)
    }
}

/// The command line of an operator with custom flags.
pub(crate) fn command<A: clap::Args>(name: &str, version: &str, about: &str) -> clap::Command {
    // The custom flags come first: clap uses the doc comment of their type as the description.
    let command = A::augment_args(clap::Command::new(name.to_owned()))
        .version(version.to_owned())
        .max_term_width(100)
        .after_help(examples(name));
    let command = if about.is_empty() { command } else { command.about(about.to_owned()) };
    Flags::augment_args(command)
}

fn examples(name: &str) -> StyledStr {
    let styles = Styles::styled();
    let header = styles.get_header();
    StyledStr::from(format!(
        "{header}Examples:{header:#}
  # Run on the cluster that kubectl uses, for one namespace
  {name} --namespace team-a --log-level debug

  # Run in a pod, as one of several replicas
  {name} --leader-elect --health-probe-bind-address=:8081 --metrics-bind-address=:8443

  # Serve the metrics locally without TLS
  {name} --metrics-bind-address=127.0.0.1:8080 --metrics-secure=false"
    ))
}

#[cfg(test)]
mod tests;
