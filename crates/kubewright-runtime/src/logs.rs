//! Structured logs: text for terminals, JSON for clusters.
//!
//! The library logs through `tracing` and installs nothing. An operator's entry point calls [`init`] once; who has a
//! subscriber of their own adds [`layer`] to it. Every event is one line, written at once:
//!
//! ```text
//! 12:00:00.123 INFO  the page is there pages=3 controller=page object=default/web reconcile_id=6f2d
//! ```
//!
//! The JSON has the keys of zap's production encoder, which is what log pipelines know from operators that are
//! written in Go: `level`, `ts`, `logger` and `msg`, and then all fields at the top level. The fields of the
//! controllers' spans are spelled as there too: `controller`, `controllerGroup`, `controllerKind`, `namespace`,
//! `name`, `reconcileID`.
//!
//! ```
//! use kubewright_runtime::logs::{Format, Options, subscriber};
//!
//! let options = Options { format: Format::Json, level: Some("info,kube=warn".to_owned()), ..Options::default() };
//! let subscriber = subscriber(&options, std::io::stderr)?;
//! tracing::subscriber::with_default(subscriber, || tracing::info!(pages = 3, "the page is there"));
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

/// How and what to log. The flags of an operator, as they were meant.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Options {
    /// Text or JSON.
    pub format: Format,
    /// From which level on, for all or for single targets: `debug`, `info,kube=warn`, `my_operator::pages=trace`.
    /// Targets that no directive names log from `info` on. If `None`, [`init`] takes what `RUST_LOG` says.
    pub level: Option<String>,
    /// Whether text is coloured.
    pub color: Color,
}

/// How lines look.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// For people.
    Text,
    /// For programs.
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

/// Why logs cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogsError {
    /// A directive of the level is not understood.
    #[error(
        "{origin} has {directive:?}, which is not understood: write a level (off, error, warn, info, debug, trace), \
         or target=level, such as kube=warn"
    )]
    Directive {
        /// Where it stands.
        origin: &'static str,
        /// The directive.
        directive: String,
    },
    /// Not one of the formats or colours.
    #[error("{value:?} is not one of {expected}")]
    Choice {
        /// What was given.
        value: String,
        /// What can be given.
        expected: &'static str,
    },
    /// The program has a subscriber already.
    #[error("the program has set up its logs already; they can be set up once")]
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

/// Sets up the logs of the whole program, on standard error.
///
/// For the entry point of an operator; nothing in this library calls it. `RUST_LOG` counts where the options name no
/// level, and `NO_COLOR` where they name no colour.
///
/// ```standalone_crate
/// use kubewright_runtime::logs::{self, LogsError, Options};
///
/// logs::init(&Options::default())?;
/// tracing::info!("the operator starts");
/// assert!(matches!(logs::init(&Options::default()), Err(LogsError::AlreadyInstalled(_))));
/// # Ok::<(), LogsError>(())
/// ```
pub fn init(options: &Options) -> Result<(), LogsError> {
    install(tracing_subscriber::registry().with(lines(options)?))
}

/// As [`init`], with another layer below the log lines.
#[cfg(feature = "otlp")]
pub(crate) fn init_with<L>(options: &Options, more: L) -> Result<(), LogsError>
where
    L: Layer<tracing_subscriber::Registry> + Send + Sync,
{
    install(tracing_subscriber::registry().with(more).with(lines(options)?))
}

/// The layer that writes log lines. It has a filter of its own, so that what is off for all layers costs nothing.
fn lines<S>(options: &Options) -> Result<impl Layer<S> + Send + Sync + use<S>, LogsError>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let surroundings = Surroundings {
        terminal: std::io::stderr().is_terminal(),
        rust_log: std::env::var("RUST_LOG").ok(),
        no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
    };
    let (encoding, directives) = resolve(options, &surroundings)?;
    let lines = Lines::new(encoding, std::io::stderr, Arc::new(SystemClock));
    Ok(lines.with_filter(directives))
}

fn install(subscriber: impl tracing::Subscriber + Send + Sync) -> Result<(), LogsError> {
    tracing::subscriber::set_global_default(subscriber).map_err(LogsError::AlreadyInstalled)
}

/// A subscriber that writes lines to `writer`, for who installs it themselves.
///
/// Only [`init`] knows terminal and environment: here the automatic format is JSON, the automatic colour none, and no
/// level is `info`.
pub fn subscriber<W>(
    options: &Options,
    writer: W,
) -> Result<impl Subscriber + Send + Sync + use<W>, LogsError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    Ok(tracing_subscriber::registry().with(layer(options, writer, Arc::new(SystemClock))?))
}

/// Has this thread log to `writer` for as long as the guard is held, for tests that read their logs.
///
/// Other threads of the program may log to somewhere else or to nowhere. `tracing` remembers of each line whether
/// anybody listens to it, and as long as it knows of one subscriber only, the first thread that comes to a line
/// answers for all: a test that logs nothing would silence it in the others. So two subscribers stay behind that
/// listen to everything and write nothing.
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

/// A layer that writes lines to `writer`, for a subscriber that has others too.
///
/// As [`subscriber`], and `clock` tells the time of the lines.
pub fn layer<S, W>(
    options: &Options,
    writer: W,
    clock: Arc<dyn Clock>,
) -> Result<impl Layer<S> + Send + Sync + use<S, W>, LogsError>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let (encoding, directives) = resolve(options, &Surroundings::default())?;
    Ok(Lines::new(encoding, writer, clock).with_filter(directives))
}

/// What a program can see of where it runs.
#[derive(Debug, Default)]
struct Surroundings {
    terminal: bool,
    rust_log: Option<String>,
    no_color: bool,
}

/// The options as they are meant here.
fn resolve(options: &Options, surroundings: &Surroundings) -> Result<(Encoding, Directives), LogsError> {
    let color = match options.color {
        Color::Auto => surroundings.terminal && !surroundings.no_color,
        Color::Always => true,
        Color::Never => false,
    };
    let encoding = match options.format {
        Format::Auto if !surroundings.terminal => Encoding::Json,
        Format::Json => Encoding::Json,
        Format::Auto | Format::Text => Encoding::Text { color },
    };
    let directives = match (&options.level, &surroundings.rust_log) {
        (Some(level), _) => Directives::of_flag(level)?,
        (None, Some(level)) => Directives::of_environment(level)?,
        (None, None) => Directives::default(),
    };
    Ok((encoding, directives))
}

#[cfg(test)]
mod tests;
