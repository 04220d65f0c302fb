//! `weir load quick URL`: Artillery's `quick`, a script of a few lines.

use weir_load::texts;
use weir_words::{Language, say};

use super::exit::{self, usage};
use super::flags::{QuickArgs, RunArgs};
use super::{report, script};

/// The protocols of the two engines.
const PROTOCOLS: [&str; 4] = ["http", "https", "ws", "wss"];

/// Writes the script to a file of its own, runs it, and removes it; returns the exit code.
pub fn run(args: &QuickArgs, language: Language) -> u8 {
    let parts = args.url.split_once("://").map(|(protocol, rest)| (protocol.to_ascii_lowercase(), rest));
    let Some((protocol, rest)) = parts.filter(|(protocol, _)| PROTOCOLS.contains(&protocol.as_str())) else {
        eprintln!("weir load quick: {}", say!(texts::NO_PROTOCOL, args.url.as_str()).say(language));
        return exit::FAILED;
    };
    if args.count == 0 || args.num == 0 {
        return usage(&say!(texts::COUNTS_FROM_ONE), language);
    }
    let file = std::env::temp_dir().join(format!("weir-quick-{}.yml", std::process::id()));
    if let Err(message) = report::write(&file, &text(args, &protocol, rest)) {
        eprintln!("weir load quick: {}", message.say(language));
        return exit::FAILED;
    }
    let run = RunArgs {
        what: vec![file.display().to_string()],
        output: args.output.clone(),
        insecure: args.insecure,
        quiet: args.quiet,
        // The values that clap gives to a run without flags.
        summary: "v2".to_owned(),
        interval: std::time::Duration::from_secs(1),
        agents_wait: "30s".to_owned(),
        ..RunArgs::default()
    };
    let code = script::run(&run, language);
    // A script that stays behind in the temporary folder harms nobody.
    let _ = std::fs::remove_file(&file);
    code
}

/// The script: all virtual users arrive within a second.
fn text(args: &QuickArgs, protocol: &str, rest: &str) -> String {
    let url = serde_json::Value::from(format!("{protocol}://{rest}"));
    let (engine, step) = match protocol {
        "ws" | "wss" => ("ws", "send: \"hello from weir!\"".to_owned()),
        _ => ("http", format!("get: {{ url: {url} }}")),
    };
    let flow = match args.num {
        1 => format!("[{{ {step} }}]"),
        many => format!("[{{ loop: [{{ {step} }}], count: {many} }}]"),
    };
    format!(
        "config: {{ target: {url}, phases: [{{ duration: 1, arrivalCount: {} }}] }}\nscenarios: [{{ engine: {engine}, flow: {flow} }}]\n",
        args.count
    )
}
