//! libFuzzer entry for `network::sections`; see fuzz/README.md.
#![no_main]

// Each target uses one of its functions.
#[allow(dead_code)]
#[path = "../../crates/wire/tests/mutate/network.rs"]
mod network;

libfuzzer_sys::fuzz_target!(|data: &[u8]| network::sections(data));
