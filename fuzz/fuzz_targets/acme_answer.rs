//! libFuzzer entry for `oracle::body` and `oracle::field` of `crates/acme/tests/mutate`; see fuzz/README.md.
#![no_main]

#[path = "../../crates/acme/tests/mutate/oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    oracle::body(data);
    oracle::field(data);
});
