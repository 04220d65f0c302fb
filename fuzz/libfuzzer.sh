#!/bin/sh
# Builds a target of this folder with the stable compiler, and runs it: libfuzzer.sh TARGET [libFuzzer's own flags].
# The flags are those of cargo-fuzz: counters at each edge, AddressSanitizer. RUSTC_BOOTSTRAP unlocks the sanitizer's flag.
set -eu
cd "$(dirname "$0")"
target=$1
shift
out=../target/fuzz
CARGO_TARGET_DIR=$out RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address --cfg fuzzing -Cdebug-assertions -Ccodegen-units=1" \
    cargo build --release --target x86_64-unknown-linux-gnu --bin "$target"
mkdir -p "$out/corpus/$target"
exec "$out/x86_64-unknown-linux-gnu/release/$target" -artifact_prefix="$out/corpus/" "$out/corpus/$target" "$@"
