//! Fuzzes [`kubewright_fuzz::targets::field_selector`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kubewright_fuzz::targets::field_selector(data));
