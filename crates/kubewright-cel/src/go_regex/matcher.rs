//! Matching with a limit of work.
//!
//! A search visits at most every state of the automaton for each byte. A small product of both is searched without
//! further checks. Otherwise the search uses a lazily built DFA only, whose work does not depend on the number of
//! states, and fails when the DFA outgrows its cache. RE2 limits searches in the same way.

use std::sync::{Arc, OnceLock};

use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::hybrid::regex::{self as hybrid, Regex as Finder};
use regex_automata::meta::{BuildError, Regex};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::iter::Searcher;
use regex_automata::{Input, MatchError};

/// Large enough for what Go accepts: a thousand repetitions of a Unicode class take some megabytes.
const SIZE_LIMIT: usize = 64 << 20;
/// Maximum number of states times bytes, some seconds of CPU time.
const MAX_WORK: usize = 100_000_000;
/// Maximum number of bytes that the searches for all matches read. Each search may read the rest of the text.
const MAX_SEARCHED: usize = 100_000_000;
/// Minimum size of a state of an automaton, in bytes.
const STATE: usize = 24;
/// Automata with more states are slow for short values, too.
const COSTLY: usize = 4_000;
/// Memory for the states of a lazily built DFA.
const DFA_CACHE: usize = 2 << 20;
/// The DFA gives up if the cache was cleared this often, and a state was used for fewer bytes on average.
const MAX_CLEARS: usize = 2;
const MIN_BYTES_PER_STATE: usize = 10;

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Matcher {
    source: String,
    regex: Regex,
    /// For products above [`MAX_WORK`]. `None` if it cannot be built.
    bounded: Arc<OnceLock<Option<Bounded>>>,
    /// The same, for the positions of matches.
    finder: Arc<OnceLock<Option<Finder>>>,
}

/// Matching a value would take too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the pattern is too complex for a value of {bytes} bytes")]
pub struct TooCostly {
    bytes: usize,
}

impl Matcher {
    pub(super) fn compile(source: &str) -> Result<Self, Box<BuildError>> {
        let config = Regex::config().nfa_size_limit(Some(SIZE_LIMIT)).which_captures(WhichCaptures::Implicit);
        let regex = Regex::builder().configure(config).build(source).map_err(Box::new)?;
        Ok(Self { source: source.to_owned(), regex, bounded: Arc::default(), finder: Arc::default() })
    }

    /// Whether the expression matches a part of the text.
    pub fn is_match(&self, text: &str) -> Result<bool, TooCostly> {
        if self.max_states().saturating_mul(text.len()) <= MAX_WORK {
            return Ok(self.regex.is_match(text));
        }
        let bounded = self.bounded.get_or_init(|| Bounded::compile(&self.source));
        match bounded.as_ref().map(|bounded| (bounded.is_match(text), bounded.states)) {
            Some((Some(matches), _)) => Ok(matches),
            Some((None, states)) if states.saturating_mul(text.len()) <= MAX_WORK => {
                Ok(self.regex.is_match(text))
            }
            _ => Err(TooCostly { bytes: text.len() }),
        }
    }

    /// The first `count` matches, from left to right.
    pub fn find<'t>(&self, text: &'t str, count: usize) -> Result<Vec<&'t str>, TooCostly> {
        let too_costly = TooCostly { bytes: text.len() };
        let searches = count.min(text.len() + 1);
        if self.max_states().saturating_mul(text.len()).saturating_mul(searches) <= MAX_WORK {
            return Ok(self.regex.find_iter(text).take(count).map(|found| &text[found.range()]).collect());
        }
        let finder = self.finder.get_or_init(|| finder(&self.source)).as_ref().ok_or(too_costly)?;
        let mut cache = finder.create_cache();
        let mut searcher = Searcher::new(Input::new(text));
        let (mut found, mut searched) = (Vec::new(), 0_usize);
        while found.len() < count {
            let next = searcher.try_advance(|input| {
                let read = |cache: &hybrid::Cache| {
                    let (forward, reverse) = cache.as_parts();
                    forward.search_total_len() + reverse.search_total_len()
                };
                let before = read(&cache);
                let next = finder.try_search(&mut cache, input);
                // The count starts again when the cache is cleared.
                let after = read(&cache);
                searched += after.checked_sub(before).unwrap_or(after);
                if searched > MAX_SEARCHED { Err(MatchError::gave_up(input.start())) } else { next }
            });
            match next {
                Ok(Some(next)) => found.push(&text[next.range()]),
                Ok(None) => break,
                Err(_) => return Err(too_costly),
            }
        }
        Ok(found)
    }

    /// Whether a match may need much CPU time even for a short value.
    pub fn is_costly(&self) -> bool {
        self.max_states() > COSTLY
    }

    /// The cost of compiling the expression in CEL's units: one for each state beyond those of usual
    /// expressions. The budget of a call, a million, is less than a second of CPU time.
    pub fn cost(&self) -> u64 {
        self.max_states().saturating_sub(COSTLY) as u64
    }

    /// An upper bound of the number of states.
    fn max_states(&self) -> usize {
        self.regex.memory_usage() / STATE
    }
}

#[derive(Debug)]
struct Bounded {
    dfa: DFA,
    states: usize,
}

impl Bounded {
    fn compile(source: &str) -> Option<Self> {
        let nfa = NFA::compiler().configure(nfa_config()).build(source).ok()?;
        let states = nfa.states().len();
        let dfa = DFA::builder().configure(dfa_config()).build_from_nfa(nfa).ok()?;
        Some(Self { dfa, states })
    }

    /// `None` if the search gave up.
    fn is_match(&self, text: &str) -> Option<bool> {
        let mut cache = dfa::Cache::new(&self.dfa);
        let found = self.dfa.try_search_fwd(&mut cache, &Input::new(text).earliest(true));
        found.ok().map(|found| found.is_some())
    }
}

fn finder(source: &str) -> Option<Finder> {
    Finder::builder().thompson(nfa_config()).dfa(dfa_config()).build(source).ok()
}

fn nfa_config() -> thompson::Config {
    thompson::Config::new().nfa_size_limit(Some(SIZE_LIMIT)).which_captures(WhichCaptures::None)
}

fn dfa_config() -> dfa::Config {
    DFA::config()
        .cache_capacity(DFA_CACHE)
        .skip_cache_capacity_check(true)
        .unicode_word_boundary(true)
        .minimum_cache_clear_count(Some(MAX_CLEARS))
        .minimum_bytes_per_state(Some(MIN_BYTES_PER_STATE))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Two letters in an order without a period.
    fn letters(count: u32) -> String {
        let bits = (0..count).scan(1_u32, |state, _| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some(*state >> 31)
        });
        bits.map(|bit| if bit == 0 { 'x' } else { '\u{e4}' }).collect()
    }

    #[test]
    fn a_long_value_is_matched_in_bounded_time() {
        let letters = letters(500_000);
        for pattern in [r"(\p{L}{1,100}){1,10}!", r"([^a]{1,30}){1,33}!", r"x(x|\p{L}){500}!"] {
            let matcher = Matcher::compile(pattern).unwrap();
            assert!(matcher.is_costly(), "{pattern}");
            let start = Instant::now();
            assert_ne!(matcher.is_match(&letters), Ok(true), "{pattern}");
            assert!(start.elapsed() < Duration::from_secs(30), "{pattern}: {:?}", start.elapsed());
        }
    }

    #[test]
    fn a_search_with_too_many_states_fails() {
        let (matcher, letters) = (Matcher::compile(r"x(x|\p{L}){500}!").unwrap(), letters(500_000));
        assert_eq!(matcher.is_match(&letters), Err(TooCostly { bytes: letters.len() }));
        let short = format!("x{}!", letters.chars().take(100).collect::<String>());
        assert_eq!(matcher.is_match(&short), Ok(false));
        let long: String = letters.chars().take(500).collect();
        assert_eq!(matcher.is_match(&format!("x{long}!")), Ok(true));
    }

    #[test]
    fn a_simple_pattern_matches_a_long_value() {
        let long = "a".repeat(3 << 20);
        for (pattern, matches) in [
            (r"^[a-z]([-a-z0-9]*[a-z0-9])?$", true),
            (r"^[^/\s]{1,1000}$", false),
            (r"\p{L}+!", false),
            (r"\p{L}+$", true),
            (r"(a|b)*a(a|b){5}$", true),
        ] {
            assert_eq!(Matcher::compile(pattern).unwrap().is_match(&long), Ok(matches), "{pattern}");
        }
    }

    #[test]
    fn patterns_of_conditions_are_not_costly() {
        for pattern in [
            r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ] {
            let matcher = Matcher::compile(pattern).unwrap();
            assert!(!matcher.is_costly(), "{}", matcher.max_states());
        }
    }

    #[test]
    fn all_matches_are_found_by_both_engines() {
        let text = "ab \u{e4}b aab ".repeat(3);
        for pattern in [r"\pL+", "b?", "a*b", "(?:)", r"(?-u:\b)", "x", "^ab", "b $"] {
            let matcher = Matcher::compile(pattern).unwrap();
            let long = format!("{}{text}", "  ".repeat(1 << 14));
            let start = matcher.find(&long, usize::MAX).unwrap();
            let expected: Vec<&str> =
                Regex::new(pattern).unwrap().find_iter(&long).map(|found| &long[found.range()]).collect();
            assert!(start == expected, "{pattern}");
            let expected: Vec<&str> =
                Regex::new(pattern).unwrap().find_iter(&text).map(|found| &text[found.range()]).collect();
            assert_eq!(matcher.find(&text, usize::MAX).unwrap(), expected, "{pattern}");
            assert_eq!(matcher.find(&text, 1).unwrap(), expected[..expected.len().min(1)], "{pattern}");
        }
    }

    #[test]
    fn searches_for_all_matches_are_bounded() {
        let text = "A".repeat(1 << 20);
        // Each search reads the rest of the text.
        let matcher = Matcher::compile(".*[^A-Z]|[A-Z]").unwrap();
        assert_eq!(matcher.find(&text, usize::MAX), Err(TooCostly { bytes: text.len() }));
        assert_eq!(matcher.find(&text, 2), Ok(vec!["A", "A"]));
    }
}
