//! `weir lab why`: from flags to suspects, to a report.

use std::path::Path;

use serde_json::Value;
use weir_lab::capacity::Objective;
use weir_lab::why::{self, Why};
use weir_load::random;

use super::ab::{edge_of, load, side, stack_of};
use super::experiment;
use super::flags::{LoadArgs, WhyArgs};

/// Failures that an objective allows, as a part.
const FAILURES: f64 = 0.001;
/// Bytes of what a test injects.
const INJECT_MAX: u64 = 1 << 20;

/// Runs it, prints and keeps what came of it.
pub(super) fn run(args: &WhyArgs) -> Result<u8, String> {
    let it = asked(args)?;
    let (_, code) = experiment(&args.stack, it.seed, |stop, progress| why::run(&it, stop, progress))?;
    Ok(code)
}

fn asked(args: &WhyArgs) -> Result<Why, String> {
    if !args.path.starts_with('/') {
        return Err(format!("{}: a path that is loaded begins with /", args.path));
    }
    let wanted = LoadArgs {
        script: args.script.clone(),
        rate: args.rate,
        connections: args.connections,
        block: args.block,
        warmup: args.warmup,
        warmup_load: None,
    };
    let load = load(&wanted, args.path.clone())?;
    let objective = args.slo.map(|(quantile, limit)| Objective {
        quantile,
        limit_ms: limit.as_secs_f64() * 1000.0,
        errors: FAILURES,
    });
    Ok(Why {
        side: side(&args.conf, edge_of(&args.stack.edge)?)?,
        ask: stack_of(&args.stack, load, args.block, args.warmup)?,
        objective,
        is_proving: args.prove,
        rounds: usize::from(args.rounds),
        seed: args.stack.seed.unwrap_or_else(|| random::below(1_000_000) as u64),
        inject: args.inject.as_deref().map_or(Ok(Value::Null), injected)?,
    })
}

fn injected(file: &Path) -> Result<Value, String> {
    use std::io::Read;
    let mut text = String::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(INJECT_MAX).read_to_string(&mut text));
    read.map_err(|error| format!("{}: {error}", file.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
}
