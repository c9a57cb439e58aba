//! Validation of PriorityLevelConfiguration. Does not check the fixed specs of mandatory objects.

use serde_json::Value;

use crate::flowcontrol::status;
use crate::validation::one_of;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

const MAX_QUEUES: i64 = 10_000_000;

/// Bits of the hash used for shuffle sharding.
const MAX_HASH_BITS: f64 = 60.0;

pub(super) fn create(object: &Value) -> ErrorList {
    let mut errors = priority_level(object.at("spec"), object.str_at("metadata.name"));
    errors.extend(status(object));
    errors
}

fn priority_level(spec: &Value, name: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec");
    let kind = spec.str_at("type");
    if (name == "exempt") != (kind == "Exempt") {
        let detail = "type must be 'Exempt' if and only if name is 'exempt'";
        errors.push(FieldError::invalid(&path.child("type"), kind, detail));
    }
    match kind {
        "Exempt" => {
            if spec.has("limited") {
                let detail = "must be nil if the type is not Limited";
                errors.push(FieldError::forbidden(&path.child("limited"), detail));
            }
            errors.extend(shares(spec.at("exempt"), true, &path.child("exempt")));
        }
        "Limited" => {
            if spec.has("exempt") {
                let detail = "must be nil if the type is Limited";
                errors.push(FieldError::forbidden(&path.child("exempt"), detail));
            }
            let path = path.child("limited");
            if spec.has("limited") {
                errors.extend(shares(spec.at("limited"), false, &path));
                errors.extend(limit_response(spec.at("limited.limitResponse"), &path.child("limitResponse")));
            } else {
                errors.push(FieldError::required(&path, "must not be empty when type is Limited"));
            }
        }
        kind => errors.extend(one_of(kind, &["Exempt", "Limited"], &path.child("type"))),
    }
    errors
}

fn shares(level: &Value, exempt: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(shares @ ..0) = level.int_at("nominalConcurrencyShares") {
        let detail = "must be a non-negative integer";
        errors.push(FieldError::invalid(&path.child("nominalConcurrencyShares"), shares, detail));
    }
    if let Some(percent) = level.int_at("lendablePercent").filter(|percent| !(0..=100).contains(percent)) {
        let detail = "must be between 0 and 100, inclusive";
        errors.push(FieldError::invalid(&path.child("lendablePercent"), percent, detail));
    }
    if !exempt && let Some(percent @ ..0) = level.int_at("borrowingLimitPercent") {
        let detail = "if specified, must be a non-negative integer";
        errors.push(FieldError::invalid(&path.child("borrowingLimitPercent"), percent, detail));
    }
    errors
}

fn limit_response(response: &Value, path: &Path) -> ErrorList {
    let queuing = path.child("queuing");
    match (response.str_at("type"), response.has("queuing")) {
        ("Reject", true) => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            vec![FieldError::forbidden(&queuing, detail)]
        }
        ("Queue", false) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            vec![FieldError::required(&queuing, detail)]
        }
        ("Queue", true) => queues(response.at("queuing"), &queuing),
        ("Reject", false) => ErrorList::new(),
        (kind, _) => one_of(kind, &["Queue", "Reject"], &path.child("type")).into_iter().collect(),
    }
}

fn queues(queuing: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let number = |name: &str| queuing.int_at(name).unwrap_or_default();
    let (limit, queues, hand) = (number("queueLengthLimit"), number("queues"), number("handSize"));
    let mut wrong = |name: &str, value: i64, detail: String| {
        errors.push(FieldError::invalid(&path.child(name), value, detail));
    };
    if limit <= 0 {
        wrong("queueLengthLimit", limit, "must be positive".to_owned());
    }
    if queues <= 0 {
        wrong("queues", queues, "must be positive".to_owned());
    } else if queues > MAX_QUEUES {
        wrong("queues", queues, format!("must not be greater than {MAX_QUEUES}"));
    }
    if hand <= 0 {
        wrong("handSize", hand, "must be positive".to_owned());
    } else if hand > queues {
        wrong("handSize", hand, format!("should not be greater than queues ({queues})"));
    } else if entropy_bits(queues, hand) > MAX_HASH_BITS {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {MAX_HASH_BITS}"
        );
        wrong("handSize", hand, detail);
    }
    errors
}

/// Entropy bits needed to choose a hand from a deck.
#[expect(clippy::cast_precision_loss, reason = "at most ten million queues")]
fn entropy_bits(deck: i64, hand: i64) -> f64 {
    (0..hand).map(|i| ((deck - i) as f64).log2()).sum::<f64>().ceil()
}
