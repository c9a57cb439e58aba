//! Validation of CRDs, with upstream's messages and order.
//!
//! The CRD must be decoded, defaulted and prepared. [`Demands`] contains the rules from which an update is
//! exempt because the stored CRD already violates them.

mod columns;
mod conversion;
mod default_values;
mod demands;
mod extensions;
mod names;
mod openapi;
mod rules;
mod schema;
mod structural;

use serde_json::Value;

use super::approval;
use super::conditions;
use super::printed;
use super::schema::Schema;
use super::spec::{Spec, Version, has_status, root};
pub(super) use conversion::ca_bundle_problem;
use demands::Demands;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names as name;
use kubewright_apimachinery::object::Fields as _;
use kubewright_cel::rules::Rules;

/// Validates a CRD on create.
pub fn validate_create(object: &Value, rules: &dyn Rules) -> ErrorList {
    let mut errors = meta::create(&meta_rules(object), false, object);
    let spec = Spec::of(object);
    errors.extend(validate_spec(&spec, &Demands::of_new(), rules));
    errors.extend(rest(object, &spec, None));
    errors
}

/// Validates a CRD on update.
pub fn validate_update(new: &Value, old: &Value, rules: &dyn Rules) -> ErrorList {
    let mut errors = {
        let rules = meta_rules(new);
        meta::update(&rules, rules.update, false, new, old)
    };
    let spec = Spec::of(new);
    let old_spec = Spec::of(old);
    let demands = Demands::of_update(&spec, old, &old_spec);
    errors.extend(validate_spec(&spec, &demands, rules));
    let path = Path::new("spec");
    // Scope and kind determine how custom resources are stored; group and plural are part of the CRD's name.
    let fixed = ["scope", "names.kind", "group", "names.plural"];
    let may_rename = !conditions::is_true(old, "Established");
    for field in fixed.into_iter().skip(if may_rename { 2 } else { 0 }) {
        errors.extend(meta::immutable(spec.raw.at(field), old_spec.raw.at(field), &path.child(field)));
    }
    errors.extend(rest(new, &spec, Some(old)));
    errors
}

/// Validates a CRD on an update of its status.
pub fn validate_status_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = {
        let rules = meta_rules(new);
        meta::update(&rules, rules.update, false, new, old)
    };
    errors.extend(status(new));
    errors
}

/// The metadata rules of a CRD, whose name must be `plural.group`.
fn meta_rules(object: &Value) -> meta::Rules {
    let required = format!("{}.{}", object.str_at("spec.names.plural"), object.str_at("spec.group"));
    meta::Rules::generic(meta::NameRule::Definition { required })
}

/// Validates everything after the spec.
fn rest(object: &Value, spec: &Spec<'_>, old: Option<&Value>) -> ErrorList {
    let mut errors = status(object);
    errors.extend(stored_versions(object, spec));
    errors.extend(approval::validate(object, old));
    let kept = old.is_some_and(|old| old.bool_at("spec.preserveUnknownFields"));
    if !kept && spec.preserves_unknown_fields() {
        errors.push(FieldError::invalid(
            &Path::new("spec").child("preserveUnknownFields"),
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ));
    }
    errors
}

fn status(object: &Value) -> ErrorList {
    names::validate(object.at("status.acceptedNames"), &Path::new("status").child("acceptedNames"))
}

fn stored_versions(object: &Value, spec: &Spec<'_>) -> ErrorList {
    let path = Path::new("status").child("storedVersions");
    let field = object.at("status.storedVersions");
    let stored: Vec<&str> =
        object.list_at("status.storedVersions").iter().filter_map(Value::as_str).collect();
    if stored.is_empty() {
        return vec![FieldError::invalid(&path, field.clone(), "must have at least one stored version")];
    }
    let mut errors = ErrorList::new();
    for version in &spec.versions {
        if version.raw.bool_at("storage") && !stored.contains(&version.name()) {
            let detail = format!("must have the storage version {}", version.name());
            errors.push(FieldError::invalid(&path, field.clone(), detail));
        }
    }
    for (i, version) in stored.iter().enumerate() {
        if !spec.versions.iter().any(|known| known.name() == *version) && !stored[i + 1..].contains(version) {
            errors.push(FieldError::invalid(
                &path.index(i),
                *version,
                format!(
                    "missing from spec.versions; {version} was previously a storage version, and must remain in \
                     spec.versions until a storage migration ensures no data remains persisted in {version} and \
                     removes {version} from status.storedVersions"
                ),
            ));
        }
    }
    errors
}

fn validate_spec(spec: &Spec<'_>, demands: &Demands<'_>, rules: &dyn Rules) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = group(spec.raw.str_at("group"), &path.child("group"));
    errors.extend(one_of(&path.child("scope"), spec.raw.str_at("scope"), &["Cluster", "Namespaced"]));
    let structural = demands.structural || !spec.preserves_unknown_fields() || needs_structure(spec);
    errors.extend(missing_schemas(spec, demands, &path));
    if spec.preserves_unknown_fields() && spec.has_schema(&mut |schema| schema.default().is_some()) {
        errors.push(FieldError::invalid(
            &path.child("preserveUnknownFields"),
            true,
            "must be false in order to use defaults in the schema",
        ));
    }
    let checks = schema::Checks { demands, rules, structural };
    for (i, version) in spec.versions.iter().enumerate() {
        let path = path.child("versions").index(i);
        let problems = name::dns1035_label(version.name());
        if !problems.is_empty() {
            errors.push(FieldError::invalid(&path.child("name"), version.name(), problems.join(",")));
        }
        errors.extend(validate_version(spec, version, &checks, &path));
    }
    errors.extend(validate_versions(spec, &path));
    for name in ["plural", "singular", "kind", "listKind"] {
        if spec.raw.at("names").str_at(name).is_empty() {
            errors.push(FieldError::required(&path.child("names").child(name), ""));
        }
    }
    errors.extend(names::validate(spec.raw.at("names"), &path.child("names")));
    errors.extend(checks.validate(
        spec.validation,
        spec.has_status(),
        spec.version(),
        &path.child("validation"),
    ));
    errors.extend(columns::subresources(spec.subresources, &path.child("subresources")));
    errors.extend(columns::columns(spec.columns, &path.child("additionalPrinterColumns")));
    if !spec.selectable.is_empty() {
        let fields = path.child("selectableFields");
        match spec.validation {
            None => errors.push(FieldError::invalid(
                &fields,
                "",
                "may only be set when validations.schema is included",
            )),
            Some(validation) => {
                let schema = root(validation).unwrap_or(Schema(&Value::Null));
                let many = demands.many_selectable.contains(&"");
                errors.extend(columns::selectable_fields(spec.selectable, schema, many, &fields));
            }
        }
    }
    errors.extend(conversion::validate(spec, demands, &path.child("conversion")));
    errors
}

fn needs_structure(spec: &Spec<'_>) -> bool {
    spec.has_schema(&mut |schema| {
        schema.default().is_some()
            || schema.is_embedded()
            || schema.get("x-kubernetes-preserve-unknown-fields").is_some()
            || schema.flag("x-kubernetes-int-or-string")
            || !schema.map_keys().is_empty()
            || schema.list_type().is_some()
            || !schema.rules().is_empty()
    })
}

fn group(group: &str, path: &Path) -> ErrorList {
    if group.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let problems = name::dns1123_subdomain(group);
    if !problems.is_empty() {
        return vec![FieldError::invalid(path, group, problems.join(","))];
    }
    if group.contains('.') {
        return ErrorList::new();
    }
    vec![FieldError::invalid(path, group, "should be a domain with at least one dot")]
}

fn missing_schemas(spec: &Spec<'_>, demands: &Demands<'_>, path: &Path) -> ErrorList {
    if spec.validation.and_then(root).is_some() {
        return ErrorList::new();
    }
    let missing =
        spec.versions.iter().enumerate().filter(|(_, version)| version.schema.and_then(root).is_none()).map(
            |(i, version)| {
                (path.child("versions").index(i).child("schema").child("openAPIV3Schema"), version)
            },
        );
    if demands.schema {
        missing.map(|(path, _)| FieldError::required(&path, "")).collect()
    } else if spec.preserves_unknown_fields() {
        ErrorList::new()
    } else {
        missing
            .filter(|(_, version)| version.raw.bool_at("served"))
            .map(|(path, _)| FieldError::required(&path, "because otherwise all fields are pruned"))
            .collect()
    }
}

fn validate_version(
    spec: &Spec<'_>,
    version: &Version<'_>,
    checks: &schema::Checks<'_>,
    path: &Path,
) -> ErrorList {
    let mut errors = deprecation_warning(version.raw, &path.child("deprecationWarning"));
    let has_status = has_status(spec.subresources_of(version));
    errors.extend(checks.validate(version.schema, has_status, version.name(), &path.child("schema")));
    errors.extend(columns::subresources(version.subresources, &path.child("subresources")));
    errors.extend(columns::columns(version.columns, &path.child("additionalPrinterColumns")));
    if !version.selectable.is_empty() {
        let fields = path.child("selectableFields");
        match version.schema.and_then(root) {
            None => errors.push(FieldError::invalid(
                &fields,
                "",
                "may only be set when `version.schema.openAPIV3Schema` is not included",
            )),
            Some(schema) => {
                let many = checks.demands.many_selectable.contains(&version.name());
                errors.extend(columns::selectable_fields(version.selectable, schema, many, &fields));
            }
        }
    }
    errors
}

fn deprecation_warning(version: &Value, path: &Path) -> ErrorList {
    let Some(warning) = version.at("deprecationWarning").as_str() else {
        return ErrorList::new();
    };
    let mut problems = Vec::new();
    if version.bool_at("deprecated") {
        if warning.len() > 256 {
            problems.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            problems.push("must not be an empty string".to_owned());
        }
        if let Some((i, _)) = warning.char_indices().find(|(_, c)| !is_print(*c)) {
            problems.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {i}"
            ));
        }
    } else {
        problems.push("can only be set for deprecated versions".to_owned());
    }
    problems.into_iter().map(|problem| FieldError::invalid(path, warning, problem)).collect()
}

/// Like Go's `unicode.IsPrint`. Rust escapes the same characters in debug output, except for marks at the
/// start.
fn is_print(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\') || format!("a{c}").escape_debug().count() == 2
}

fn validate_versions(spec: &Spec<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let names: Vec<&str> = spec.versions.iter().map(Version::name).collect();
    let mut wrong = |detail: &str| {
        errors.push(FieldError::invalid_printed(&path.child("versions"), printed::versions(spec), detail));
    };
    if (1..names.len()).any(|i| names[..i].contains(&names[i])) {
        wrong("must contain unique version names");
    }
    if spec.versions.iter().filter(|version| version.raw.bool_at("storage")).count() != 1 {
        wrong("must have exactly one version marked as storage version");
    }
    if !spec.version().is_empty() {
        let problems = name::dns1035_label(spec.version());
        if !problems.is_empty() {
            errors.push(FieldError::invalid(&path.child("version"), spec.version(), problems.join(",")));
        }
    }
    errors
}

/// Errors for a value that is missing or not one of `known`.
fn one_of(path: &Path, value: &str, known: &[&str]) -> ErrorList {
    if value.is_empty() {
        vec![FieldError::required(path, "")]
    } else if known.contains(&value) {
        ErrorList::new()
    } else {
        vec![FieldError::not_supported(path, value, known)]
    }
}

#[cfg(test)]
mod tests;
