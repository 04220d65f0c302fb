#!/bin/sh
# Builds waits.bpf.o of waits.bpf.c, and notes which source it is of: `cargo test -p weir-lab` asks whether they belong together.
# Needs clang and llvm-strip (Debian: clang, llvm); whoever builds weir needs neither.
set -eu
cd "$(dirname "$0")"
clang -O2 -g -target bpf -mcpu=v3 -Wall -Werror -fdebug-prefix-map="$PWD=." -c waits.bpf.c -o waits.bpf.o
llvm-strip -g waits.bpf.o
sha256sum waits.bpf.c waits.bpf.o > waits.sha256
