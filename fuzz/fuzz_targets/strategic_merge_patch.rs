//! Fuzzes [`kubewright_fuzz::targets::strategic_merge_patch`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kubewright_fuzz::targets::strategic_merge_patch(data));
