//! The ratio of a metric to its target. Integer arithmetic, so results are deterministic.

/// The tolerance is one tenth.
const TOLERANCE_PARTS: i128 = 10;

/// The current value of a metric divided by its target, without rounding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ratio {
    current: i128,
    target: i128,
}

impl Ratio {
    pub(super) fn new(current: i64, target: i64) -> Self {
        Self { current: current.into(), target: i128::from(target).max(1) }
    }

    /// Whether the ratio is within the tolerance.
    pub(super) fn is_near(self) -> bool {
        (self.current - self.target).abs() * TOLERANCE_PARTS <= self.target
    }

    pub(super) fn is_above(self) -> bool {
        self.current > self.target
    }

    pub(super) fn is_below(self) -> bool {
        self.current < self.target
    }

    /// Multiplies a count, rounding up.
    pub(super) fn of(self, count: usize) -> i32 {
        let count = i128::try_from(count).unwrap_or(i128::MAX);
        let product = self.current.saturating_mul(count).saturating_add(self.target - 1);
        i32::try_from(product.div_euclid(self.target)).unwrap_or(i32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_within_a_tenth_are_tolerated_and_counts_round_up() {
        assert!(Ratio::new(110, 100).is_near() && Ratio::new(90, 100).is_near());
        assert!(!Ratio::new(111, 100).is_near() && !Ratio::new(89, 100).is_near());
        assert_eq!(Ratio::new(150, 100).of(3), 5);
        assert_eq!(Ratio::new(110, 100).of(10), 11);
        assert_eq!(Ratio::new(0, 100).of(10), 0);
        assert_eq!(Ratio::new(i64::MAX, 1).of(10), i32::MAX);
    }
}
