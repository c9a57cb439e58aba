//! Ranges of sizes and costs. Arithmetic saturates at `u64::MAX`.

use std::ops::Add;

/// From `min` to `max`, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Range {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Range {
    pub(crate) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    /// The identity of the union.
    pub(crate) const NOTHING: Self = Self { min: u64::MAX, max: 0 };

    pub(crate) const fn fixed(value: u64) -> Self {
        Self { min: value, max: value }
    }

    pub(crate) fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Multiplies both ends, rounding up.
    pub(crate) fn factor(self, per_unit: f64) -> Self {
        Self { min: factor(self.min, per_unit), max: factor(self.max, per_unit) }
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl Add for Range {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "upstream rounds this way; too large values saturate"
)]
fn factor(value: u64, per_unit: f64) -> u64 {
    (value as f64 * per_unit).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_saturate() {
        assert_eq!(Range::UNKNOWN + Range::fixed(1), Range { min: 1, max: u64::MAX });
        assert_eq!(Range::UNKNOWN.times(Range::fixed(2)).max, u64::MAX);
        assert_eq!(Range::UNKNOWN.factor(2.0).max, u64::MAX);
        assert_eq!(Range::fixed(11).factor(0.1), Range::fixed(2));
        assert_eq!(Range::NOTHING.union(Range::fixed(3)), Range::fixed(3));
    }
}
