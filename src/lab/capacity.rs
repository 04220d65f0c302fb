//! `weir lab capacity`: from flags to a search, to a report.

use std::time::Duration;

use weir_lab::ask::{BLOCK, CONNECTIONS_MAX, Load};
use weir_lab::capacity::{self, Capacity, Objective, Users};
use weir_lab::search::RATES;
use weir_lab::texts;
use weir_load::random;
use weir_words::{Language, Said, say};

use super::asked::{edge_of, script_load, side, stack_of};
use super::flags::CapacityArgs;
use super::kept::experiment;

/// The shortest and the longest time that a virtual user thinks.
const THINK: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(600));

/// Runs the search, prints the report and stores the run.
pub(super) fn run(args: &CapacityArgs, language: Language) -> Result<u8, Said> {
    let it = asked(args)?;
    let (_, code) = experiment(&args.stack, it.seed, language, |stop, progress| capacity::run(&it, stop, progress))?;
    Ok(code)
}

fn asked(args: &CapacityArgs) -> Result<Capacity, Said> {
    if !args.path.starts_with('/') {
        return Err(say!(texts::ERR_PATH, &args.path));
    }
    if !(RATES.0..=RATES.1).contains(&args.from) {
        return Err(say!(texts::ERR_FROM, args.from, RATES.0, RATES.1));
    }
    if !(0.0..100.0).contains(&args.errors) {
        return Err(say!(texts::ERR_ERRORS, args.errors));
    }
    if !(1..=CONNECTIONS_MAX).contains(&args.connections) {
        return Err(say!(texts::ERR_CONNECTIONS, args.connections, CONNECTIONS_MAX));
    }
    if !(BLOCK.0..=BLOCK.1).contains(&args.block) || args.warmup > BLOCK.1 {
        return Err(say!(texts::ERR_BLOCK));
    }
    if args.think < THINK.0 || args.think > THINK.1 {
        return Err(say!(texts::ERR_THINK));
    }
    let users = args.users.map(|(_, most)| Users { think: args.think, most: f64::from(most) });
    let from = args.users.map_or(args.from, |(from, _)| f64::from(from));
    let (load, phases) = match &args.load {
        Some(file) => match script_load(file)? {
            (Load::Script { requests: None, .. }, _) => {
                return Err(say!(texts::ERR_CAPACITY_SCRIPT, file.display().to_string()));
            }
            script => script,
        },
        None => {
            let load = Load::Path { path: args.path.clone(), connections: args.connections, rate: Some(from) };
            (load, Vec::new())
        }
    };
    let (quantile, limit) = args.slo;
    Ok(Capacity {
        side: side(&args.conf, edge_of(&args.stack.edge)?)?,
        ask: stack_of(&args.stack, load, args.block, args.warmup)?,
        objective: Objective { quantile, limit_ms: limit.as_secs_f64() * 1000.0, errors: args.errors / 100.0 },
        users,
        phases,
        from,
        seed: args.stack.seed.unwrap_or_else(|| random::below(1_000_000) as u64),
    })
}
