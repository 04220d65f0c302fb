//! libFuzzer entry for `http3::connections`; see fuzz/README.md.
#![no_main]

// Each target uses one of its functions.
#[allow(dead_code)]
#[path = "../../crates/wire/tests/mutate/http3.rs"]
mod http3;

libfuzzer_sys::fuzz_target!(|data: &[u8]| http3::connections(data));
