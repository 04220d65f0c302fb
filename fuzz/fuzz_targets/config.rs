//! libFuzzer entry for `oracle::configuration`; see fuzz/README.md.
#![no_main]

#[path = "../../crates/edge/tests/mutate/oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::configuration(data));
