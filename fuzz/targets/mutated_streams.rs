#![no_main]
#![allow(
    missing_docs,
    reason = "the macro defines the function that the fuzzer calls"
)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolq_fuzz::mutated_streams(data));
