//! Which events are logged.
//!
//! Spans are another matter: the span of a reconcile carries the controller and the object, and a warning must not
//! lose them because the level is `warn`. Spans of level `info` and above are therefore always kept; they are not
//! lines of their own.

use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Filter};

use super::LogsError;

#[derive(Debug)]
pub(super) struct Directives {
    targets: Targets,
    /// The most that any of them lets through.
    most: LevelFilter,
}

impl Default for Directives {
    fn default() -> Self {
        Self { targets: Targets::new().with_default(LevelFilter::INFO), most: LevelFilter::INFO }
    }
}

impl Directives {
    /// From a flag. Strict: a misspelled level must not become the name of a target that nobody has.
    pub(super) fn of_flag(text: &str) -> Result<Self, LogsError> {
        Self::parse(text, "the log level", false)
    }

    /// From `RUST_LOG`, where a target alone means all of it: other programs may read the same variable.
    pub(super) fn of_environment(text: &str) -> Result<Self, LogsError> {
        Self::parse(text, "RUST_LOG", true)
    }

    fn parse(text: &str, origin: &'static str, bare_targets: bool) -> Result<Self, LogsError> {
        let mut default = LevelFilter::INFO;
        let mut targets = Vec::new();
        for directive in text.split(',').map(str::trim).filter(|directive| !directive.is_empty()) {
            let wrong = || LogsError::Directive { origin, directive: directive.to_owned() };
            match directive.split_once('=') {
                Some((target, level)) => {
                    let (target, level) = (target.trim(), level.trim());
                    let level = level_filter(level).filter(|_| is_target(target)).ok_or_else(wrong)?;
                    targets.push((target.to_owned(), level));
                }
                None => match level_filter(directive) {
                    Some(level) => default = level,
                    None if bare_targets && is_target(directive) => {
                        targets.push((directive.to_owned(), LevelFilter::TRACE));
                    }
                    None => return Err(wrong()),
                },
            }
        }
        let most = targets.iter().map(|&(_, level)| level).fold(default, std::cmp::max);
        Ok(Self { targets: Targets::new().with_default(default).with_targets(targets), most })
    }

    fn lets_through(&self, metadata: &Metadata<'_>) -> bool {
        if metadata.is_span() && *metadata.level() <= LevelFilter::INFO {
            return self.most > LevelFilter::OFF;
        }
        self.targets.would_enable(metadata.target(), metadata.level())
    }
}

impl<S: Subscriber> Filter<S> for Directives {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.lets_through(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.lets_through(metadata) { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let spans = if self.most == LevelFilter::OFF { LevelFilter::OFF } else { LevelFilter::INFO };
        Some(self.most.max(spans))
    }
}

fn level_filter(text: &str) -> Option<LevelFilter> {
    match text.to_ascii_lowercase().as_str() {
        "off" => Some(LevelFilter::OFF),
        "error" => Some(LevelFilter::ERROR),
        "warn" => Some(LevelFilter::WARN),
        "info" => Some(LevelFilter::INFO),
        "debug" => Some(LevelFilter::DEBUG),
        "trace" => Some(LevelFilter::TRACE),
        _ => None,
    }
}

/// What can be a target: the path of a module, or a name that somebody gave. Not a filter of spans or fields.
fn is_target(text: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || "_:-./".contains(c);
    !text.is_empty() && text.chars().all(fits)
}
