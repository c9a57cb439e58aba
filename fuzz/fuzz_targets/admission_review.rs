//! Fuzzes [`kubewright_fuzz::reviews::admission_review`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kubewright_fuzz::reviews::admission_review(data));
