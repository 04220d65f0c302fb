//! Prints `docs/reference/artillery-keys.md`.
#![allow(clippy::print_stdout)]

fn main() {
    print!("{}", weir_load::script::reference());
}
