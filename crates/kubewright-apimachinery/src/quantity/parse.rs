//! Reading quantities.
//!
//! The text is split by hand as upstream splits it, oddities included: a missing number is zero. Digits are
//! kept as digits until the binary suffix is multiplied in and what is finer than a billionth is rounded
//! away, so no input overflows on the way.

use super::{Notation, Quantity};

/// Why a text is no quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// It does not look like one.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// Its number is too long.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// Its suffix is none.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The suffixes of powers of ten.
pub(super) const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// The finest scale.
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

    // What upstream holds as an `i64`, and which texts of these it keeps.
    let (small, canonical) = match suffix {
        Suffix::Decimal(_) | Suffix::Exponent(_) => (
            digits.len() <= 18 && exponent >= NANO,
            exponent % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0'),
        ),
        Suffix::Binary(_) => {
            // A multiple of eight depends on the last three digits only.
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
    /// The digits before the point without leading zeros, but at least one.
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
    /// A power of ten.
    Decimal(i32),
    /// A power of ten, written as such.
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
        #[expect(clippy::cast_possible_truncation, reason = "upstream truncates it so")]
        Ok(Self::Exponent(exponent as i32))
    }
}

/// The number times `10^exponent` and `1024^factors`, rounded up to a billionth: a mantissa and its exponent.
/// What has a binary suffix is at most `i64::MAX`.
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
        // The exponent is not positive here, and not below that of a billionth.
        let most = i128::from(i64::MAX) * 10_i128.pow(exponent.unsigned_abs());
        return Ok(mantissa
            .filter(|&mantissa| mantissa <= most)
            .map_or((i64::MAX.into(), 0), |n| (n, exponent)));
    }
    let mantissa = mantissa.ok_or(ParseError::Numeric)?;
    // Printing may append two zeros, and what was printed must be read again.
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
    u8::try_from(number % 10).expect("a digit fits")
}
