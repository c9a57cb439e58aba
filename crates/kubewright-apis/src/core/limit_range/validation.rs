//! Validation of LimitRange.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::validation::resource_name::{container_resource, may_overcommit, resource};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

pub(super) fn limit_range(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec").child("limits");
    let mut seen = BTreeSet::new();
    for (i, limit) in object.list_at("spec.limits").iter().enumerate() {
        let path = path.index(i);
        let kind = limit.str_at("type");
        errors.extend(limit_type(kind, &path.child("type")));
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
        errors.extend(limit_names(limit, kind, &path));
        errors.extend(limit_amounts(limit, kind, &path));
    }
    errors
}

fn limit_type(kind: &str, path: &Path) -> ErrorList {
    let errors: ErrorList = meta::invalid(path, kind, names::label_key(kind)).collect();
    if errors.is_empty()
        && !kind.contains('/')
        && !matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim")
    {
        return vec![FieldError::invalid(path, kind, "must be a standard limit type or fully qualified")];
    }
    errors
}

fn limit_names(limit: &Value, kind: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let named = |field: &str| -> ErrorList {
        let path = path.child(field);
        let check = if matches!(kind, "Pod" | "Container") { container_resource } else { resource };
        limit.map_at(field).keys().flat_map(|name| check(name, &path.key(name))).collect()
    };
    errors.extend(named("max"));
    errors.extend(named("min"));
    for field in ["default", "defaultRequest"] {
        if kind != "Pod" {
            errors.extend(named(field));
        } else if !limit.map_at(field).is_empty() {
            errors
                .push(FieldError::forbidden(&path.child(field), "may not be specified when `type` is 'Pod'"));
        }
    }
    let bounded = ["min", "max"].iter().any(|field| limit.map_at(field).contains_key("storage"));
    if kind == "PersistentVolumeClaim" && !bounded {
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(FieldError::required(&path.child("limits"), detail));
    }
    errors.extend(named("maxLimitRequestRatio"));
    errors
}

fn limit_amounts(limit: &Value, kind: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let fields: &[&str] = match kind {
        "Pod" => &["max", "min", "maxLimitRequestRatio"],
        _ => &["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"],
    };
    let names: BTreeSet<&String> = fields.iter().flat_map(|field| limit.map_at(field).keys()).collect();
    for name in names {
        let amount = |field: &str| {
            let value = limit.map_at(field).get(name.as_str()).filter(|_| fields.contains(&field))?;
            Quantity::from_json(value).ok()
        };
        let (min, max) = (amount("min"), amount("max"));
        let (default, request) = (amount("default"), amount("defaultRequest"));
        // The compared values, the invalid field and the printed value, which may be another one.
        let ordered = [
            (&min, "min value", &max, "max value", "min", &min),
            (&min, "min value", &request, "default request value", "defaultRequest", &request),
            (&request, "default request value", &max, "max value", "defaultRequest", &request),
            (&request, "default request value", &default, "default limit value", "defaultRequest", &request),
            (&min, "min value", &default, "default value", "default", &min),
            (&default, "default value", &max, "max value", "default", &max),
        ];
        for (low, low_name, high, high_name, field, shown) in ordered {
            if let (Some(low), Some(high), Some(shown)) = (low, high, shown)
                && low > high
            {
                let detail = format!("{low_name} {low} is greater than {high_name} {high}");
                errors.push(FieldError::invalid(&path.child(field).key(name), shown.to_string(), detail));
            }
        }
        if let Some(ratio) = amount("maxLimitRequestRatio") {
            errors.extend(ratio_problems(&ratio, min.as_ref(), max.as_ref(), |detail| {
                FieldError::invalid(&path.child("maxLimitRequestRatio").key(name), ratio.to_string(), detail)
            }));
        }
        if let (Some(default), Some(request)) = (&default, &request)
            && !may_overcommit(name)
            && default != request
        {
            let detail =
                format!("default value {default} must equal to defaultRequest value {request} in {name}");
            errors.push(FieldError::invalid(
                &path.child("defaultRequest").key(name),
                request.to_string(),
                detail,
            ));
        }
    }
    errors
}

fn ratio_problems(
    ratio: &Quantity,
    min: Option<&Quantity>,
    max: Option<&Quantity>,
    error: impl Fn(String) -> FieldError,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if ratio.milli_value() < 1000 {
        errors.push(error(format!("ratio {ratio} is less than 1")));
    }
    if let (Some(min), Some(max)) = (min, max) {
        let limit = max.to_f64() / min.to_f64();
        if ratio.to_f64() > limit {
            errors.push(error(format!("ratio {ratio} is greater than max/min = {limit:.6}")));
        }
    }
    errors
}
