//! libFuzzer entry for files of recordings, for their blocks and for texts with secrets; see fuzz/README.md.
#![no_main]

#[path = "../../crates/recording/tests/mutate/oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    oracle::file(data);
    oracle::block(data);
    oracle::text(data);
});
