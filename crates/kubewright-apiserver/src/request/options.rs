//! Request options: parsed from the query or the body and validated, with upstream's errors.

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::status::{ApiError, Qualified};
use serde_json::{Value, json};

use crate::request::Query;

/// How a write handles unknown and duplicate fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// The type of a write, for error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Create,
    Update,
    Patch,
    Apply,
}

/// Options of create, update and patch.
#[derive(Debug)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_validation: FieldValidation,
    /// `fieldManager` as sent; empty if missing.
    pub(crate) field_manager: String,
    /// `fieldValidation` as sent; empty if missing.
    pub(crate) given_validation: String,
}

impl WriteOptions {
    pub(crate) fn read(query: &Query, kind: WriteKind) -> Result<Self, ApiError> {
        let mut errors = ErrorList::new();
        if kind == WriteKind::Patch && query.get("force").is_some() {
            errors
                .push(FieldError::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
        }
        if kind == WriteKind::Apply && query.get("fieldManager").unwrap_or_default().is_empty() {
            errors.push(FieldError::required(&Path::new("fieldManager"), "is required for apply patch"));
        }
        errors.extend(check_manager(query.get("fieldManager").unwrap_or_default()));
        let dry_run: Vec<&str> = query.all("dryRun").filter(|value| !value.is_empty()).collect();
        errors.extend(check_dry_run(&dry_run));
        let field_validation = match query.get("fieldValidation").unwrap_or_default() {
            "Ignore" => FieldValidation::Ignore,
            "" | "Warn" => FieldValidation::Warn,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported(&Path::new("fieldValidation"), other, &supported));
                FieldValidation::Warn
            }
        };
        let name = match kind {
            WriteKind::Create => "CreateOptions",
            WriteKind::Update => "UpdateOptions",
            WriteKind::Patch | WriteKind::Apply => "PatchOptions",
        };
        check(name, &errors)?;
        Ok(Self {
            dry_run: !dry_run.is_empty(),
            field_validation,
            field_manager: query.get("fieldManager").unwrap_or_default().to_owned(),
            given_validation: query.get("fieldValidation").unwrap_or_default().to_owned(),
        })
    }

    /// The options object of this kind, as admission webhooks see it.
    pub(crate) fn to_value(&self, kind: &str) -> Value {
        let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        if !self.field_manager.is_empty() {
            options["fieldManager"] = self.field_manager.as_str().into();
        }
        if !self.given_validation.is_empty() {
            options["fieldValidation"] = self.given_validation.as_str().into();
        }
        options
    }
}

fn check_dry_run(values: &[&str]) -> Option<FieldError> {
    let all: Vec<Value> = values.iter().map(|value| Value::from(*value)).collect();
    let bad = values.iter().any(|value| *value != "All");
    bad.then(|| FieldError::not_supported(&Path::new("dryRun"), all, &["All"]))
}

fn check_manager(manager: &str) -> Option<FieldError> {
    let at = Path::new("fieldManager");
    if manager.len() > 128 {
        return Some(FieldError::too_long(&at, 128));
    }
    let (position, bad) = manager.chars().enumerate().find(|(_, c)| !is_print(*c))?;
    let detail = format!("invalid character U+{:04X} (at position {position})", bad as u32);
    Some(FieldError::invalid(&at, manager, detail))
}

/// Go's `unicode.IsPrint`, as far as field manager names need it.
fn is_print(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace() || ('\u{e000}'..='\u{f8ff}').contains(&c))
}

fn check(kind: &str, errors: &ErrorList) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(Qualified { group: "meta.k8s.io", name: kind }, "", errors))
}

/// How a deletion treats dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// Options of deletions.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    pub(crate) grace: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    /// The deprecated `orphanDependents`.
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

impl DeleteOptions {
    /// The options object, as admission webhooks see it.
    pub(crate) fn to_value(&self) -> Value {
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        if let Some(grace) = self.grace {
            options["gracePeriodSeconds"] = grace.into();
        }
        if let Some(uid) = &self.uid {
            options["preconditions"]["uid"] = uid.as_str().into();
        }
        if let Some(version) = &self.resource_version {
            options["preconditions"]["resourceVersion"] = version.as_str().into();
        }
        if let Some(orphan) = self.orphan_dependents {
            options["orphanDependents"] = orphan.into();
        }
        if let Some(propagation) = self.propagation {
            options["propagationPolicy"] = match propagation {
                Propagation::Orphan => "Orphan",
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
            }
            .into();
        }
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    /// Parses a body that was decoded as `DeleteOptions`.
    pub(crate) fn from_body(body: &Value) -> Result<Self, ApiError> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let dry_run: Vec<&str> =
            body["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        Self::checked(
            &dry_run,
            body["gracePeriodSeconds"].as_i64(),
            body["propagationPolicy"].as_str(),
            body["orphanDependents"].as_bool(),
            text(&body["preconditions"]["uid"]),
            text(&body["preconditions"]["resourceVersion"]),
        )
    }

    pub(crate) fn from_query(query: &Query) -> Result<Self, ApiError> {
        let dry_run: Vec<&str> = query.all("dryRun").filter(|value| !value.is_empty()).collect();
        let grace = match query.get("gracePeriodSeconds") {
            Some(text) if !text.is_empty() => Some(parse_int(text)?),
            _ => None,
        };
        let orphan = query.get("orphanDependents").map(|_| query.flag("orphanDependents"));
        let text = |name: &str| query.get(name).filter(|value| !value.is_empty()).map(str::to_owned);
        let (uid, version) = (text("uid"), text("resourceVersion"));
        Self::checked(&dry_run, grace, query.get("propagationPolicy"), orphan, uid, version)
    }

    fn checked(
        dry_run: &[&str],
        grace: Option<i64>,
        propagation: Option<&str>,
        orphan_dependents: Option<bool>,
        uid: Option<String>,
        resource_version: Option<String>,
    ) -> Result<Self, ApiError> {
        let at = Path::new("propagationPolicy");
        let mut errors = ErrorList::new();
        if let (Some(policy), Some(_)) = (propagation, orphan_dependents) {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(&at, policy, detail));
        }
        let propagation = match propagation {
            None | Some("") => None,
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(&at, other, &supported));
                None
            }
        };
        errors.extend(check_dry_run(dry_run));
        check("DeleteOptions", &errors)?;
        Ok(Self {
            dry_run: !dry_run.is_empty(),
            grace,
            propagation,
            orphan_dependents,
            uid,
            resource_version,
        })
    }
}

/// The state that a list returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// The latest state.
    MostRecent,
    /// Any state; served from the cache upstream.
    Any,
    /// The state at this revision or a later one.
    NotOlderThan(u64),
    /// The state at exactly this revision.
    Exact(u64),
}

/// Options of lists and watches.
#[derive(Debug)]
pub(crate) struct ListOptions {
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    pub(crate) resource_version: String,
    pub(crate) resource_version_match: String,
    pub(crate) timeout_seconds: Option<i64>,
    pub(crate) bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
}

impl ListOptions {
    pub(crate) fn read(query: &Query, watch: bool) -> Result<Self, ApiError> {
        let text = |name: &str| query.get(name).unwrap_or_default().to_owned();
        let int = |name: &str| query.get(name).filter(|value| !value.is_empty()).map(parse_int).transpose();
        let options = Self {
            label_selector: text("labelSelector"),
            field_selector: text("fieldSelector"),
            limit: usize::try_from(int("limit")?.unwrap_or_default()).unwrap_or_default(),
            continue_token: text("continue"),
            resource_version: text("resourceVersion"),
            resource_version_match: text("resourceVersionMatch"),
            timeout_seconds: int("timeoutSeconds")?,
            bookmarks: query.flag("allowWatchBookmarks"),
            send_initial_events: query.get("sendInitialEvents").map(|_| query.flag("sendInitialEvents")),
        };
        check("ListOptions", &options.errors(watch))?;
        Ok(options)
    }

    fn errors(&self, watch: bool) -> ErrorList {
        let at = Path::new("resourceVersionMatch");
        let matching = self.resource_version_match.as_str();
        let mut errors = ErrorList::new();
        if watch {
            if self.send_initial_events.is_some() {
                if matching != "NotOlderThan" {
                    let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                    errors.push(FieldError::forbidden(&at, detail));
                }
                if !matching.is_empty() && matching != "NotOlderThan" {
                    errors.push(FieldError::not_supported(&at, matching, &["NotOlderThan"]));
                }
            } else if !matching.is_empty() {
                let detail =
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.push(FieldError::forbidden(&at, detail));
            }
            return errors;
        }
        if self.send_initial_events.is_some() {
            let detail = "sendInitialEvents is forbidden for list";
            errors.push(FieldError::forbidden(&Path::new("sendInitialEvents"), detail));
        }
        if matching.is_empty() {
            return errors;
        }
        if self.resource_version.is_empty() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(&at, detail));
        }
        if !self.continue_token.is_empty() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(&at, detail));
        }
        if matching != "Exact" && matching != "NotOlderThan" {
            errors.push(FieldError::not_supported(&at, matching, &["Exact", "NotOlderThan", ""]));
        }
        if matching == "Exact" && self.resource_version == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(&at, detail));
        }
        errors
    }

    /// The state to list, by upstream's rules for resourceVersion, resourceVersionMatch and limit.
    pub(crate) fn at(&self) -> Result<At, ApiError> {
        let revision = match self.resource_version.as_str() {
            "" => return Ok(At::MostRecent),
            text => parse_revision(text).map_err(|error| {
                ApiError::bad_request(format!("invalid resource version: {}", error.message))
            })?,
        };
        Ok(match (revision, self.resource_version_match.as_str()) {
            (0, _) => At::Any,
            (revision, "Exact") => At::Exact(revision),
            (revision, "") if self.limit > 0 => At::Exact(revision),
            (revision, _) => At::NotOlderThan(revision),
        })
    }
}

/// Parses a resourceVersion. As upstream, the error has no reason.
pub(crate) fn parse_revision(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| {
        let quoted = kubewright_apimachinery::field::quote(text);
        let range = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let why = if range { "value out of range" } else { "invalid syntax" };
        let message =
            format!("resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: {why}");
        ApiError::new(500, "", message)
    })
}

/// Parses an integer of the query, with Go's error.
pub(crate) fn parse_int(text: &str) -> Result<i64, ApiError> {
    text.parse().map_err(|_| {
        let quoted = kubewright_apimachinery::field::quote(text);
        ApiError::bad_request(format!("strconv.ParseInt: parsing {quoted}: invalid syntax"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(query: &str) -> Result<ListOptions, ApiError> {
        ListOptions::read(&Query::parse(query), false)
    }

    #[test]
    fn resource_version_and_match_choose_the_state() {
        let at = |query| list(query).unwrap().at().unwrap();
        assert_eq!(at(""), At::MostRecent);
        assert_eq!(at("resourceVersion=0"), At::Any);
        assert_eq!(at("resourceVersion=7"), At::NotOlderThan(7));
        assert_eq!(at("resourceVersion=7&limit=2"), At::Exact(7));
        assert_eq!(at("resourceVersion=7&resourceVersionMatch=Exact"), At::Exact(7));
    }

    #[test]
    fn all_violated_rules_of_list_options_are_reported() {
        let error = list("resourceVersionMatch=NotOlderThan&continue=x").unwrap_err();
        assert_eq!(error.details.unwrap().causes.len(), 2);
        assert_eq!(
            list("limit=abc").unwrap_err().message,
            "strconv.ParseInt: parsing \"abc\": invalid syntax"
        );
    }

    #[test]
    fn an_invalid_field_manager_is_reported_with_the_position() {
        let error = WriteOptions::read(&Query::parse("fieldManager=a%09b"), WriteKind::Create).unwrap_err();
        assert!(
            error.message.ends_with(
                "fieldManager: Invalid value: \"a\\tb\": invalid character U+0009 (at position 1)"
            )
        );
    }
}
