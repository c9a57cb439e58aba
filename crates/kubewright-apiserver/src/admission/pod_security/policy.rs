//! The namespace labels that select Pod Security Standards.

use std::fmt;

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};

/// The level of a standard, from least to most restrictive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// The Kubernetes minor version of the standard; `None` is the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version(pub(super) Option<u64>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LevelVersion {
    pub(super) level: Level,
    pub(super) version: Version,
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version.0 {
            Some(minor) => write!(f, "{level}:v1.{minor}"),
            None => write!(f, "{level}:latest"),
        }
    }
}

const DEFAULT: LevelVersion = LevelVersion { level: Level::Privileged, version: Version(None) };

/// The standards of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) enforce: LevelVersion,
    pub(super) audit: LevelVersion,
    pub(super) warn: LevelVersion,
}

impl Default for Policy {
    fn default() -> Self {
        Self { enforce: DEFAULT, audit: DEFAULT, warn: DEFAULT }
    }
}

/// The labels, without prefix.
const NAMES: [&str; 6] = ["enforce", "enforce-version", "audit", "audit-version", "warn", "warn-version"];

impl Policy {
    /// The policy that labels select. Invalid labels enforce the most restrictive standard, without warnings
    /// or audit.
    pub(super) fn of<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> (Self, ErrorList) {
        let mut policy = Self::default();
        let mut errors = ErrorList::new();
        let mut given: [Option<&str>; 6] = [None; 6];
        for (key, value) in labels {
            let Some(name) = key.strip_prefix("pod-security.kubernetes.io/") else { continue };
            if let Some(at) = NAMES.iter().position(|known| *known == name) {
                given[at] = Some(value);
            }
        }
        let mut refuse = |at: usize, value: &str, why: &str| {
            let label = format!("pod-security.kubernetes.io/{}", NAMES[at]);
            let path = Path::new("metadata").child("labels").key(&label);
            errors.push(FieldError::invalid(&path, value, why));
        };
        let mut enforce_given = false;
        for (mode, level_version) in
            [&mut policy.enforce, &mut policy.audit, &mut policy.warn].into_iter().enumerate()
        {
            if let Some(text) = given[2 * mode] {
                if let Some(level) = level(text) {
                    level_version.level = level;
                    enforce_given |= mode == 0;
                } else {
                    refuse(2 * mode, text, "must be one of privileged, baseline, restricted");
                    level_version.level = if mode == 0 { Level::Restricted } else { Level::Privileged };
                }
            }
            if let Some(text) = given[2 * mode + 1] {
                match version(text) {
                    Some(version) => level_version.version = version,
                    None => refuse(2 * mode + 1, text, "must be \"latest\" or \"v1.x\""),
                }
            }
        }
        if given[4].is_none() && enforce_given && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if given[5].is_none() {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, errors)
    }

    pub(super) fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|mode| mode.level == Level::Privileged)
    }
}

fn level(text: &str) -> Option<Level> {
    Some(match text {
        "privileged" => Level::Privileged,
        "baseline" => Level::Baseline,
        "restricted" => Level::Restricted,
        _ => return None,
    })
}

fn version(text: &str) -> Option<Version> {
    if text == "latest" {
        return Some(Version(None));
    }
    let minor = text.strip_prefix("v1.")?;
    let plain = minor == "0" || !minor.starts_with('0') && minor.bytes().all(|byte| byte.is_ascii_digit());
    minor.parse().ok().filter(|_| plain).map(|minor| Version(Some(minor)))
}
