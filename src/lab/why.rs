//! `weir lab why`: from flags to suspects, to a report.

use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_lab::ask::{Load, Side};
use weir_lab::capacity::Objective;
use weir_lab::experiment::{self as labs, FILE, What};
use weir_lab::why::run::Named;
use weir_lab::why::{self, Why};
use weir_load::random;

use super::ab::{edge_of, load, side, stack_of};
use super::experiment::places;
use super::flags::{LABS, SentArgs, WhyArgs};
use crate::doctor::Lang;

/// Failures that an objective allows, as a part.
const FAILURES: f64 = 0.001;
/// Bytes of what a test injects.
const INJECT_MAX: u64 = 1 << 20;

/// Runs it, prints and keeps what came of it.
pub(super) fn run(args: &WhyArgs) -> Result<u8, String> {
    let it = asked(args)?;
    let (_, code) = super::experiment(&args.stack, it.seed, |stop, progress| why::run(&it, stop, progress))?;
    Ok(code)
}

fn asked(args: &WhyArgs) -> Result<Why, String> {
    let (side, load, lab) = match &args.lab {
        Some(folder) => of_lab(args, folder)?,
        None => of_conf(args)?,
    };
    let objective = args.slo.map(|(quantile, limit)| Objective {
        quantile,
        limit_ms: limit.as_secs_f64() * 1000.0,
        errors: FAILURES,
    });
    Ok(Why {
        side,
        ask: stack_of(&args.stack, load, args.block, args.warmup)?,
        objective,
        is_proving: args.prove,
        rounds: usize::from(args.rounds),
        seed: args.stack.seed.unwrap_or_else(|| random::below(1_000_000) as u64),
        inject: args.inject.as_deref().map_or(Ok(Value::Null), injected)?,
        probes: args.probes.clone(),
        inside: args.inside.unwrap_or_default(),
        pools: args.pools.clone(),
        is_korean: matches!(args.lang, Lang::Ko),
        lab,
    })
}

fn of_conf(args: &WhyArgs) -> Result<(Side, Load, Option<Named>), String> {
    let (conf, path) = match args.what.as_slice() {
        [conf] => (conf, "/".to_owned()),
        [conf, path] => (conf, path.clone()),
        _ => return Err("name a configuration, and the path that is loaded; or --stack labs/NAME".to_owned()),
    };
    if !path.starts_with('/') {
        return Err(format!("{path}: a path that is loaded begins with /"));
    }
    Ok((side(Path::new(conf), edge_of(&args.stack.edge)?)?, load(&args.sent, (args.block, args.warmup), path)?, None))
}

/// The stack of an experiment, its own load if the flags say none.
fn of_lab(args: &WhyArgs, folder: &Path) -> Result<(Side, Load, Option<Named>), String> {
    let nginx = if args.stack.edge == "weir" { "/usr/sbin/nginx" } else { &args.stack.edge };
    let places = places(Path::new(nginx))?;
    let folder = if folder.join(FILE).is_file() { folder.to_owned() } else { PathBuf::from(LABS).join(folder) };
    let lab = labs::read(&folder, &places)?;
    let missing: Vec<String> = lab.missing().iter().map(|need| format!("{} ({})", need.what, need.install)).collect();
    if !missing.is_empty() {
        return Err(format!("lab {}: not installed here: {}", lab.name, missing.join("; ")));
    }
    if args.stack.plain || !weir_lab::stack::can_isolate() {
        return Err(format!(
            "lab {}: its hosts are namespaces: run it as root, on Linux, with unshare and ip",
            lab.name
        ));
    }
    let names: Vec<&str> = lab.variants.iter().map(|variant| variant.name.as_str()).collect();
    let variant = match &args.variant {
        None => lab.variants.first(),
        Some(name) => lab.variants.iter().find(|variant| variant.name == *name),
    };
    let variant = variant.ok_or_else(|| format!("--variant: lab {} has {}", lab.name, names.join(", ")))?.clone();
    labs::run::prepare(&lab, &mut super::progress::Progress::new(&args.stack.store))?;
    let path = match args.what.as_slice() {
        [] => None,
        [path] if path.starts_with('/') => Some(path.clone()),
        _ => return Err("with --stack the configuration is the experiment's: name a path alone, or nothing".to_owned()),
    };
    let is_said = path.is_some() || args.sent.is_said();
    let (own, times) = (variant.load.as_ref().map(|sent| &sent.what), (args.block, args.warmup));
    let load = match own {
        _ if is_said => load(&args.sent, times, path.unwrap_or_else(|| "/".to_owned()))?,
        Some(What::Path(path, flags)) => load(&told(flags)?, times, path.clone())?,
        Some(What::Script(file, _)) => {
            load(&SentArgs { script: Some(file.clone()), ..SentArgs::default() }, times, String::new())?
        }
        Some(What::Command(..)) | None => {
            return Err(format!(
                "lab {}: its load is a command of its own: name a path with --rate or -c, or --load",
                lab.name
            ));
        }
    };
    let side = side(&variant.front.conf, edge_of(&args.stack.edge)?)?;
    Ok((side, load, Some(Named { name: lab.name, places, variant })))
}

/// The connections and the rate of an experiment's own flags; how long it lasts is a matter of blocks.
fn told(flags: &[String]) -> Result<SentArgs, String> {
    let value = |names: [&str; 2]| {
        let at = flags.iter().position(|flag| names.contains(&flag.as_str()))?;
        flags.get(at + 1)
    };
    let wrong = |flag: &String| format!("{flag}: not a number in the experiment's flags: name --rate or -c");
    let rate = value(["-R", "--rate"]).map(|flag| flag.parse().map_err(|_| wrong(flag))).transpose()?;
    let connections = value(["-c", "--connections"]).map(|flag| flag.parse().map_err(|_| wrong(flag))).transpose()?;
    Ok(SentArgs { rate, connections, script: None })
}

fn injected(file: &Path) -> Result<Value, String> {
    use std::io::Read;
    let mut text = String::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(INJECT_MAX).read_to_string(&mut text));
    read.map_err(|error| format!("{}: {error}", file.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
}
