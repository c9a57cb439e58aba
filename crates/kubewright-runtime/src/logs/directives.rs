//! Filters events by level and target.
//!
//! Spans of level `info` and above are always enabled: the span of a reconcile has the fields for controller and
//! object, which a warning needs even if the level is `warn`. Spans are not log lines themselves.

use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Filter};

use super::LogsError;

#[derive(Debug)]
pub(super) struct Directives {
    targets: Targets,
    /// The most verbose level of all directives.
    most: LevelFilter,
}

impl Default for Directives {
    fn default() -> Self {
        Self { targets: Targets::new().with_default(LevelFilter::INFO), most: LevelFilter::INFO }
    }
}

impl Directives {
    /// Parses a flag. Strict: a misspelled level must not be taken as a target.
    pub(super) fn of_flag(text: &str) -> Result<Self, LogsError> {
        Self::parse(text, "log level", false)
    }

    /// Parses `RUST_LOG`, where a bare target enables all its levels, because other programs may read the same
    /// variable.
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

/// Whether a text can be a target: a module path or a custom name, not a span or field filter.
fn is_target(text: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || "_:-./".contains(c);
    !text.is_empty() && text.chars().all(fits)
}
