//! `weir lab capacity`: from flags to a search, to a report.

use std::sync::atomic::Ordering;

use weir_lab::ask::{BLOCK, CONNECTIONS_MAX, Load};
use weir_lab::capacity::{self, Capacity, Objective};
use weir_lab::search::RATES;
use weir_lab::{html, report, store};
use weir_load::random;

use super::ab::{edge_of, side, stack_of};
use super::flags::CapacityArgs;
use super::progress::Progress;
use super::{exit, stop_on_signal, write};

/// Runs it, prints and keeps what came of it.
pub(super) fn run(args: &CapacityArgs) -> Result<u8, String> {
    let it = asked(args)?;
    let stop = stop_on_signal()?;
    // Every connection has a descriptor here and there; a refused raise leaves the limit as it was.
    let _ = weir_net::process::raise_nofile();
    let mut progress = Progress::new();
    println!("Load goes to: processes that this lab starts, and to nobody else (seed {})", it.seed);
    let outcome = capacity::run(&it, &stop, &mut progress);
    progress.end();
    let run = outcome?;
    let kept = store::keep(&args.stack.store, run["id"].as_str().unwrap_or("run"), &run)?;
    args.stack.html.as_deref().map_or(Ok(()), |path| write(path, &html::page(&run)))?;
    print!("{}", report::text(&run));
    println!("Kept: {}", kept.display());
    Ok(match run["verdict"]["name"].as_str() {
        _ if stop.load(Ordering::Relaxed) => exit::INTERRUPTED,
        Some("no verdict") => exit::NO_VERDICT,
        _ => 0,
    })
}

fn asked(args: &CapacityArgs) -> Result<Capacity, String> {
    if !args.path.starts_with('/') {
        return Err(format!("{}: a path that is loaded begins with /", args.path));
    }
    if !(RATES.0..=RATES.1).contains(&args.from) {
        return Err(format!("--from {}: {} to {} requests a second", args.from, RATES.0, RATES.1));
    }
    if !(0.0..100.0).contains(&args.errors) {
        return Err(format!("--errors {}: 0 to 100 per cent", args.errors));
    }
    if !(1..=CONNECTIONS_MAX).contains(&args.connections) {
        return Err(format!("--connections {}: 1 to {CONNECTIONS_MAX}", args.connections));
    }
    if !(BLOCK.0..=BLOCK.1).contains(&args.block) || args.warmup > BLOCK.1 {
        return Err("--block: 500ms to 30m; --warmup: at most 30m".to_owned());
    }
    let load = Load::Path { path: args.path.clone(), connections: args.connections, rate: Some(args.from) };
    let (quantile, limit) = args.slo;
    Ok(Capacity {
        side: side(&args.conf, edge_of(&args.stack.edge)?)?,
        ask: stack_of(&args.stack, load, args.block, args.warmup)?,
        objective: Objective { quantile, limit_ms: limit.as_secs_f64() * 1000.0, errors: args.errors / 100.0 },
        from: args.from,
        seed: args.stack.seed.unwrap_or_else(|| random::below(1_000_000) as u64),
    })
}
