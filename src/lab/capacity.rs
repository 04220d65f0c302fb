//! `weir lab capacity`: from flags to a search, to a report.

use std::time::Duration;

use weir_conf::language::Language;
use weir_lab::ask::{BLOCK, CONNECTIONS_MAX, Load};
use weir_lab::capacity::{self, Capacity, Objective, Users};
use weir_lab::search::RATES;
use weir_load::random;

use super::ab::{edge_of, side, stack_of};
use super::experiment;
use super::flags::CapacityArgs;

/// The shortest and the longest time that a virtual user thinks.
const THINK: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(600));

/// Runs the search, prints the report and stores the run.
pub(super) fn run(args: &CapacityArgs, language: Language) -> Result<u8, String> {
    let it = asked(args)?;
    let (_, code) = experiment(&args.stack, it.seed, language, |stop, progress| capacity::run(&it, stop, progress))?;
    Ok(code)
}

fn asked(args: &CapacityArgs) -> Result<Capacity, String> {
    if !args.path.starts_with('/') {
        return Err(format!("{}: the path of the load must begin with /", args.path));
    }
    if !(RATES.0..=RATES.1).contains(&args.from) {
        return Err(format!("--from {}: write {} to {} requests a second", args.from, RATES.0, RATES.1));
    }
    if !(0.0..100.0).contains(&args.errors) {
        return Err(format!("--errors {}: write 0 to 100 per cent", args.errors));
    }
    if !(1..=CONNECTIONS_MAX).contains(&args.connections) {
        return Err(format!("--connections {}: write 1 to {CONNECTIONS_MAX}", args.connections));
    }
    if !(BLOCK.0..=BLOCK.1).contains(&args.block) || args.warmup > BLOCK.1 {
        return Err("--block: write 500ms to 30m; --warmup: write at most 30m".to_owned());
    }
    if args.think < THINK.0 || args.think > THINK.1 {
        return Err("--think: write 10ms to 10m".to_owned());
    }
    let users = args.users.map(|(_, most)| Users { think: args.think, most: f64::from(most) });
    let from = args.users.map_or(args.from, |(from, _)| f64::from(from));
    let load = Load::Path { path: args.path.clone(), connections: args.connections, rate: Some(from) };
    let (quantile, limit) = args.slo;
    Ok(Capacity {
        side: side(&args.conf, edge_of(&args.stack.edge)?)?,
        ask: stack_of(&args.stack, load, args.block, args.warmup)?,
        objective: Objective { quantile, limit_ms: limit.as_secs_f64() * 1000.0, errors: args.errors / 100.0 },
        users,
        from,
        seed: args.stack.seed.unwrap_or_else(|| random::below(1_000_000) as u64),
    })
}
