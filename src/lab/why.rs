//! `weir lab why`: from flags to suspects, to a report.

use std::path::Path;

use serde_json::Value;
use weir_lab::ask::{Ask, Load, Side};
use weir_lab::capacity::Objective;
use weir_lab::experiment::{self, FILE, What};
use weir_lab::texts;
use weir_lab::why::asked::{NamedVariant, Trying};
use weir_lab::why::{self, Why};
use weir_load::random;
use weir_words::{Language, Said, say};

use super::asked::{edge_of, headers, load, side, stack_of};
use super::experiment::places;
use super::flags::{SentArgs, WhyArgs};
use super::labs;

/// Share of requests that may fail within the objective.
const FAILURES: f64 = 0.001;
/// Largest injection file of a test, in bytes.
const INJECT_MAX: u64 = 1 << 20;

/// Runs the search, prints the report and stores the run.
pub(super) fn run(args: &WhyArgs, language: Language) -> Result<u8, Said> {
    let it = asked(args, language)?;
    let (_, code) =
        super::kept::experiment(&args.stack, it.seed, language, |stop, progress| why::run(&it, stop, progress))?;
    Ok(code)
}

fn asked(args: &WhyArgs, language: Language) -> Result<Why, Said> {
    let (side, load, lab, fields) = match &args.lab {
        Some(folder) => of_lab(args, folder, language)?,
        None => of_conf(args)?,
    };
    let objective = args.slo.map(|(quantile, limit)| Objective {
        quantile,
        limit_ms: limit.as_secs_f64() * 1000.0,
        errors: FAILURES,
    });
    Ok(Why {
        side,
        ask: Ask { headers: fields, ..stack_of(&args.stack, load, args.block, args.warmup)? },
        long: args.long,
        objective,
        good: args.good.clone(),
        is_proving: args.prove,
        trying: Trying { budget: args.try_budget, is_asked: args.tries },
        store: args.stack.store.clone(),
        has_own_cpus: [&args.stack.edge_cpus, &args.stack.client_cpus, &args.stack.origin_cpus]
            .iter()
            .any(|list| list.is_some()),
        rounds: usize::from(args.rounds),
        seed: args.stack.seed.unwrap_or_else(|| random::below(1_000_000) as u64),
        inject: args.inject.as_deref().map_or(Ok(Value::Null), injected)?,
        probes: args.probes.clone(),
        inside: args.inside.unwrap_or_default(),
        pools: args.pools.clone(),
        lab,
    })
}

/// The measured stack: the configuration, the load, the experiment, and the header fields of its requests.
type Asked = (Side, Load, Option<NamedVariant>, Vec<String>);

fn of_conf(args: &WhyArgs) -> Result<Asked, Said> {
    let (conf, path) = match args.what.as_slice() {
        [conf] => (conf, "/".to_owned()),
        [conf, path] => (conf, path.clone()),
        _ => return Err(say!(texts::ERR_NAME_CONF)),
    };
    if !path.starts_with('/') {
        return Err(say!(texts::ERR_PATH, path));
    }
    let fields = headers(&args.sent)?;
    let load = load(&args.sent, (args.long.unwrap_or(args.block), args.warmup), path)?;
    Ok((side(Path::new(conf), edge_of(&args.stack.edge)?)?, load, None, fields))
}

/// The stack of an experiment. The experiment's own load is used if the flags set none.
fn of_lab(args: &WhyArgs, folder: &Path, language: Language) -> Result<Asked, Said> {
    let nginx = if args.stack.edge == "weir" { "/usr/sbin/nginx" } else { &args.stack.edge };
    let places = places(Path::new(nginx))?;
    // As it stands, or below the folder of the experiments; there, `labs/` before the name says nothing.
    let folder = if folder.join(FILE).is_file() {
        folder.to_owned()
    } else {
        labs::folder(args.labs.as_deref())?.join(folder.strip_prefix("labs").unwrap_or(folder))
    };
    let lab = experiment::read(&folder, &places)?;
    let missing: Vec<String> = lab.missing().iter().map(|need| format!("{} ({})", need.what, need.install)).collect();
    if !missing.is_empty() {
        return Err(say!(texts::ERR_NOT_INSTALLED, &lab.name, missing.join("; ")));
    }
    if args.stack.plain || !weir_lab::stack::can_isolate() {
        return Err(say!(texts::ERR_NAMESPACES, &lab.name));
    }
    let names: Vec<&str> = lab.variants.iter().map(|variant| variant.name.as_str()).collect();
    let variant = match &args.variant {
        None => lab.variants.first(),
        Some(name) => lab.variants.iter().find(|variant| variant.name == *name),
    };
    let variant = variant.ok_or_else(|| say!(texts::ERR_VARIANTS, &lab.name, names.join(", ")))?.clone();
    experiment::run::prepare(&lab, &mut super::progress::ProgressPrinter::new(&args.stack.store, language))?;
    let path = match args.what.as_slice() {
        [] => None,
        [path] if path.starts_with('/') => Some(path.clone()),
        _ => return Err(say!(texts::ERR_STACK_PATH)),
    };
    let is_said = path.is_some() || args.sent.is_said();
    let (own, times) = (variant.load.as_ref().map(|sent| &sent.what), (args.long.unwrap_or(args.block), args.warmup));
    let mut fields = headers(&args.sent)?;
    let load = match own {
        _ if is_said => load(&args.sent, times, path.unwrap_or_else(|| "/".to_owned()))?,
        Some(What::Path(path, flags)) => {
            let own = told(flags)?;
            // The user's fields come after the experiment's fields.
            fields.splice(0..0, own.headers.clone());
            load(&own, times, path.clone())?
        }
        Some(What::Script(file, _)) => {
            load(&SentArgs { script: Some(file.clone()), ..SentArgs::default() }, times, String::new())?
        }
        Some(What::Command(..)) | None => {
            return Err(say!(texts::ERR_OWN_COMMAND, &lab.name));
        }
    };
    let side = side(&variant.front.conf, edge_of(&args.stack.edge)?)?;
    Ok((side, load, Some(NamedVariant { name: lab.name, places, variant }), fields))
}

/// The connections, the rate and the header fields in an experiment's own flags. Ignores their duration: blocks set
/// it.
fn told(flags: &[String]) -> Result<SentArgs, Said> {
    let value = |names: [&str; 2]| {
        let at = flags.iter().position(|flag| names.contains(&flag.as_str()))?;
        flags.get(at + 1)
    };
    let wrong = |flag: &String| say!(texts::ERR_FLAG_NUMBER, flag);
    let rate = value(["-R", "--rate"]).map(|flag| flag.parse().map_err(|_| wrong(flag))).transpose()?;
    let connections = value(["-c", "--connections"]).map(|flag| flag.parse().map_err(|_| wrong(flag))).transpose()?;
    let is_field = |pair: &&[String]| pair.first().is_some_and(|flag| flag == "-H" || flag == "--header");
    let headers = flags.windows(2).filter(is_field).filter_map(|pair| pair.get(1).cloned()).collect();
    Ok(SentArgs { rate, connections, headers, ..SentArgs::default() })
}

fn injected(file: &Path) -> Result<Value, Said> {
    use std::io::Read;
    let mut text = String::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(INJECT_MAX).read_to_string(&mut text));
    read.map_err(|error| say!(texts::ERR_FILE, file.display().to_string(), error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| say!(texts::ERR_FILE, file.display().to_string(), error.to_string()))
}
