//! `weir load`: Artillery scripts, or one URL. Flags, files, exit codes; the work is in `weir_load`.

pub mod agents;
mod brief;
mod common;
mod exit;
pub mod flags;
pub(crate) mod from;
mod metrics;
mod quick;
mod ran;
mod report;
mod script;
mod teller;
mod view;

use std::process::ExitCode;

use weir_load::texts;
use weir_words::{Language, Said, say};

use exit::usage;
use flags::{LoadArgs, LoadCommand, RunArgs};

/// Runs `weir load`.
pub fn main(args: LoadArgs, language: Language) -> ExitCode {
    let code = match args.what {
        Some(LoadCommand::Run(run)) => start(&run, language),
        Some(LoadCommand::Compare { before, after }) => report::compare(&before, &after, language),
        Some(LoadCommand::From(args)) => from::run(&args, language),
        Some(LoadCommand::Quick(args)) => brief::run(&args, language),
        Some(LoadCommand::RunFargate { .. }) => usage(&say!(texts::NO_CLOUD), language),
        Some(LoadCommand::Report { report, output }) => report::page(&report, output, language),
        None => start(&args.run, language),
    };
    ExitCode::from(code)
}

fn start(args: &RunArgs, language: Language) -> u8 {
    let usage = |message: Said| usage(&message, language);
    // Every virtual user needs a socket. If the kernel refuses to raise the limit, the old limit stays; the
    // self-check reports that.
    let _ = weir_net::process::raise_nofile();
    if args.record || args.key.is_some() {
        return usage(say!(texts::NO_RECORD));
    }
    let mut what = args.what.iter().chain(&args.input);
    match (what.next(), what.next()) {
        (None, _) => usage(say!(texts::NAME_SOURCE)),
        (Some(url), None) if is_url(url) && args.agents.is_some() => usage(say!(texts::AGENTS_NEED_SCRIPT)),
        (Some(url), None) if is_url(url) => quick::run(url, args, language),
        (Some(place), None) if is_place(place) => usage(say!(texts::NEITHER, place)),
        _ if args.http2 => usage(say!(texts::HTTP2_IN_SCRIPT)),
        _ if args.http3 => usage(say!(texts::HTTP3_IN_SCRIPT)),
        (Some(url), Some(_)) if is_url(url) => usage(say!(texts::ONE_URL)),
        _ => script::run(args, language),
    }
}

/// True if the text begins with a scheme, and is not an existing file; [`quick::run`] names the schemes that weir loads.
fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    scheme.is_some_and(is_scheme) && !std::path::Path::new(text).exists()
}

/// True if the text is `host:port` with or without a path, and not an existing file.
fn is_place(text: &str) -> bool {
    let authority = text.split(['/', '?']).next().unwrap_or_default();
    let port = authority.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    port.is_some_and(|port| port.parse::<u16>().is_ok()) && !std::path::Path::new(text).exists()
}
