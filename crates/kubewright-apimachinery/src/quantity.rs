//! Resource quantities: `500m`, `1Gi`, `1e3`.
//!
//! A [`Quantity`] is exact: an integer times a power of ten. It keeps its notation and formats itself in
//! canonical form, which the server stores and returns: no fraction, and the largest suffix without loss.
//!
//! Upstream has arbitrary precision; here a quantity has at most 38 significant digits. Parsing rejects more,
//! and arithmetic beyond the limit is approximate. No crate is used, because none keeps the notation and rounds as
//! upstream's `resource.Quantity` does.

mod parse;

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Neg, Sub};

use serde_json::Value;

pub use parse::ParseError;

/// An exact quantity and its notation. Equality and order ignore the notation: `1Ki` equals `1024`.
#[derive(Debug, Clone)]
pub struct Quantity {
    mantissa: i128,
    exponent: i32,
    notation: Notation,
    /// Whether upstream stores the value as a scaled `i64` and not as a big decimal. Affects
    /// [`Quantity::as_i64`].
    small: bool,
    /// The original text, where upstream assumes that it is canonical. It sometimes is not: `1.500`.
    text: Option<Box<str>>,
}

/// The notation of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`: 12 times 2^20
    BinarySi,
    /// `12M`: 12 times 10^6
    DecimalSi,
}

impl Quantity {
    /// Creates an integer quantity.
    pub fn new(value: i64, notation: Notation) -> Self {
        Self { mantissa: i128::from(value), exponent: 0, notation, small: true, text: None }
    }

    /// Creates a quantity from thousandths.
    pub fn from_milli(value: i64, notation: Notation) -> Self {
        Self { exponent: -3, ..Self::new(value, notation) }
    }

    /// Parses a quantity. Rounds away from zero to a billionth.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::parse(text)
    }

    /// Reads a quantity from a field: a string, surrounded by optional white space, or a number; `null` is
    /// zero.
    pub fn from_json(value: &Value) -> Result<Self, ParseError> {
        match value {
            Value::Null => Ok(Self::new(0, Notation::DecimalSi)),
            Value::String(text) => Self::parse(text.trim()),
            Value::Number(number) => Self::parse(&number.to_string()),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(ParseError::Format),
        }
    }

    /// The notation.
    pub fn notation(&self) -> Notation {
        self.notation
    }

    /// Whether the quantity is zero.
    pub fn is_zero(&self) -> bool {
        self.mantissa == 0
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i32 {
        match self.mantissa.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// The value rounded away from zero to an integer, saturating at the range of `i64`.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// The value in thousandths, rounded like [`Quantity::value`].
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(-3)
    }

    /// The value in units of `10^scale`, rounded like [`Quantity::value`].
    pub fn scaled_value(&self, scale: i32) -> i64 {
        let shift = i64::from(self.exponent) - i64::from(scale);
        let scaled = if shift >= 0 {
            scale_up(self.mantissa, shift).unwrap_or(i128::MAX * i128::from(self.sign()))
        } else {
            let divisor = power_of_ten(-shift);
            let (quotient, exact) = match divisor {
                Some(divisor) => (self.mantissa / divisor, self.mantissa % divisor == 0),
                None => (0, self.is_zero()),
            };
            if exact { quotient } else { quotient + i128::from(self.sign()) }
        };
        i64::try_from(scaled).unwrap_or(if scaled < 0 { i64::MIN } else { i64::MAX })
    }

    /// The value, if upstream treats it as an integer: written without a fraction (not even a zero one), and
    /// in range.
    pub fn as_i64(&self) -> Option<i64> {
        if !self.small || self.exponent < 0 {
            return None;
        }
        i64::try_from(scale_up(self.mantissa, i64::from(self.exponent))?).ok()
    }

    /// The value as a float, approximately.
    #[expect(clippy::cast_precision_loss, reason = "the result is an approximation")]
    pub fn to_f64(&self) -> f64 {
        self.mantissa as f64 * 10_f64.powi(self.exponent)
    }

    fn compare(&self, mantissa: i128, exponent: i32) -> Ordering {
        let signs = self.mantissa.signum().cmp(&mantissa.signum());
        if signs != Ordering::Equal {
            return signs;
        }
        let shift = i64::from(self.exponent) - i64::from(exponent);
        // If the mantissa overflows at the other's scale, its absolute value is larger.
        if shift >= 0 {
            match scale_up(self.mantissa, shift) {
                Some(scaled) => scaled.cmp(&mantissa),
                None => self.mantissa.cmp(&0),
            }
        } else {
            match scale_up(mantissa, -shift) {
                Some(scaled) => self.mantissa.cmp(&scaled),
                None => 0.cmp(&mantissa),
            }
        }
    }

    /// The mantissa and decimal exponent of the canonical form: the exponent is a multiple of three and the
    /// mantissa has no other trailing zeros.
    fn canonical_decimal(&self) -> (String, i64) {
        let (mut mantissa, mut exponent) = (self.mantissa, i64::from(self.exponent));
        while mantissa % 10 == 0 {
            mantissa /= 10;
            exponent += 1;
        }
        let zeros = exponent.rem_euclid(3);
        let padding = ["", "0", "00"][usize::try_from(zeros).expect("a remainder is not negative")];
        (format!("{mantissa}{padding}"), exponent - zeros)
    }

    /// The canonical mantissa and the power of 1024; `None` if binary notation would lose precision or the
    /// value is too small for it.
    fn canonical_binary(&self) -> Option<(i128, usize)> {
        if self.compare(-1024, 0).is_gt() && self.compare(1024, 0).is_lt() {
            return None;
        }
        let mut mantissa = if self.exponent >= 0 {
            scale_up(self.mantissa, i64::from(self.exponent))?
        } else {
            let divisor = power_of_ten(-i64::from(self.exponent))?;
            (self.mantissa % divisor == 0).then(|| self.mantissa / divisor)?
        };
        let mut factors = 0;
        while mantissa % 1024 == 0 {
            mantissa /= 1024;
            factors += 1;
        }
        Some((mantissa, factors))
    }
}

/// The canonical form.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        if let Some(text) = &self.text {
            return f.pad(text);
        }
        if self.is_zero() {
            return f.pad("0");
        }
        if self.notation == Notation::BinarySi
            && let Some((mantissa, factors)) = self.canonical_binary()
        {
            // Upstream writes no suffix if the value exceeds the largest one.
            let suffix = BINARY.get(factors).copied().unwrap_or_default();
            return f.pad(&format!("{mantissa}{suffix}"));
        }
        let (mantissa, exponent) = self.canonical_decimal();
        if self.notation == Notation::DecimalExponent && exponent != 0 {
            return f.pad(&format!("{mantissa}e{exponent}"));
        }
        let suffix = parse::DECIMAL_SUFFIXES.iter().find(|(_, power)| i64::from(*power) == exponent);
        f.pad(&format!("{mantissa}{}", suffix.map_or("", |(suffix, _)| suffix)))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other.mantissa, other.exponent)
    }
}

/// The sum, in the notation of the first non-zero operand. Approximate if it needs more than 38 digits.
impl Add for &Quantity {
    type Output = Quantity;

    fn add(self, other: &Quantity) -> Quantity {
        let notation = if self.is_zero() { other.notation } else { self.notation };
        let small = self.small && other.small;
        if self.is_zero() || other.is_zero() {
            let sum = if self.is_zero() { other } else { self };
            return Quantity { notation, small, text: None, ..sum.clone() };
        }
        let exponent = self.exponent.min(other.exponent);
        let at_exponent = |q: &Quantity| scale_up(q.mantissa, i64::from(q.exponent) - i64::from(exponent));
        let (Some(a), Some(b)) = (at_exponent(self), at_exponent(other)) else {
            let greater = if self.exponent > other.exponent { self } else { other };
            return Quantity { notation, small: false, text: None, ..greater.clone() };
        };
        let mantissa = a.saturating_add(b);
        let fits = |n: i128| i64::try_from(n).is_ok();
        let small = small && fits(a) && fits(b) && fits(mantissa);
        Quantity { mantissa, exponent, notation, small, text: None }
    }
}

/// The difference; see [`Add`].
impl Sub for &Quantity {
    type Output = Quantity;

    fn sub(self, other: &Quantity) -> Quantity {
        self + &-other
    }
}

impl Neg for &Quantity {
    type Output = Quantity;

    fn neg(self) -> Quantity {
        Quantity { mantissa: self.mantissa.saturating_neg(), text: None, ..self.clone() }
    }
}

fn power_of_ten(exponent: i64) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

fn scale_up(mantissa: i128, exponent: i64) -> Option<i128> {
    if mantissa == 0 {
        return Some(0);
    }
    mantissa.checked_mul(power_of_ten(exponent)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn q(text: &str) -> Quantity {
        Quantity::parse(text).expect(text)
    }

    #[test]
    fn the_canonical_form_has_the_largest_suffix_and_no_fraction() {
        for (text, canonical) in [
            ("0", "0"),
            ("0Ki", "0"),
            ("-0", "0"),
            ("00", "0"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("1000", "1k"),
            ("1000m", "1"),
            ("1100m", "1100m"),
            ("0.001", "1m"),
            ("0.0005k", "500m"),
            ("100.0350k", "100035"),
            ("1000M", "1G"),
            ("0.001T", "1G"),
            ("1080000000n", "1080m"),
            ("12E", "12E"),
            ("1024Mi", "1Gi"),
            ("307200Ki", "300Mi"),
            ("1025024Mi", "1001Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Mi", "512Ki"),
            ("0.1Gi", "107374182400m"),
            ("0.5Ki", "512"),
            (".001Ki", "1024m"),
            ("8Ei", "9223372036854775807"),
            ("9223372036854775807Ki", "9223372036854775807"),
            ("7Ei", "7Ei"),
            ("1e3", "1e3"),
            ("1E3", "1E3"),
            ("100e1", "1e3"),
            ("0.001e0", "1e-3"),
            ("1000e-12", "1e-9"),
            (".001e12", "1e9"),
            ("1e100", "10e99"),
            ("10e2147483647", "100e2147483646"),
            ("1.", "1."),
            ("1.G", "1.G"),
            ("-1024Mi", "-1Gi"),
            ("-0.5", "-500m"),
            ("1000E", "1"),
        ] {
            assert_eq!(q(text).to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn text_that_upstream_considers_canonical_is_kept() {
        for text in ["1.500", "100.035k", "+5", "01Ki", "1025Ki", "500m", "4Ki", "1e03"] {
            assert_eq!(q(text).to_string(), text);
        }
        assert_eq!(q("1.000").to_string(), "1");
        assert_eq!(q("+8Ki").to_string(), "8Ki");
    }

    #[test]
    fn fractions_below_a_billionth_are_rounded_up() {
        for (text, canonical) in [
            ("3.001n", "4n"),
            ("-3.001n", "-4n"),
            ("1.1E-9", "2e-9"),
            ("0.0000000001", "1n"),
            ("0.00000012345", "124n"),
            ("1e-100", "1e-9"),
            (".000000000001Ki", "2n"),
            ("0.333333333333333333333333333333333333333333333333", "333333334n"),
            ("1.000000000000000000000000000000000000000000000Ei", "1Ei"),
        ] {
            assert_eq!(q(text).to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn errors_have_upstreams_text() {
        let format =
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        let suffix = "unable to parse quantity's suffix";
        for (text, message) in [
            ("", format),
            ("abc", format),
            (" 1", format),
            ("1 ", format),
            ("1.1.M", format),
            ("1+1.0M", format),
            ("0.1am", format),
            ("1e5k", format),
            ("1i", suffix),
            ("0.1mi", suffix),
            (".5i", suffix),
            ("1e", suffix),
            ("-3.01e-", suffix),
            ("1+5", suffix),
            ("1KiKi", suffix),
            ("1e99999999999999999999", suffix),
            ("1234567890123456789012345678901234567890", "unable to parse numeric part of quantity"),
            // Its canonical form has more digits and could not be parsed again.
            ("234567890123456789012345678901234567.8", "unable to parse numeric part of quantity"),
        ] {
            assert_eq!(Quantity::parse(text).expect_err(text).to_string(), message, "{text:?}");
        }
    }

    #[test]
    fn a_missing_number_parses_as_zero() {
        for text in ["-", "+", ".", "Ki", "m", "+.k"] {
            assert!(q(text).is_zero(), "{text}");
        }
    }

    #[test]
    fn quantities_compare_across_notations() {
        assert_eq!(q("1Ki"), q("1024"));
        assert_eq!(q("1000m"), q("1"));
        assert_eq!(q("1e3"), q("1k"));
        assert!(q("1G") < q("1Gi"));
        assert!(q("-1") < q("1n") && q("-2") < q("-1"));
        assert!(q("1e1000") > q("1E") && q("-1e1000") < q("-1E") && q("1n") < q("1e1000"));
    }

    #[test]
    fn sums_have_the_notation_of_the_first_non_zero_quantity() {
        assert_eq!((&q("1Gi") + &q("1024Mi")).to_string(), "2Gi");
        assert_eq!((&q("0") + &q("1Gi")).to_string(), "1Gi");
        assert_eq!((&q("100m") + &q("1")).to_string(), "1100m");
        assert_eq!((&q("1Gi") - &q("1Gi")).to_string(), "0");
        assert_eq!((&q("1Ki") - &q("2Ki")).to_string(), "-1Ki");
        assert_eq!((&q("1e1000") + &q("1")).to_string(), "10e999");
    }

    #[test]
    fn integers_are_rounded_away_from_zero_and_saturate() {
        assert_eq!(q("1").value(), 1);
        assert_eq!(q("1m").value(), 1);
        assert_eq!(q("-1m").value(), -1);
        assert_eq!(q("1001m").milli_value(), 1001);
        assert_eq!(q("1.0001").milli_value(), 1001);
        assert_eq!(q("1Gi").value(), 1 << 30);
        assert_eq!(q("1e30").value(), i64::MAX);
        assert_eq!(q("-1e300").value(), i64::MIN);
        assert_eq!(q("1n").scaled_value(50), 1);
        assert_eq!((q("0").sign(), q("-1n").sign(), q("1").sign()), (0, -1, 1));
    }

    #[test]
    fn a_quantity_written_with_a_fraction_is_not_an_integer() {
        assert_eq!(q("5k").as_i64(), Some(5000));
        assert_eq!(q("1Gi").as_i64(), Some(1 << 30));
        assert_eq!(q("1000m").as_i64(), None);
        assert_eq!(q("0.5Gi").as_i64(), None);
        assert_eq!(q("1e30").as_i64(), None);
        assert_eq!((&q("5k") + &q("1")).as_i64(), Some(5001));
        assert!((q("1500m").to_f64() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn fields_may_be_strings_or_numbers() {
        let read = |value: Value| Quantity::from_json(&value).map(|quantity| quantity.to_string());
        assert_eq!(read(json!(" 1Gi ")).unwrap(), "1Gi");
        assert_eq!(read(json!(2)).unwrap(), "2");
        assert_eq!(read(json!(0.5)).unwrap(), "500m");
        assert_eq!(read(json!(1.0)).unwrap(), "1");
        assert_eq!(read(json!(null)).unwrap(), "0");
        assert_eq!(read(json!(true)), Err(ParseError::Format));
        assert_eq!(read(json!({})), Err(ParseError::Format));
    }

    #[test]
    fn quantities_from_integers_are_canonical() {
        assert_eq!(Quantity::new(2048, Notation::BinarySi).to_string(), "2Ki");
        assert_eq!(Quantity::from_milli(1500, Notation::DecimalSi).to_string(), "1500m");
        assert_eq!(Quantity::new(2_000_000, Notation::DecimalExponent).to_string(), "2e6");
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_stable_and_keeps_the_value(
            text in "-?[1-9][0-9]{0,11}(\\.[0-9]{1,6})?(n|u|m||k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]|E1[0-9])",
        ) {
            let quantity = q(&text);
            let canonical = quantity.to_string();
            // Beyond `E` upstream loses the suffix.
            prop_assume!(quantity < q("1000E") && quantity > q("-1000E"));
            let again = q(&canonical);
            prop_assert_eq!(&again, &quantity);
            prop_assert_eq!(again.to_string(), canonical);
        }

        #[test]
        fn subtraction_inverts_addition(a in any::<i64>(), b in any::<i64>(), scale in 0..2) {
            let notation = Notation::DecimalSi;
            let (a, b) = if scale == 0 {
                (Quantity::new(a, notation), Quantity::from_milli(b, notation))
            } else {
                (Quantity::from_milli(a, notation), Quantity::new(b, notation))
            };
            prop_assert_eq!(&(&(&a + &b) - &b), &a);
            prop_assert_eq!(&a + &b, &b + &a);
            prop_assert_eq!(&-&-&a, &a);
        }

        #[test]
        fn quantities_are_ordered_by_value(a in -999_999_i64..999_999, b in -999_999_i64..999_999) {
            let milli = Quantity::from_milli(a, Notation::DecimalSi);
            let whole = Quantity::new(b, Notation::BinarySi);
            prop_assert_eq!(milli.cmp(&whole), a.cmp(&(b * 1000)));
        }

        #[test]
        fn no_input_panics(text in "[-+0-9.eEinumkKMGTP]{0,40}|.*") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let _ = (quantity.to_string(), quantity.value(), quantity.milli_value(), quantity.as_i64());
            }
        }
    }
}
