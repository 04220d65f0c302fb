//! Running other programs: said aloud, and a failure names what failed.

use std::process::Command;

/// `cargo WORDS`, by the cargo that runs this xtask.
pub fn cargo(words: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words.split_whitespace());
    command
}

/// Runs to the end with this process's own output; an exit code other than 0 is an error.
pub fn run(command: &mut Command) -> Result<(), String> {
    let said = spoken(command);
    println!("\n$ {said}");
    let status = command.status().map_err(|e| format!("{said}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{said}: {status}")) }
}

/// Runs to the end and gives what it printed.
pub fn output(command: &mut Command) -> Result<String, String> {
    let said = spoken(command);
    let output = command.output().map_err(|e| format!("{said}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{said}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
    }
}

/// The command as a person would type it; cargo without the path it was found by.
pub fn spoken(command: &Command) -> String {
    let settings = command.get_envs().filter_map(|(name, value)| {
        value.map(|value| format!("{}={} ", name.to_string_lossy(), value.to_string_lossy()))
    });
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let arguments = command.get_args().map(|argument| format!(" {}", argument.to_string_lossy()));
    settings.chain([program]).chain(arguments).collect()
}
