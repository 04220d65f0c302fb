//! `weir agent`, and `weir load --agents`: one run from many machines.

use std::process::ExitCode;

use clap::Args;
use weir_load::agent::{self, AGENTS_MAX, Agent, Conductor, JobParts, Merged, WantedRun, chosen_env, server_of};
use weir_words::{Language, say};

use weir_load::run::{self, Channel, NotBegun, Run, RunWatch};
use weir_load::script::ScriptOptions;
use weir_load::texts::agents as texts;

use super::common::{stop_on_signal, time};
use super::exit;
use super::flags::RunArgs;
use super::ran::Ran;

/// `weir agent`.
#[derive(Args)]
#[command(after_help = "\
An agent waits at a Redis server, runs its share of one run of `weir load --agents` at a time, and waits again.
A client that may publish at this server controls the requests and the targets of the agent. So set a password in the
server (redis://:PASSWORD@HOST, redis://USER:PASSWORD@HOST). Ctrl-C ends the agent and its current run.")]
pub struct AgentArgs {
    /// The server: redis://[USER:PASSWORD@]HOST[:6379], or rediss:// for TLS; env:NAME or file:PATH with the URL keeps
    /// secrets out of ps
    #[arg(value_name = "URL")]
    url: String,
    /// Name of this agent in reports [default: the name of the machine]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Largest number of threads
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// End after one run
    #[arg(long)]
    once: bool,
}

/// Runs `weir agent`.
pub fn main(args: &AgentArgs, language: Language) -> ExitCode {
    // Every virtual user needs a socket. If the kernel refuses to raise the limit, the old limit stays; the
    // self-check reports that.
    let _ = weir_net::process::raise_nofile();
    let outcome = server_of(&args.url).and_then(|server| {
        let name = args.name.clone().unwrap_or_else(machine);
        let agent = Agent { server, name, workers_max: args.workers, once: args.once };
        let channel = Channel::new();
        stop_on_signal(channel.stop())?;
        agent::serve(&agent, &|| channel.is_stopped(), &mut |line| eprintln!("{}", line.say(language)))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("weir agent: {}", message.say(language));
            ExitCode::from(exit::FAILED)
        }
    }
}

fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "agent".to_owned() } else { name.trim().to_owned() }
}

/// Runs a script on agents; the error is for the user.
pub(super) fn run(
    url: &str,
    args: &RunArgs,
    options: &ScriptOptions,
    run: &Run,
    channel: &Channel,
    watch: &mut dyn RunWatch,
    language: Language,
) -> Result<Ran, NotBegun> {
    let agents = args.requests.filter(|agents| (1..=AGENTS_MAX).contains(agents));
    let agents = agents.ok_or_else(|| say!(texts::AGENTS_COUNT, AGENTS_MAX))?;
    let wait = time(&args.agents_wait, "--agents-wait")?;
    if args.dotenv.is_some() && args.env_pass.is_empty() {
        eprintln!("{}", texts::DOTENV_HERE.say(language));
    }
    let env = chosen_env(&args.env_pass, &script_env(run, options))?;
    let files: Vec<_> = run.plan.files.iter().chain(&args.with_files).cloned().collect();
    let parts = JobParts { options, files: &files, env, workers: args.workers, seed: run.seed };
    let job = agent::pack(&parts)?;
    let wanted = WantedRun { server: server_of(url)?, agents, wait };
    let conductor = Conductor::start(&wanted, job)?;
    for (index, mate) in conductor.gather(&|| channel.is_stopped())?.iter().enumerate() {
        let said = say!(
            texts::AGENT_SHARE,
            &mate.name,
            index + 1,
            agents,
            mate.workers,
            mate.cpus,
            // Rounded to tenths; `+ 0.0` turns "-0.0" into "0.0".
            format!("{:.1}", (mate.behind_us as f64 / 100.0).round() / 10.0 + 0.0),
            format!("{:.1}", mate.error_us as f64 / 1e3),
        );
        watch.line(said.say(language));
    }
    let before = run::before(run, channel, watch)?;
    let Merged { mut outcome, checks, incomplete } = conductor.run(run, &before, channel, watch)?;
    outcome.before = before;
    Ok(Ran { outcome, checks, incomplete })
}

/// The environment that the script sees on this machine, with `--dotenv`.
fn script_env(run: &Run, options: &ScriptOptions) -> Vec<(String, String)> {
    let mut env = options.env.clone();
    let name = run.plan.names.find("$env");
    let seen = run.plan.globals.iter().find(|(slot, _)| Some(*slot) == name);
    if let Some((_, weir_load::value::Value::Map(map))) = seen {
        env.extend(map.iter().map(|(name, value)| (name.to_string(), value.to_text().into_owned())));
    }
    env
}
