//! libFuzzer entry for `framing::answers`; see fuzz/README.md.
#![no_main]

// Each target uses one of the two functions.
#[allow(dead_code)]
#[path = "../../crates/wire/tests/mutate/framing.rs"]
mod framing;
#[allow(dead_code)]
#[path = "../../crates/wire/tests/mutate/model.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|data: &[u8]| framing::answers(data));
