//! Fuzzes [`kubewright_fuzz::targets::json_text`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kubewright_fuzz::targets::json_text(data));
