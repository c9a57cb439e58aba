//! Structured logs: text for terminals, JSON for clusters.
//!
//! The library logs through `tracing` and installs no subscriber. An operator's entry point calls [`init`] once; a
//! program with its own subscriber adds [`layer`] to it. Every event is one line, written immediately:
//!
//! ```text
//! 12:00:00.123 INFO  Page created pages=3 controller=page object=default/web reconcile_id=6f2d
//! ```
//!
//! The JSON has the keys of zap's production encoder, as logged by operators in Go: `level`, `ts`, `logger` and `msg`,
//! followed by all fields at the top level. The fields of reconciles have controller-runtime's names too: `controller`,
//! `controllerGroup`, `controllerKind`, `namespace`, `name`, `reconcileID`.
//!
//! ```
//! use kubewright_runtime::logs::{Format, Options, subscriber};
//!
//! let options = Options { format: Format::Json, level: Some("info,kube=warn".to_owned()), ..Options::default() };
//! let subscriber = subscriber(&options, std::io::stderr)?;
//! tracing::subscriber::with_default(subscriber, || tracing::info!(pages = 3, "Page created"));
//!
//! let wrong = Options { level: Some("info,kube=wran".to_owned()), ..Options::default() };
//! let error = kubewright_runtime::logs::init(&wrong).unwrap_err();
//! assert!(error.to_string().contains("kube=wran"));
//! # Ok::<(), kubewright_runtime::logs::LogsError>(())
//! ```

mod directives;
mod fields;
mod json;
mod lines;
pub(crate) mod output;
mod text;

use std::io::IsTerminal;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

use self::directives::Directives;
use self::lines::{Encoding, Lines};
use crate::{Clock, SystemClock};

/// Logging options, as set by an operator's flags.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Options {
    /// The log format.
    pub format: Format,
    /// The minimum level, overall or per target: `debug`, `info,kube=warn`, `my_operator::pages=trace`. Other targets
    /// log from `info` on. If `None`, [`init`] uses `RUST_LOG`.
    pub level: Option<String>,
    /// Whether text is coloured.
    pub color: Color,
}

/// The log format.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// Human-readable text.
    Text,
    /// One JSON object per line.
    Json,
}

/// Whether text is coloured. JSON never is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Logging cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogsError {
    /// A log level directive is invalid.
    #[error(
        "invalid directive {directive:?} in {origin}: use a level (off, error, warn, info, debug, trace), \
         or target=level, such as kube=warn"
    )]
    Directive {
        /// The option or variable with the directive.
        origin: &'static str,
        /// The directive.
        directive: String,
    },
    /// The value is not a valid format or colour.
    #[error("{value:?} is not one of {expected}")]
    Choice {
        /// The given value.
        value: String,
        /// The valid values.
        expected: &'static str,
    },
    /// A global subscriber is already installed.
    #[error("logging is already initialized")]
    AlreadyInstalled(#[source] tracing::subscriber::SetGlobalDefaultError),
}

impl FromStr for Format {
    type Err = LogsError;

    fn from_str(value: &str) -> Result<Self, LogsError> {
        match value {
            "auto" => Ok(Self::Auto),
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(LogsError::Choice { value: value.to_owned(), expected: "auto, text, json" }),
        }
    }
}

impl FromStr for Color {
    type Err = LogsError;

    fn from_str(value: &str) -> Result<Self, LogsError> {
        match value {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(LogsError::Choice { value: value.to_owned(), expected: "auto, always, never" }),
        }
    }
}

/// Sets up logging to stderr for the whole process.
///
/// For the entry point of an operator; nothing in this library calls it. `RUST_LOG` applies if the options have no
/// level, and `NO_COLOR` if the colour is automatic.
///
/// ```standalone_crate
/// use kubewright_runtime::logs::{self, LogsError, Options};
///
/// logs::init(&Options::default())?;
/// tracing::info!("Starting operator");
/// assert!(matches!(logs::init(&Options::default()), Err(LogsError::AlreadyInstalled(_))));
/// # Ok::<(), LogsError>(())
/// ```
pub fn init(options: &Options) -> Result<(), LogsError> {
    install(tracing_subscriber::registry().with(lines(options)?))
}

/// Like [`init`], with another layer below the log lines.
#[cfg(feature = "otlp")]
pub(crate) fn init_with<L>(options: &Options, more: L) -> Result<(), LogsError>
where
    L: Layer<tracing_subscriber::Registry> + Send + Sync,
{
    install(tracing_subscriber::registry().with(more).with(lines(options)?))
}

/// The layer that writes log lines. Its filter is per layer, so that events disabled in all layers cost nothing.
fn lines<S>(options: &Options) -> Result<impl Layer<S> + Send + Sync + use<S>, LogsError>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let environment = Environment {
        terminal: std::io::stderr().is_terminal(),
        rust_log: std::env::var("RUST_LOG").ok(),
        no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
    };
    let (encoding, directives) = resolve(options, &environment)?;
    let lines = Lines::new(encoding, output::Stderr::new, Arc::new(SystemClock));
    Ok(lines.with_filter(directives))
}

fn install(subscriber: impl tracing::Subscriber + Send + Sync) -> Result<(), LogsError> {
    tracing::subscriber::set_global_default(subscriber).map_err(LogsError::AlreadyInstalled)
}

/// A subscriber that writes lines to `writer`, for callers that install it themselves.
///
/// Only [`init`] looks at the terminal and the environment: here the automatic format is JSON, the automatic colour is
/// off, and the default level is `info`.
pub fn subscriber<W>(
    options: &Options,
    writer: W,
) -> Result<impl Subscriber + Send + Sync + use<W>, LogsError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    Ok(tracing_subscriber::registry().with(layer(options, writer, Arc::new(SystemClock))?))
}

/// Redirects the logs of the current thread to `writer` while the guard is held, for tests that read their logs.
///
/// Other threads may log elsewhere. `tracing` caches per callsite whether it is enabled. While it knows only one
/// subscriber, the first thread to reach a callsite decides for all threads, so a test without logging would disable it
/// for the others. Therefore two registries that enable everything and write nothing stay alive.
pub fn capture<W>(options: &Options, writer: W) -> Result<DefaultGuard, LogsError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    static LISTENERS: LazyLock<[Dispatch; 2]> =
        LazyLock::new(|| std::array::from_fn(|_| Dispatch::new(tracing_subscriber::registry())));
    let subscriber = subscriber(options, writer)?;
    LazyLock::force(&LISTENERS);
    Ok(tracing::subscriber::set_default(subscriber))
}

/// A layer that writes lines to `writer`, for a subscriber with other layers.
///
/// Like [`subscriber`]; `clock` provides the timestamps.
pub fn layer<S, W>(
    options: &Options,
    writer: W,
    clock: Arc<dyn Clock>,
) -> Result<impl Layer<S> + Send + Sync + use<S, W>, LogsError>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let (encoding, directives) = resolve(options, &Environment::default())?;
    Ok(Lines::new(encoding, writer, clock).with_filter(directives))
}

/// The environment that the automatic options depend on.
#[derive(Debug, Default)]
struct Environment {
    terminal: bool,
    rust_log: Option<String>,
    no_color: bool,
}

/// Resolves automatic options.
fn resolve(options: &Options, environment: &Environment) -> Result<(Encoding, Directives), LogsError> {
    let color = match options.color {
        Color::Auto => environment.terminal && !environment.no_color,
        Color::Always => true,
        Color::Never => false,
    };
    let encoding = match options.format {
        Format::Auto if !environment.terminal => Encoding::Json,
        Format::Json => Encoding::Json,
        Format::Auto | Format::Text => Encoding::Text { color },
    };
    let directives = match (&options.level, &environment.rust_log) {
        (Some(level), _) => Directives::of_flag(level)?,
        (None, Some(level)) => Directives::of_environment(level)?,
        (None, None) => Directives::default(),
    };
    Ok((encoding, directives))
}

#[cfg(test)]
mod tests;
