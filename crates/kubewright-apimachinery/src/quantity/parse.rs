//! Parsing of quantities.
//!
//! Splits the text like upstream, including its quirks: a missing number is zero. Digits stay text until the
//! binary suffix is applied and the value is rounded to a billionth, so no input overflows.

use super::{Notation, Quantity};

/// Why a text is not a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The format is invalid.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number has too many digits.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The decimal suffixes with their exponents.
pub(super) const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// The smallest exponent.
const NANO: i64 = -9;

pub(super) fn parse(text: &str) -> Result<Quantity, ParseError> {
    if text.is_empty() {
        return Err(ParseError::Format);
    }
    let parts = split(text)?;
    let suffix = Suffix::parse(parts.suffix)?;
    let digits = [parts.whole, parts.fraction].concat();
    let fraction = parts.fraction.len();

    let (notation, exponent, factors) = match suffix {
        Suffix::Decimal(exponent) => (Notation::DecimalSi, i64::from(exponent), 0),
        Suffix::Exponent(exponent) => (Notation::DecimalExponent, i64::from(exponent), 0),
        Suffix::Binary(factors) => (Notation::BinarySi, 0, factors),
    };
    let exponent = exponent - i64::try_from(fraction).unwrap_or(i64::MAX);

    // Whether upstream stores the value as an `i64`, and whether it keeps the text as canonical.
    let (small, canonical) = match suffix {
        Suffix::Decimal(_) | Suffix::Exponent(_) => (
            digits.len() <= 18 && exponent >= NANO,
            exponent % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0'),
        ),
        Suffix::Binary(_) => {
            // Divisibility by eight depends on the last three digits only.
            let tail: u32 = digits[digits.len().saturating_sub(3)..].parse().unwrap_or_default();
            (fraction == 0 && digits.len() + 3 * factors <= 14, !tail.is_multiple_of(8))
        }
    };

    let (mantissa, exponent) = amount(&digits, exponent, factors)?;
    let sign = if parts.negative { -1 } else { 1 };
    let below_one = mantissa != 0 && exponent < 0 && mantissa < 10_i128.pow(exponent.unsigned_abs());
    Ok(Quantity {
        mantissa: sign * mantissa,
        exponent,
        notation: if notation == Notation::BinarySi && below_one { Notation::DecimalSi } else { notation },
        small,
        text: (small && canonical).then(|| text.into()),
    })
}

struct Parts<'a> {
    negative: bool,
    /// The digits before the point without leading zeros; at least one.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

fn split(text: &str) -> Result<Parts<'_>, ParseError> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = split_digits(unsigned.trim_start_matches('0'));
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);

    let after_letters =
        suffix.trim_start_matches(['e', 'E', 'i', 'n', 'u', 'm', 'k', 'K', 'M', 'G', 'T', 'P']);
    let after_sign = after_letters.strip_prefix(['-', '+']).unwrap_or(after_letters);
    if !split_digits(after_sign).1.is_empty() {
        return Err(ParseError::Format);
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    Ok(Parts { negative: text.starts_with('-'), whole, fraction, suffix })
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

#[derive(Clone, Copy)]
enum Suffix {
    /// A decimal suffix.
    Decimal(i32),
    /// A decimal exponent.
    Exponent(i32),
    /// A power of 1024.
    Binary(usize),
}

impl Suffix {
    fn parse(suffix: &str) -> Result<Self, ParseError> {
        if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(text, _)| *text == suffix) {
            return Ok(Self::Decimal(*exponent));
        }
        if let Some(factors) = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|text| *text == suffix) {
            return Ok(Self::Binary(factors + 1));
        }
        let exponent = suffix.strip_prefix(['e', 'E']).ok_or(ParseError::Suffix)?;
        let exponent: i64 = exponent.parse().map_err(|_| ParseError::Suffix)?;
        #[expect(clippy::cast_possible_truncation, reason = "upstream truncates it as well")]
        Ok(Self::Exponent(exponent as i32))
    }
}

/// Multiplies the number by `10^exponent` and `1024^factors` and rounds up to a billionth. Returns mantissa
/// and exponent. Values with a binary suffix saturate at `i64::MAX`.
fn amount(digits: &str, exponent: i64, factors: usize) -> Result<(i128, i32), ParseError> {
    let mut digits: Vec<u8> = digits.bytes().map(|digit| digit - b'0').collect();
    for _ in 0..factors {
        multiply(&mut digits, 1024);
    }
    let too_fine = usize::try_from(NANO - exponent).unwrap_or_default();
    let dropped = digits.split_off(digits.len().saturating_sub(too_fine));
    let round_up = dropped.iter().any(|&digit| digit != 0);
    let exponent = i32::try_from(exponent.max(NANO)).map_err(|_| ParseError::Numeric)?;

    let mantissa =
        digits.iter().try_fold(0_i128, |n, &digit| n.checked_mul(10)?.checked_add(i128::from(digit)));
    let mantissa = mantissa.and_then(|mantissa| mantissa.checked_add(i128::from(round_up)));
    if factors > 0 {
        // The exponent is between -9 and 0 here.
        let most = i128::from(i64::MAX) * 10_i128.pow(exponent.unsigned_abs());
        return Ok(mantissa
            .filter(|&mantissa| mantissa <= most)
            .map_or((i64::MAX.into(), 0), |n| (n, exponent)));
    }
    let mantissa = mantissa.ok_or(ParseError::Numeric)?;
    // The canonical form may append two zeros, and must be parseable again.
    let mut significant = mantissa;
    while significant != 0 && significant % 10 == 0 {
        significant /= 10;
    }
    if significant > i128::MAX / 100 { Err(ParseError::Numeric) } else { Ok((mantissa, exponent)) }
}

fn multiply(digits: &mut Vec<u8>, factor: u32) {
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        let product = u32::from(*digit) * factor + carry;
        *digit = last_digit(product);
        carry = product / 10;
    }
    while carry > 0 {
        digits.insert(0, last_digit(carry));
        carry /= 10;
    }
}

fn last_digit(number: u32) -> u8 {
    u8::try_from(number % 10).expect("a digit fits a u8")
}
