//! The fuzz targets in the ordinary test suite: mutated seeds and random bytes.
//!
//! The inputs are the same in every run; set `PROPTEST_RNG_SEED` or `PROPTEST_CASES` to try others, or run
//! libFuzzer with `fuzz/` at the root of the repository.

mod choices;
mod objects;
#[expect(unreachable_pub, reason = "the libFuzzer crate includes this file and calls the functions")]
mod reviews;
mod seeds;
#[expect(unreachable_pub, reason = "the libFuzzer crate includes this file and calls the functions")]
mod targets;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

/// Tokens that parsers treat specially.
const WORDS: &[&str] = &[
    "\"",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\\",
    "\\u",
    "\\ud800",
    "null",
    "-",
    "e",
    "1e999",
    "00",
    "0.1",
    "(",
    ")",
    "!",
    "=",
    "!=",
    " in ",
    " notin ",
    "<",
    ">",
    "/",
    "~",
    "~0",
    "~1",
    "-1",
    "$patch",
    "\"$patch\":\"delete\"",
    "$setElementOrder/",
    "$retainKeys",
    "\"op\":\"copy\"",
    "\"from\":\"\"",
    "\"path\":\"\"",
    "Ki",
    "Ei",
    "m",
    "&a ",
    "*a",
    "<<: ",
    "- ",
    "|\n",
    "!!",
    "\n",
    "\t",
    "\0",
    "%",
    "%00",
    "%2F",
    "?",
    "&",
    "watch=1",
    "limit=1",
    "continue=",
    "resourceVersion=0",
    "status",
    "..",
    "é",
    "\u{feff}",
    "9223372036854775808",
    "99999999999999999999",
];

/// One change to a seed.
#[derive(Debug, Clone)]
enum Mutation {
    Remove(Index, usize),
    Repeat(Index, usize),
    Set(Index, u8),
    Word(Index, &'static str),
    Swap(Index, Index),
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let len = bytes.len() + 1;
        match self {
            Self::Remove(at, count) => {
                let at = at.index(len);
                bytes.drain(at..(at + count).min(bytes.len()));
            }
            Self::Repeat(at, count) => {
                let at = at.index(len);
                let piece = bytes[at..(at + count).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            Self::Set(at, byte) => {
                let at = at.index(len);
                if let Some(old) = bytes.get_mut(at) {
                    *old = *byte;
                }
            }
            Self::Word(at, word) => {
                let at = at.index(len);
                bytes.splice(at..at, word.bytes());
            }
            Self::Swap(a, b) => {
                let (a, b) = (a.index(len), b.index(len));
                if a.max(b) < bytes.len() {
                    bytes.swap(a, b);
                }
            }
        }
    }
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    prop_oneof![
        1 => (at(), 1..20_usize).prop_map(|(at, count)| Mutation::Remove(at, count)),
        1 => (at(), 1..40_usize).prop_map(|(at, count)| Mutation::Repeat(at, count)),
        1 => (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        3 => (at(), select(WORDS)).prop_map(|(at, word)| Mutation::Word(at, word)),
        1 => (at(), at()).prop_map(|(a, b)| Mutation::Swap(a, b)),
    ]
}

/// A seed with a few mutations, or random bytes.
fn inputs(seeds: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let mutated = (select(seeds), prop::collection::vec(mutation(), 0..6)).prop_map(|(seed, mutations)| {
        let mut bytes = seed.as_bytes().to_vec();
        for mutation in mutations {
            mutation.apply(&mut bytes);
        }
        bytes
    });
    prop_oneof![8 => mutated, 1 => prop::collection::vec(any::<u8>(), 0..64)]
}

/// The same, after a byte that selects a type.
fn inputs_of_a_type(seeds: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    (any::<u8>(), inputs(seeds)).prop_map(|(choice, mut bytes)| {
        bytes.insert(0, choice);
        bytes
    })
}

fn run(cases: u32, inputs: impl Strategy<Value = Vec<u8>>, target: fn(&[u8])) {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(1);
    }
    let outcome = TestRunner::new(config).run(&inputs, |bytes| {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        std::panic::catch_unwind(|| target(&bytes)).map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
            TestCaseError::fail(format!("{text}\nwith {shown}"))
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn json_round_trips() {
    run(3_000, inputs(seeds::JSON), targets::json_text);
}

#[test]
fn label_selectors_round_trip() {
    run(3_000, inputs(seeds::LABEL_SELECTORS), targets::label_selector);
}

#[test]
fn field_selectors_round_trip() {
    run(3_000, inputs(seeds::FIELD_SELECTORS), targets::field_selector);
}

#[test]
fn quantities_round_trip() {
    run(3_000, inputs(seeds::QUANTITIES), targets::quantity);
}

#[test]
fn json_patches_are_applied_or_rejected() {
    run(1_000, inputs(seeds::JSON_PATCHES), targets::json_patch);
}

#[test]
fn merge_patches_are_idempotent() {
    run(1_000, inputs(seeds::MERGE_PATCHES), targets::merge_patch);
}

#[test]
fn strategic_merge_patches_are_applied_or_rejected() {
    run(1_000, inputs_of_a_type(seeds::STRATEGIC_PATCHES), targets::strategic_merge_patch);
}

#[test]
fn objects_decode_to_themselves() {
    static TEXTS: std::sync::LazyLock<Vec<&'static str>> =
        std::sync::LazyLock::new(|| objects::VICTIMS.iter().map(|(_, text)| *text).collect());
    run(1_500, inputs_of_a_type(&TEXTS), targets::object);
}

#[test]
fn yaml_bodies_are_answered() {
    run(400, inputs(seeds::YAMLS), targets::yaml);
}

#[test]
fn protobuf_bodies_are_answered() {
    let bodies = prop::collection::vec(any::<u8>(), 0..200);
    let objects = (select(objects::VICTIMS), prop::collection::vec(mutation(), 0..6)).prop_map(
        |((_, text), mutations)| {
            let object = serde_json::from_str(text).expect("the object is JSON");
            let mut bytes = kubewright_apis::protobuf::encode(&object).expect("the kind is built in");
            for mutation in mutations {
                mutation.apply(&mut bytes);
            }
            bytes
        },
    );
    run(600, prop_oneof![8 => objects, 1 => bodies], targets::protobuf);
}

#[test]
fn admission_webhook_responses_are_accepted_or_rejected() {
    run(600, inputs(seeds::ADMISSION_REVIEWS), reviews::admission_review);
}

#[test]
fn conversion_webhook_responses_are_accepted_or_rejected() {
    run(600, inputs(seeds::CONVERSION_REVIEWS), reviews::conversion_review);
}

#[test]
fn requests_are_answered() {
    run(1_000, inputs(seeds::REQUESTS), targets::request);
}

#[test]
fn objects_of_every_kind_are_created_changed_and_deleted() {
    run(400, prop::collection::vec(any::<u8>(), 0..1_000), targets::life);
}
