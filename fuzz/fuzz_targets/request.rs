//! Fuzzes [`kubewright_fuzz::targets::request`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kubewright_fuzz::targets::request(data));
