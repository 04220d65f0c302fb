//! libFuzzer entry for `oracle::client_hello`; see fuzz/README.md.
#![no_main]

// Each target uses one of the oracle's functions.
#[allow(dead_code)]
#[path = "../../crates/wire/tests/mutate/oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::client_hello(data));
