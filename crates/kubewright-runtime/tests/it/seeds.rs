//! The number of seeds, cases and schedules of randomized tests, from the environment.
//!
//! `KUBEWRIGHT_SEEDS` is a number of seeds, or a range such as `17..18` to repeat one. `KUBEWRIGHT_SCHEDULES` is the
//! number of schedules of a shuttle test, `KUBEWRIGHT_ROTATIONS` the number of CA rotations of a simulation, and
//! `PROPTEST_CASES` the number of cases of a property test. An invalid value fails the test: a soak run must not pass with
//! the defaults.

use std::ops::Range;
use std::str::FromStr;

use proptest::prelude::ProptestConfig;

/// The seeds of a test: `default` of them, unless `KUBEWRIGHT_SEEDS` is set.
pub(crate) fn seeds(default: u64) -> Range<u64> {
    let Some(text) = variable("KUBEWRIGHT_SEEDS") else { return 0..default };
    let read = |text: &str| number("KUBEWRIGHT_SEEDS", text);
    let range = text.split_once("..").map_or_else(|| 0..read(&text), |(start, end)| read(start)..read(end));
    assert!(!range.is_empty(), "KUBEWRIGHT_SEEDS={text} is an empty range of seeds");
    range
}

/// The configuration of a property test: `default` cases, unless `PROPTEST_CASES` is set.
pub(crate) fn cases(default: u32) -> ProptestConfig {
    let cases = variable("PROPTEST_CASES").map_or(default, |text| number("PROPTEST_CASES", &text));
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// The number of schedules of a shuttle test: `default`, unless `KUBEWRIGHT_SCHEDULES` is set.
pub(crate) fn schedules(default: usize) -> usize {
    variable("KUBEWRIGHT_SCHEDULES").map_or(default, |text| number("KUBEWRIGHT_SCHEDULES", &text))
}

/// The number of CA rotations of a simulation: `default`, unless `KUBEWRIGHT_ROTATIONS` is set.
pub(crate) fn rotations(default: u64) -> u64 {
    variable("KUBEWRIGHT_ROTATIONS").map_or(default, |text| number("KUBEWRIGHT_ROTATIONS", &text))
}

fn number<T: FromStr>(name: &str, text: &str) -> T {
    text.trim().parse().unwrap_or_else(|_| panic!("{name}: {text:?} is not a number"))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}
