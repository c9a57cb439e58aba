//! Samples of several rounds and their statistics.

use std::time::Duration;

/// Samples in seconds, bytes or operations per second.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The median, which ignores single disturbed rounds.
    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        }
    }

    /// The interquartile range relative to the median: 0.1 is 10 %.
    pub(crate) fn spread(&self) -> f64 {
        let sorted = self.sorted();
        let quarter = sorted.len() / 4;
        match sorted.get(quarter).zip(sorted.iter().nth_back(quarter)) {
            Some((low, high)) if *high > *low => (high - low) / self.median(),
            _ => 0.0,
        }
    }

    /// The quantile at `part`, which is always one of the samples.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index into a short list"
        )]
        let at = (last as f64 * part).round() as usize;
        self.sorted().get(at).copied().unwrap_or(f64::NAN)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Converts seconds per operation to operations per second.
    pub(crate) fn recip(&self) -> Self {
        self.0.iter().map(|value| value.recip()).collect()
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<T: IntoIterator<Item = f64>>(values: T) -> Self {
        Self(values.into_iter().collect())
    }
}

/// Alternates between ours and the peer, so that other load on the machine affects both. The first call of
/// each is a warm-up and is not counted.
pub(crate) fn in_turn(
    rounds: u32,
    mut ours: impl FnMut() -> Duration,
    mut peer: impl FnMut() -> Duration,
) -> (Samples, Samples) {
    ours();
    peer();
    let (mut our_samples, mut peer_samples) = (Samples::default(), Samples::default());
    for _ in 0..rounds {
        our_samples.push(ours().as_secs_f64());
        peer_samples.push(peer().as_secs_f64());
    }
    (our_samples, peer_samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbed_round_moves_neither_median_nor_spread_much() {
        let calm: Samples = [10.0, 11.0, 10.0, 9.0, 10.0, 11.0, 9.0, 10.0].into_iter().collect();
        let disturbed: Samples = [10.0, 11.0, 10.0, 9.0, 10.0, 11.0, 9.0, 900.0].into_iter().collect();
        assert!((calm.median() - disturbed.median()).abs() < f64::EPSILON);
        assert!(disturbed.spread() < 0.25, "{}", disturbed.spread());
    }

    #[test]
    fn one_round_has_a_median_and_no_spread() {
        let one: Samples = [3.0].into_iter().collect();
        assert!((one.median() - 3.0).abs() < f64::EPSILON && one.spread() == 0.0);
    }

    #[test]
    fn quantiles_are_measured_values() {
        let samples: Samples = (0..=100).rev().map(f64::from).collect();
        assert!((samples.quantile(0.5) - 50.0).abs() < f64::EPSILON);
        assert!((samples.quantile(0.99) - 99.0).abs() < f64::EPSILON);
    }

    #[test]
    fn with_an_even_number_of_rounds_the_median_is_the_mean_of_the_middle_two() {
        let even: Samples = [1.0, 2.0, 4.0, 8.0].into_iter().collect();
        assert!((even.median() - 3.0).abs() < f64::EPSILON);
    }
}
