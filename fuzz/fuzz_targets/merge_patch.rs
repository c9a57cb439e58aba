//! Fuzzes [`kubewright_fuzz::targets::merge_patch`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kubewright_fuzz::targets::merge_patch(data));
