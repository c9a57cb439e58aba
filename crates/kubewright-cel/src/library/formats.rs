//! Named formats: `format.dns1123Label().validate(text)`.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

use super::Function;
use super::{time, url};
use crate::value::{Evaluated, Extension, Value};
use kubewright_apimachinery::names;

/// A named string format.
#[derive(Debug)]
pub struct NamedFormat {
    /// Identifies the format.
    pub(crate) name: &'static str,
    /// The assumed length of the regular expression, for costs.
    pub(crate) regex_size: u64,
    check: fn(&str) -> Vec<String>,
}

impl NamedFormat {
    fn of(function: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|(name, _)| *name == function).map(|(_, format)| format)
    }
}

const UUID_PATTERN_LENGTH: u64 = 83;
const DATE_TIME_PATTERN_LENGTH: u64 = 112;

static FORMATS: [(&str, NamedFormat); 13] = [
    ("dns1123Label", NamedFormat { name: "DNS1123Label", regex_size: 30, check: names::dns1123_label }),
    (
        "dns1123Subdomain",
        NamedFormat { name: "DNS1123Subdomain", regex_size: 60, check: names::dns1123_subdomain },
    ),
    ("dns1035Label", NamedFormat { name: "DNS1035Label", regex_size: 30, check: names::dns1035_label }),
    ("qualifiedName", NamedFormat { name: "QualifiedName", regex_size: 60, check: names::label_key }),
    (
        "dns1123LabelPrefix",
        NamedFormat {
            name: "DNS1123LabelPrefix",
            regex_size: 30,
            check: |text| names::dns1123_label(&names::mask_trailing_dash(text)),
        },
    ),
    (
        "dns1123SubdomainPrefix",
        NamedFormat {
            name: "DNS1123SubdomainPrefix",
            regex_size: 60,
            check: |text| names::dns1123_subdomain(&names::mask_trailing_dash(text)),
        },
    ),
    (
        "dns1035LabelPrefix",
        NamedFormat {
            name: "DNS1035LabelPrefix",
            regex_size: 30,
            check: |text| names::dns1035_label(&names::mask_trailing_dash(text)),
        },
    ),
    ("labelValue", NamedFormat { name: "LabelValue", regex_size: 40, check: names::label_value }),
    (
        "uri",
        NamedFormat { name: "URI", regex_size: 1103, check: |text| url::problem(text).into_iter().collect() },
    ),
    (
        "uuid",
        NamedFormat {
            name: "uuid",
            regex_size: UUID_PATTERN_LENGTH,
            check: |text| error_unless(is_uuid(text), "does not match the UUID format"),
        },
    ),
    (
        "byte",
        NamedFormat {
            name: "byte",
            regex_size: 84,
            check: |text| error_unless(decode_base64(text).is_some(), "invalid base64"),
        },
    ),
    (
        "date",
        NamedFormat {
            name: "date",
            regex_size: DATE_TIME_PATTERN_LENGTH,
            check: |text| error_unless(time::parse_date(text).is_some(), "invalid date"),
        },
    ),
    (
        "datetime",
        NamedFormat {
            name: "datetime",
            regex_size: DATE_TIME_PATTERN_LENGTH,
            check: |text| error_unless(time::parse_rfc3339(text).is_some(), "invalid datetime"),
        },
    ),
];

fn error_unless(fits: bool, problem: &str) -> Vec<String> {
    if fits { Vec::new() } else { vec![problem.to_owned()] }
}

/// Five groups of hexadecimal digits; the dashes are optional.
fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (i, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let group = rest.get(..length);
        if !group.is_some_and(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            return false;
        }
        rest = &rest[length..];
    }
    rest.is_empty()
}

/// Go ignores the unused bits of the last digit.
const LENIENT_BITS: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Decodes standard base64 with padding. Ignores line breaks.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    LENIENT_BITS.decode(digits).ok()
}

fn value<'a>(format: &'static NamedFormat) -> Value<'a> {
    Value::Extension(Extension::Format(format))
}

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "validate" => |args| match args {
            [Value::Extension(Extension::Format(format)), Value::String(text)] => {
                let problems = (format.check)(text);
                Some(Ok(if problems.is_empty() {
                    Value::Optional(None)
                } else {
                    Value::some(Value::strings(problems))
                }))
            }
            _ => None,
        },
        "format.named" => |args| match args {
            [Value::String(name)] => Some(Ok(
                NamedFormat::of(name).map_or(Value::Optional(None), |format| Value::some(value(format)))
            )),
            _ => None,
        },
        _ => return None,
    })
}

/// The format that `format.name()` returns.
pub(crate) fn constant<'a>(function: &str) -> Option<Evaluated<'a>> {
    NamedFormat::of(function.strip_prefix("format.")?).map(|format| Ok(value(format)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_strict() {
        assert_eq!(decode_base64("aGVsbG8="), Some(b"hello".to_vec()));
        assert_eq!(decode_base64("aGVsbG8"), None);
        assert_eq!(decode_base64("aG=="), Some(b"h".to_vec()));
        assert_eq!(decode_base64(""), Some(Vec::new()));
        assert_eq!(decode_base64("a=Vs"), None);
    }

    #[test]
    fn uuids_may_lack_dashes() {
        assert!(
            is_uuid("123e4567-e89b-12d3-a456-426614174000") && is_uuid("123e4567e89b12d3a456426614174000")
        );
        assert!(
            !is_uuid("123e4567-e89b-12d3-a456-42661417400")
                && !is_uuid("x23e4567-e89b-12d3-a456-426614174000")
        );
    }
}
