//! `weir load SCRIPT`: from flags to a plan, to a run, to a report.

use std::io::Write;
use std::sync::Arc;

use weir_load::debug::Debug;
use weir_load::output::ensure::{self, Apdex, Check};
use weir_load::output::facts::fingerprint;
use weir_load::output::{PhaseFact, RunFacts, SelfCheck, honest};
use weir_load::plan::{Phase, Plan};
use weir_load::record::{Period, RunResults};
use weir_load::run::{self, NotBegun, Run};
use weir_load::script::{self, ScriptOptions};
use weir_load::{processor, random, texts};
use weir_words::{Language, Said, say};

use super::common::{STOPPED, environment, stop_on_signal, test_run_id};
use super::flags::RunArgs;
use super::ran::Ran;
use super::teller::{Teller, now_ms};
use super::{agents, exit, report as files};

/// Reads the script, runs it and reports; returns the exit code.
pub fn run(args: &RunArgs, language: Language) -> u8 {
    let id = std::env::var("ARTILLERY_TEST_RUN_ID").unwrap_or_else(|_| test_run_id());
    let options = options(args, &id);
    // Weights may be random.
    args.seed.iter().for_each(|seed| random::seed(*seed));
    let plan = match script::load(&options, &processor::load_script) {
        Ok(plan) => plan,
        Err(refusal) => {
            refusal.warnings.iter().for_each(|warning| eprintln!("{}", warning.say(language)));
            eprint!("{}", refusal.text.say(language));
            return u8::try_from(refusal.exit).unwrap_or(exit::FAILED);
        }
    };
    plan.warnings.iter().for_each(|warning| eprintln!("{}", warning.say(language)));
    if args.check {
        print!("{}", plan.told(language));
        if plan.vusers() == 0 {
            eprintln!("weir load: {}", texts::NOBODY.say(language));
        }
        return check(&plan, language);
    }
    match start(args, &options, plan, &id, language) {
        Ok(code) => code,
        Err((message, code)) => {
            eprintln!("weir load: {}", message.say(language));
            code
        }
    }
}

/// Loads the processor, and names the functions that it lacks; returns the exit code. A run loads it after its phases
/// begin.
fn check(plan: &Plan, language: Language) -> u8 {
    match weir_load::check::processor(plan) {
        Ok(missing) => {
            missing.iter().for_each(|missing| eprintln!("weir load: {}", missing.say(language)));
            0
        }
        Err(why) => {
            eprintln!("weir load: {why}");
            exit::WORKER
        }
    }
}

fn options(args: &RunArgs, id: &str) -> ScriptOptions {
    ScriptOptions {
        files: args.what.iter().chain(&args.input).map(Into::into).collect(),
        config: args.config.as_ref().map(Into::into),
        environment: args.environment.clone(),
        target: args.target.clone(),
        insecure: args.insecure,
        payload: args.payload.clone(),
        overrides: args.overrides.clone(),
        variables: args.variables.clone(),
        dotenv: args.dotenv.clone(),
        solo: args.solo,
        check: args.check,
        scenario_name: args.scenario_name.clone(),
        test_id: id.to_owned(),
        env: std::env::vars().collect(),
    }
}

fn start(args: &RunArgs, options: &ScriptOptions, plan: Plan, id: &str, language: Language) -> Result<u8, Ended> {
    let failed = |message: Said| (Box::new(message), exit::FAILED);
    files::has_place(args).map_err(failed)?;
    let plan = Arc::new(plan);
    let workers = workers(args, &plan);
    let seed = args.seed.unwrap_or_else(|| random::below(usize::MAX) as u64);
    let run = Run { plan: plan.clone(), workers, seed, share: (0, 1), start: None, ahead_ms: None };
    let mut teller = Teller::new(args, &plan, language).map_err(failed)?;
    print!("{}{}", honest::first_line(&plan.targets(), language), teller.console.test_run_id(id));
    let ran = go(args, options, &run, &mut teller, language)?;
    let self_check = match args.agents {
        Some(_) => SelfCheck { agents: ran.checks.clone(), ..SelfCheck::default() },
        None => teller.fared().finish(ran.outcome.merger.own()),
    };
    let is_interrupted = ran.outcome.is_interrupted;
    let result = ran.outcome.merger.outcome();
    let apdex = plan.plugins.apdex.and_then(|_| Apdex::of(&result.whole));
    let facts = RunFacts {
        targets: plan.targets(),
        script: plan.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        script_id: script_id(args),
        test_run_id: id.to_owned(),
        phases: plan.phases.iter().map(phase_fact).collect(),
        started_ms: teller.started_ms.unwrap_or_else(now_ms),
        ended_ms: now_ms(),
        environment: environment(args, workers, Some(seed)),
        self_check,
        incomplete: incomplete(&ran),
        checks: checks(&plan, &result.whole, apdex.as_ref()),
    };
    report(args, &result, &facts, apdex.as_ref(), &mut teller).map_err(failed)?;
    let after = run::after(&run, ran.outcome.before, &mut teller);
    if let Err(message) = &after {
        eprintln!("weir load: {}", message.say(language));
    }
    teller.publish_rest();
    Ok(match () {
        () if is_interrupted => exit::INTERRUPTED,
        () if after.is_err() => exit::FAILED,
        () => verdict(args, &facts, &result.whole, teller.exit_code),
    })
}

fn workers(args: &RunArgs, plan: &Plan) -> usize {
    match args.workers {
        Some(workers) => workers,
        // One worker keeps one state of the processor's module, as Artillery's users have it on two CPUs.
        None if plan.processor.is_some() => 1,
        None => weir_host::effective_cpus(),
    }
}

/// Runs the plan, on this machine or on agents, until the run is over.
fn go(
    args: &RunArgs,
    options: &ScriptOptions,
    run: &Run,
    teller: &mut Teller,
    language: Language,
) -> Result<Ran, Ended> {
    let channel = args.channel();
    stop_on_signal(channel.stop()).map_err(|message| (Box::new(message), exit::FAILED))?;
    let ran = match &args.agents {
        Some(url) => agents::run(url, args, options, run, &channel, teller, language),
        None => run::run(run, channel, teller).map(Ran::here),
    };
    ran.map_err(|error| match error {
        NotBegun::Before(message) => (Box::new(message), exit::FAILED),
        NotBegun::Worker(message) => (Box::new(message), exit::WORKER),
    })
}

/// Why the figures do not cover the whole requested run, one sentence each.
fn incomplete(ran: &Ran) -> Vec<Said> {
    let mut reasons = ran.incomplete.clone();
    if ran.outcome.is_interrupted {
        reasons.push(STOPPED.with(&[]));
    }
    if ran.outcome.is_cut {
        let limit = run::DRAIN_MAX.as_secs();
        reasons.push(say!(texts::CUT, limit));
    }
    if ran.outcome.lines_lost > 0 {
        reasons.push(say!(texts::LINES_LOST, ran.outcome.lines_lost.to_string()));
    }
    reasons
}

/// Prints the summary and the lines after it, and writes the files from the flags.
fn report(
    args: &RunArgs,
    result: &RunResults,
    facts: &RunFacts,
    apdex: Option<&Apdex>,
    teller: &mut Teller,
) -> Result<(), Said> {
    teller.summary(&result.whole, &facts.self_check);
    files::files(args, result, facts, &teller.console)?;
    print!("{}", honest::block(result, facts, &teller.console));
    print!("{}", apdex.map_or_else(String::new, |apdex| apdex.print(teller.console.language)));
    print!("{}", ensure::print(&facts.checks, &teller.console));
    // There is nowhere to report a closed stdout.
    let _ = std::io::stdout().flush();
    Ok(())
}

/// The exit code of a run that reached its end. If several conditions set a code, the one that wins in Artillery
/// wins.
fn verdict(args: &RunArgs, facts: &RunFacts, whole: &Period, suggested: Option<i32>) -> u8 {
    // A process's exit code is only the lowest byte.
    let suggested = suggested.map_or(0, |code| code.rem_euclid(256) as u8);
    match () {
        () if ensure::has_failed(&facts.checks) => exit::FAILED,
        () if suggested != 0 => suggested,
        () if whole.counter("plugins.expect.failed") > 0 => exit::EXPECT,
        () if args.fail_if_limited && !facts.self_check.limits().is_empty() => exit::LIMITED,
        () => 0,
    }
}

/// A message and an exit code.
type Ended = (Box<Said>, u8);

/// The results of the script's `ensure` checks.
fn checks(plan: &Plan, whole: &Period, apdex: Option<&Apdex>) -> Vec<Check> {
    match &plan.plugins.ensure {
        Some(options) if std::env::var_os("ARTILLERY_DISABLE_ENSURE").is_none() => {
            let checks = ensure::checks(options, whole, apdex);
            if Debug::asked().ensure {
                checks.iter().for_each(|check| eprintln!("  plugin:ensure check {} -> {}", check.shown, check.is_ok));
            }
            checks
        }
        _ => Vec::new(),
    }
}

fn phase_fact(phase: &Phase) -> PhaseFact {
    PhaseFact {
        name: phase.name.clone(),
        shown: phase.shown.clone(),
        duration_ms: u64::try_from(phase.duration.as_millis()).unwrap_or(u64::MAX),
        arrivals: phase.arrivals.said(),
    }
}

/// An id that is equal for equal scripts with equal flags.
fn script_id(args: &RunArgs) -> String {
    let files = args.what.iter().chain(&args.input).chain(&args.config);
    let mut parts: Vec<Vec<u8>> = files.map(|path| std::fs::read(path).unwrap_or_default()).collect();
    let flags = [&args.target, &args.environment, &args.scenario_name, &args.variables, &args.overrides];
    parts.extend(flags.into_iter().map(|flag| flag.clone().unwrap_or_default().into_bytes()));
    parts.push(vec![u8::from(args.solo)]);
    fingerprint(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
}
