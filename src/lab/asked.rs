//! From flags to the settings that several verbs of `weir lab` have: sides, loads, designs, blocks.

use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_conf::Level;
use weir_lab::ask::{self, Ask, BLOCK, CONNECTIONS_MAX, Cpus, Design, EdgeProgram, Load, LoadProtocol, Side};
use weir_lab::change::Together;
use weir_lab::command::CommandLine;
use weir_lab::metric::{self, Metric, Scale};
use weir_lab::said::Said;
use weir_lab::schedule::Looks;
use weir_lab::wan::{BadLink, Direction};
use weir_lab::{stack, texts};
use weir_load::plan::Phase;
use weir_load::{processor, random, script};
use weir_words::say;

use super::flags::{AbArgs, ComparisonLoadArgs, CpuList, DesignArgs, LinkArgs, SentArgs, StackArgs};
use crate::files::Disk;

/// Default number of connections.
const CONNECTIONS: usize = 32;
/// Default number of pairs when a configuration is compared with itself.
const PAIRS_ALONE: u16 = 8;

/// Splits the words of the command line into the configurations and the path.
pub fn places(args: &AbArgs) -> Result<(Vec<PathBuf>, String), Said> {
    let mut words = args.what.clone();
    let path = words.pop_if(|word| word.starts_with('/') && !Path::new(word.as_str()).is_file());
    // One configuration is enough if something else changes.
    if words.len() == 1 && !args.aa && (args.edge_after.is_some() || args.protocol_after.is_some()) {
        words.extend(words.clone());
    }
    let wanted = if args.aa { 1 } else { 2 };
    if words.len() != wanted {
        return Err(if args.aa { say!(texts::ERR_AA_ONE) } else { say!(texts::ERR_NAME_TWO) });
    }
    if path.is_some() && args.load.sent.script.is_some() {
        return Err(say!(texts::ERR_LOAD_PATH));
    }
    Ok((words.into_iter().map(PathBuf::from).collect(), path.unwrap_or_else(|| "/".to_owned())))
}

/// The program of an edge's name, or of the path of an nginx.
pub fn edge_of(text: &str) -> Result<EdgeProgram, Said> {
    if text == "weir" {
        return Ok(EdgeProgram::Weir);
    }
    let path = std::path::absolute(text).map_err(|error| say!(texts::ERR_FILE, text, error.to_string()))?;
    if path.is_file() { Ok(EdgeProgram::Nginx(path)) } else { Err(say!(texts::ERR_NO_EDGE, text)) }
}

/// A configuration and its edge; the error has all its problems.
pub fn side(file: &Path, edge: EdgeProgram) -> Result<Side, Said> {
    let file = std::path::absolute(file)
        .map_err(|error| say!(texts::ERR_FILE, file.display().to_string(), error.to_string()))?;
    let main = file.display().to_string();
    let prefix = file.parent().map(|parent| format!("{}/", parent.display())).unwrap_or_default();
    let opaque = |name: &str| name.ends_with("_by_lua_block");
    let (tree, problems) = weir_conf::load(&Disk, &main, &prefix, &opaque);
    let broken: Vec<String> = problems
        .iter()
        .filter(|problem| problem.level != Level::Warn)
        .map(|problem| weir_conf::render(problem, &tree, "weir lab"))
        .collect();
    if broken.is_empty() {
        Ok(Side { file, tree, edge, protocol: LoadProtocol::Http1, application: None })
    } else {
        Err(broken.concat().trim_end().into())
    }
}

/// The protocols before and after.
pub fn protocols(args: &AbArgs) -> Result<[LoadProtocol; 2], Said> {
    let of = |name: Option<&str>| match name {
        Some("http2") => LoadProtocol::Http2,
        Some("http3") => LoadProtocol::Http3,
        _ => LoadProtocol::Http1,
    };
    let both = [&args.protocol, &args.protocol_after].map(|name| name.as_deref());
    if both.iter().any(Option::is_some) && args.load.sent.script.is_some() {
        return Err(say!(texts::ERR_PROTOCOL_SCRIPT));
    }
    Ok([of(both[0]), of(both[1].or(both[0]))])
}

/// The faults of the client's link. `None`: no flag asks for any.
pub fn link(args: &LinkArgs) -> Option<BadLink> {
    let us = |time: Option<Duration>| u64::try_from(time.unwrap_or_default().as_micros()).unwrap_or(u64::MAX);
    let way = Direction {
        delay_us: us(args.delay),
        jitter_us: us(args.jitter),
        loss: args.loss.unwrap_or(0),
        reorder: args.reorder.unwrap_or(0),
    };
    let is_said = args.delay.or(args.jitter).is_some() || args.loss.or(args.reorder).is_some();
    is_said.then_some(BadLink { to: way, from: way, seed: None })
}

/// The directives that the user counts as one change.
pub fn together(args: &AbArgs) -> Together {
    args.together.iter().map(|names| names.split(',').map(|name| name.trim().to_owned()).collect()).collect()
}

/// The load, its duration and the duration of its warm-up.
pub fn load(args: &SentArgs, (block, warm_up): (Duration, Duration), path: String) -> Result<Load, Said> {
    if let Some(file) = &args.script {
        return Ok(script_load(file)?.0);
    }
    let connections = args.connections.unwrap_or(CONNECTIONS);
    if !(1..=CONNECTIONS_MAX).contains(&connections) {
        return Err(say!(texts::ERR_CONNECTIONS, connections, CONNECTIONS_MAX));
    }
    if args.rate.is_some_and(|rate| rate.is_nan() || rate <= 0.0 || rate > weir_load::quick::RATE_MAX) {
        return Err(say!(texts::ERR_RATE, weir_load::quick::RATE_MAX));
    }
    if !(BLOCK.0..=BLOCK.1).contains(&block) || warm_up > BLOCK.1 {
        return Err(say!(texts::ERR_BLOCK));
    }
    Ok(Load::Path { path, connections, rate: args.rate })
}

fn absolute(file: &Path) -> Result<PathBuf, Said> {
    std::path::absolute(file).map_err(|error| say!(texts::ERR_FILE, file.display().to_string(), error.to_string()))
}

/// The load of a script, and its phases. Reads the script as `weir load` does, with the same errors.
pub fn script_load(file: &Path) -> Result<(Load, Vec<Phase>), Said> {
    let options = script::ScriptOptions {
        files: vec![file.to_owned()],
        // Nothing is sent to this address. The lab sets the real target, so the script may have none.
        target: Some("http://127.0.0.1:9".to_owned()),
        env: std::env::vars().collect(),
        ..script::ScriptOptions::default()
    };
    let plan = script::load(&options, &processor::load_script).map_err(|refusal| refusal.text.trimmed())?;
    let length = weir_load::arrive::length(&plan.phases);
    if length > BLOCK.1 {
        return Err(say!(texts::ERR_PHASES_LONG, file.display().to_string(), length.as_secs(), BLOCK.1.as_secs()));
    }
    let requests = weir_load::arrive::requests(&plan);
    Ok((Load::Script { file: absolute(file)?, over: None, length, requests }, plan.phases.clone()))
}

/// The metric, the threshold, the number of pairs and the seed.
pub fn design(args: &DesignArgs, stack: &StackArgs, load: &Load, is_alone: bool) -> Result<Design, Said> {
    let is_closed = matches!(load, Load::Path { rate: None, .. });
    let key = args.metric.as_deref().unwrap_or(if is_closed { "throughput" } else { "p95" });
    let primary = metric::of(key).ok_or_else(|| {
        let known: Vec<&str> = metric::METRICS.iter().map(|metric| metric.key).collect();
        say!(texts::ERR_METRIC, key, known.join(", "))
    })?;
    let threshold = threshold(primary, args.threshold)?;
    let pairs = args.pairs.or(is_alone.then_some(PAIRS_ALONE));
    let looks = pairs.map_or_else(Looks::three, |pairs| Looks::one(usize::from(pairs)));
    // The seed is printed and stored; it is short enough to type again.
    let seed = stack.seed.unwrap_or_else(|| random::below(1_000_000) as u64);
    let command = CommandLine::new(std::env::args());
    Ok(Design { primary, is_chosen: args.metric.is_some(), command, threshold, looks, seed })
}

/// The smallest difference that matters: the user's value in per cent or percentage points, or the metric's default.
pub fn threshold(metric: &Metric, asked: Option<f64>) -> Result<f64, Said> {
    match asked {
        None => Ok(metric.threshold),
        Some(percent) if percent.is_nan() || percent <= 0.0 || percent >= 100.0 => {
            Err(say!(texts::ERR_THRESHOLD, percent))
        }
        Some(percent) if metric.scale == Scale::Share => Ok(percent),
        Some(percent) => Ok(percent / 100.0),
    }
}

/// The settings of the blocks of a comparison of these configurations.
pub fn ask(stack_args: &StackArgs, args: &ComparisonLoadArgs, load: Load, sides: &[&Side]) -> Result<Ask, Said> {
    let warm_script = match &args.warmup_load {
        Some(file) => match script_load(file)?.0 {
            Load::Script { file, length, .. } => Some((file, length)),
            Load::Path { .. } => None,
        },
        None => None,
    };
    let headers = headers(&args.sent)?;
    Ok(Ask {
        warm_script,
        headers,
        raises_warm_up: ask::may_raise_warm_up(sides),
        ..stack_of(stack_args, load, args.block, args.warmup)?
    })
}

/// The header fields of a load's requests. Refuses a field without a name, as `weir load` does.
pub fn headers(args: &SentArgs) -> Result<Vec<String>, Said> {
    let wrong = args.headers.iter().find(|field| field.split_once(':').is_none_or(|(name, _)| name.trim().is_empty()));
    wrong.map_or(Ok(args.headers.clone()), |field| Err(say!(texts::ERR_HEADER, field)))
}

/// The settings that the blocks of every lab share.
pub fn stack_of(args: &StackArgs, load: Load, block: Duration, warm_up: Duration) -> Result<Ask, Said> {
    let weir = std::env::current_exe().map_err(|error| say!(texts::ERR_OWN_PATH, error.to_string()))?;
    let share = Cpus::of(&ask::allowed_cpus());
    let or = |list: &Option<CpuList>, share: Vec<usize>| list.as_ref().map_or(share, |list| list.to_vec());
    Ok(Ask {
        weir,
        load,
        block,
        warm_up,
        raises_warm_up: false,
        warm_script: None,
        origin: args.origin.clone(),
        is_noisy: args.noisy,
        is_isolated: !args.plain && stack::can_isolate(),
        port: args.port,
        cpus: Cpus {
            edge: or(&args.edge_cpus, share.edge),
            client: or(&args.client_cpus, share.client),
            origin: or(&args.origin_cpus, share.origin),
        },
        quota: args.edge_quota,
        headers: Vec::new(),
        link: None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_scripts_plan_shows_its_requests() {
        let file = std::env::temp_dir().join(format!("weir-lab-plan-{}.yml", std::process::id()));
        let of = |phase: &str, step: &str| {
            let text = format!("config: {{phases: [{phase}]}}\nscenarios: [{{flow: [{{get: {{url: /}}}}, {step}]}}]\n");
            std::fs::write(&file, text).unwrap();
            match script_load(&file).unwrap().0 {
                Load::Script { length, requests, .. } => (length, requests),
                Load::Path { .. } => panic!("a script"),
            }
        };
        let twenty = Duration::from_secs(20);
        let looped = "{loop: [{get: {url: /a}}, {think: 1}], count: 3}";
        assert_eq!(of("{duration: 20, arrivalRate: 5}", "{think: 1}"), (twenty, Some(100.0)));
        assert_eq!(of("{duration: 20, arrivalCount: 7}", looped), (twenty, Some(28.0)));
        assert_eq!(of("{duration: 20, arrivalRate: 5}", "{loop: [{get: {url: /a}}], whileTrue: f}").1, None);
        std::fs::remove_file(&file).unwrap();
    }
}
