//! The delay of Node.js' event loop, from a preloaded module. The module measures inside the process (`perf_hooks`),
//! and writes a line every half second into the block's directory. It changes the watched process, so it is loaded
//! only if the user asks for it.

use std::fs;
use std::path::{Path, PathBuf};

use super::program::Probe;
use super::ways::Reading;

/// The preloaded module, in the block's directory.
pub const MODULE: &str = "loop.cjs";
/// The variable that names the directory.
const DIRECTORY: &str = "WEIR_LOOP";
/// Most bytes of a line.
const LINE_MAX: u64 = 256;

/// The module. Its histograms hold the time between timers of 10 ms, minus those 10 ms.
const SOURCE: &str = "'use strict';
const { monitorEventLoopDelay } = require('perf_hooks');
const fs = require('fs');
const file = `${process.env.WEIR_LOOP}/loop.${process.pid}`;
const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();
const ms = (ns) => Math.max(0, ns / 1e6 - 10) || 0;
const write = () => {
  fs.writeFileSync(`${file}.new`, `${ms(delay.mean)} ${ms(delay.percentile(99))} ${ms(delay.max)}\\n`);
  fs.renameSync(`${file}.new`, file);
  delay.reset();
};
write();
setInterval(write, 500).unref();
";

/// Writes the module. Returns the environment variables with which a process loads it.
pub fn prepare(dir: &Path) -> Result<[(String, String); 2], String> {
    let module = dir.join(MODULE);
    fs::write(&module, SOURCE).map_err(|error| format!("{}: {error}", module.display()))?;
    Ok([
        ("NODE_OPTIONS".to_owned(), format!("--require {}", module.display())),
        (DIRECTORY.to_owned(), dir.display().to_string()),
    ])
}

fn file(dir: &Path, pid: u32) -> PathBuf {
    dir.join(format!("loop.{pid}"))
}

/// Whether a process has loaded the module.
pub fn is_one(dir: &Path, pid: u32) -> bool {
    file(dir, pid).is_file()
}

/// The last line of the slowest loop among the process and the processes that it forked.
pub fn read(probe: &Probe) -> Result<Reading, String> {
    let family = weir_host::family(probe.pid);
    let lines = family.iter().filter_map(|pid| {
        let mut text = String::new();
        let opened = fs::File::open(file(&probe.dir, *pid)).ok()?;
        std::io::Read::read_to_string(&mut std::io::Read::take(opened, LINE_MAX), &mut text).ok()?;
        of(&text)
    });
    let worst = lines.max_by(|one, other| one["p99_ms"].total_cmp(&other["p99_ms"]));
    worst.ok_or_else(|| format!("Node.js did not write {}: did it end, or does it set its own NODE_OPTIONS?", MODULE))
}

fn of(line: &str) -> Option<Reading> {
    let mut numbers = line.split_ascii_whitespace().filter_map(|word| word.parse::<f64>().ok());
    let (mean, p99, max) = (numbers.next()?, numbers.next()?, numbers.next()?);
    Some([("mean_ms", mean), ("p99_ms", p99), ("max_ms", max)].map(|(name, value)| (name.to_owned(), value)).into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_loops_delay_is_read() {
        let found = of("0.25 12.5 40\n").unwrap();
        assert_eq!((found["mean_ms"], found["p99_ms"], found["max_ms"]), (0.25, 12.5, 40.0));
        assert_eq!(of("x"), None);
        let dir = std::env::temp_dir().join(format!("weir-lab-loop-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let [(name, value), _] = prepare(&dir).unwrap();
        assert_eq!((name.as_str(), value.starts_with("--require /")), ("NODE_OPTIONS", true));
        assert!(!is_one(&dir, 1));
        fs::write(dir.join("loop.1"), "1 2 3").unwrap();
        assert!(is_one(&dir, 1));
        fs::remove_dir_all(&dir).unwrap();
    }
}
