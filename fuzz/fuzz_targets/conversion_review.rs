//! Fuzzes [`kubewright_fuzz::reviews::conversion_review`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kubewright_fuzz::reviews::conversion_review(data));
