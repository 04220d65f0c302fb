//! Prints the CPU time of a process and its descendants in seconds, also of those that have ended, and how many live:
//! `cargo run -p weir-host --example family PID`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(pid) = std::env::args().nth(1).and_then(|word| word.parse().ok()) else {
        eprintln!("write the id of a process");
        return ExitCode::from(2);
    };
    match weir_host::family_cpu(pid) {
        Some(family) => println!("{} {}", family.cpu.as_secs_f64(), family.processes),
        None => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}
