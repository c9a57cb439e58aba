//! Worst-case cost of the library functions.

use super::estimate::Estimator;
use super::range::Range;
use super::{LIST, PER_CHARACTER, PER_REGEX_CHARACTER};
use crate::ast::{Expr, Kind, Literal};
use crate::types::Type;

/// An argument with its known size and schema type.
pub(super) struct Node<'a> {
    pub(super) path: Vec<String>,
    pub(super) of: &'a Type,
    pub(super) expr: Option<&'a Expr>,
    pub(super) size: Option<Range>,
}

/// The cost of a call without its arguments, and the size of the result if known.
pub(super) struct Known {
    pub(super) cost: Range,
    pub(super) size: Option<Range>,
}

#[expect(clippy::unnecessary_wraps, reason = "callers return the result directly")]
fn cost(cost: Range) -> Option<Known> {
    Some(Known { cost, size: None })
}

#[expect(clippy::unnecessary_wraps, reason = "callers return the result directly")]
fn sized(cost: Range, size: Range) -> Option<Known> {
    Some(Known { cost, size: Some(size) })
}

const ONE: Range = Range::fixed(1);

/// The assumed length of the regular expression behind a named format.
const FORMAT_REGEX: f64 = 128.0;

/// The maximum length of a format name.
const FORMAT_NAME: u64 = 64;

/// Cost of the overloads of CEL's extension libraries.
pub(super) fn of_overload(overload: &str, target: Option<&Node<'_>>, args: &[Node<'_>]) -> Option<Known> {
    let size = |node: &Node<'_>| node.size.unwrap_or(Range::UNKNOWN);
    let allocating = |factor: f64, size: Range| {
        Some(Known { cost: size.factor(factor) + ONE + Range::fixed(LIST), size: Some(size) })
    };
    match (overload, target, args) {
        ("list_sets_contains_list" | "list_sets_intersects_list", _, [a, b]) => {
            cost(size(a).times(size(b)) + ONE)
        }
        ("list_sets_equivalent_list", _, [a, b]) => cost(size(a).times(size(b)).factor(2.0) + ONE),
        ("list_slice", Some(target), [start, end]) => {
            let (start, end) = (constant(start).unwrap_or(0), constant(end).unwrap_or(size(target).max));
            allocating(1.0, Range::fixed(end.wrapping_sub(start)))
        }
        ("list_flatten" | "list_reverse", Some(target), []) => allocating(1.0, size(target)),
        #[expect(clippy::cast_precision_loss, reason = "depths are small")]
        ("list_flatten_int", Some(target), [depth]) => {
            allocating(constant(depth).unwrap_or(u64::MAX) as f64, size(target))
        }
        ("lists_range", None, [count]) => allocating(1.0, Range::fixed(constant(count).unwrap_or(u64::MAX))),
        ("list_distinct", Some(target), []) => allocating(2.0, size(target).times(size(target))),
        (_, Some(target), []) if overload.ends_with("_sort") => {
            allocating(sort_factor(overload), size(target).times(size(target)))
        }
        (_, Some(_), [keys]) if overload.ends_with("_sortByAssociatedKeys") => {
            allocating(sort_factor(overload), size(keys).times(size(keys)))
        }
        _ => None,
    }
}

fn sort_factor(overload: &str) -> f64 {
    let is_text = overload.starts_with("list_string") || overload.starts_with("list_bytes");
    if is_text { 2.0 + PER_CHARACTER } else { 2.0 }
}

fn constant(node: &Node<'_>) -> Option<u64> {
    match &node.expr?.kind {
        Kind::Literal(Literal::Int(value)) => u64::try_from(*value).ok(),
        Kind::Literal(Literal::Uint(value)) => Some(*value),
        _ => None,
    }
}

/// Cost of Kubernetes' functions, and of some CEL functions that Kubernetes overrides.
pub(super) fn of_function(
    estimator: &Estimator<'_>,
    function: &str,
    overload: &str,
    target: Option<&Node<'_>>,
    args: &[Node<'_>],
) -> Option<Known> {
    let size =
        |node: &Node<'_>| node.size.or_else(|| estimator.declared_size(&node.path)).unwrap_or(Range::UNKNOWN);
    let first = || args.first().map(size);
    match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            let target = target?;
            let Some(item) = items(target) else { return cost(size(target).factor(PER_CHARACTER)) };
            let mut per_item = ONE;
            if matches!(item.of, Type::String | Type::Bytes) {
                per_item = per_item + size(&item).factor(PER_CHARACTER);
            }
            cost(size(target).times(per_item))
        }
        "url" if args.len() == 1 => sized(first()?.factor(PER_CHARACTER), first()?),
        "lowerAscii" | "upperAscii" | "substring" | "trim" => {
            let size = size(target?);
            sized(size.factor(PER_CHARACTER), size)
        }
        "replace" => {
            let (text, [old, new, ..]) = (size(target?), args) else { return None };
            sized(text.factor(2.0 * PER_CHARACTER), replaced(text, size(old), size(new)))
        }
        "split" => {
            let text = size(target?);
            let max = args.get(1).and_then(constant_int).unwrap_or(text.max);
            sized(text.factor(2.0 * PER_CHARACTER), Range { min: 0, max })
        }
        "join" => {
            let target = target?;
            let count = size(target);
            let mut joined = items(target).map_or(Range::default(), |item| count.times(size(&item)));
            if let Some(separator) = first() {
                let between = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
                joined = joined + separator.times(between);
            }
            sized(joined.factor(PER_CHARACTER), joined)
        }
        "find" | "findAll" => {
            let text = size(target?);
            let per_text = (text + ONE).factor(PER_CHARACTER);
            sized(per_text.times(first()?.factor(PER_REGEX_CHARACTER)), Range { min: 0, max: text.max })
        }
        "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            cost(first()?.factor(PER_CHARACTER))
        }
        "ip" if overload == "cidr_ip" => cost(ONE),
        "ip" => cost(first()?.factor(PER_CHARACTER)),
        "ip.isCanonical" => cost(first()?.factor(2.0 * PER_CHARACTER)),
        _ if super::costs_one(function) => cost(ONE),
        "check" => cost(Range::fixed(super::AUTHORIZATION_CHECK)),
        "containsIP" | "containsCIDR" => {
            let address = Range { min: 4, max: 16 };
            let mut sum = (address + address).factor(PER_CHARACTER);
            if function == "containsCIDR" {
                sum = sum + address.factor(PER_CHARACTER) + ONE;
            }
            if overload.ends_with("_string") {
                sum = sum + first()?.factor(PER_CHARACTER);
            }
            cost(sum)
        }
        "validate" => cost(first()?.factor(PER_CHARACTER).factor(FORMAT_REGEX * PER_REGEX_CHARACTER)),
        "_==_" => equality(args),
        _ => None,
    }
}

/// The items of a list, as far as they are known.
fn items<'a>(list: &Node<'a>) -> Option<Node<'a>> {
    let of = *list.of.params().first()?;
    let mut path = list.path.clone();
    if !path.is_empty() {
        path.push("@items".to_owned());
    }
    Some(Node { path, of, expr: None, size: None })
}

fn constant_int(node: &Node<'_>) -> Option<u64> {
    match &node.expr?.kind {
        Kind::Literal(Literal::Int(value)) => Some(value.cast_unsigned()),
        _ => None,
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "upstream rounds this way; too large values saturate"
)]
fn replaced(text: Range, old: Range, new: Range) -> Range {
    let (mut count, mut kept) = (Range::default(), Range::default());
    if old.min == 0 {
        // The empty string matches around every character.
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if new.max <= old.min {
        kept.max = text.max;
    } else {
        count.max = (text.max as f64 / old.min as f64).ceil() as u64;
    }
    if old.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if old.max <= new.min {
        kept.min = text.min;
    } else {
        count.min = (text.min as f64 / old.max as f64).ceil() as u64;
    }
    count.times(new) + kept
}

fn equality(args: &[Node<'_>]) -> Option<Known> {
    let [a, b] = args else { return None };
    if a.of != b.of {
        return None;
    }
    match a.of {
        Type::Opaque(name, _) if matches!(&**name, "net.IP" | "net.CIDR") => cost(ONE),
        Type::Object(name) => match &**name {
            "kubernetes.Quantity" | "kubernetes.Semver" => cost(ONE),
            "kubernetes.NamedFormat" => cost(Range { min: 1, max: FORMAT_NAME }.factor(PER_CHARACTER)),
            "kubernetes.URL" => {
                let max = b.size.map_or(1, |size| size.max);
                cost(Range { min: 1, max }.factor(PER_CHARACTER))
            }
            _ => None,
        },
        _ => None,
    }
}
