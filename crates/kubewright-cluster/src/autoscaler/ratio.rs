//! How a metric stands to its target. Whole numbers throughout, so that the same numbers give the same answer.

/// A metric is nearly at its target within a tenth.
const TOLERANCE_PARTS: i128 = 10;

/// So much of so much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ratio {
    current: i128,
    target: i128,
}

impl Ratio {
    pub(super) fn new(current: i64, target: i64) -> Self {
        Self { current: current.into(), target: i128::from(target).max(1) }
    }

    /// Whether it is not worth changing anything.
    pub(super) fn is_near(self) -> bool {
        (self.current - self.target).abs() * TOLERANCE_PARTS <= self.target
    }

    pub(super) fn is_above(self) -> bool {
        self.current > self.target
    }

    pub(super) fn is_below(self) -> bool {
        self.current < self.target
    }

    /// So many times as much, rounded up.
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
    fn a_tenth_more_or_less_is_near_and_the_rest_is_rounded_up() {
        assert!(Ratio::new(110, 100).is_near() && Ratio::new(90, 100).is_near());
        assert!(!Ratio::new(111, 100).is_near() && !Ratio::new(89, 100).is_near());
        assert_eq!(Ratio::new(150, 100).of(3), 5);
        assert_eq!(Ratio::new(110, 100).of(10), 11);
        assert_eq!(Ratio::new(0, 100).of(10), 0);
        assert_eq!(Ratio::new(i64::MAX, 1).of(10), i32::MAX);
    }
}
