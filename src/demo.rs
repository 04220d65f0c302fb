//! `weir demo` and `weir origin`. The demo runs the edge on an embedded default configuration, with a dummy
//! application.
//!
//! ```text
//! load threads ──► edge worker 0 ──► origin threads        all in this process, on loopback
//! ```
//!
//! The demo writes an nginx.conf into a directory of its own, runs that file as `weir edge` would, sends a short load
//! through the edge and prints the result. The demo touches nothing outside that directory and removes the directory
//! at its end.

mod place;
mod verdict;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::Args;
use weir_edge::keeper::here::Here;
use weir_edge::keeper::{Keeper, load_with_dashboard};
use weir_edge::load;
use weir_http::hold::paths::Paths;
use weir_load::quick::{self, QuickRun};
use weir_net::Address;
use weir_net::log;
use weir_net::process::{self, Signal, Signals, SignalsHandle};
use weir_origin as dummy;
use weir_words::{Language, Said, say};

use crate::files::Disk;
use crate::lang::wrong::within;
use crate::texts;
use place::DemoDirectory;
use verdict::DemoVerdict;

/// The options of a request to the origin; printed by `weir origin --help`.
const WISHES: &str = "\
Every path answers. A request chooses its answer with these parameters:
  /64k  ?size=4096        bytes of body, as 4096, 64k, 1m     (1k)
  ?delay=20ms             silence before the answer           (none)
  ?status=503             status, 200 to 599                  (200)
  ?fail=KIND              reset close truncate half garbage endless-head lying-length stall
  ?chunked=1 ?trailers=1  chunked coding, with a trailer section
  ?header=Name:Value      one more field; may be repeated
  ?cache=max-age=60       Cache-Control
  ?keepalive=off          close after the answer
  /echo                   the request itself, as plain text
After Upgrade: websocket, the origin sends every frame back.";

/// `weir origin`.
#[derive(Args)]
#[command(after_help = WISHES)]
pub struct OriginArgs {
    /// Where to listen: HOST:PORT or unix:PATH; may be repeated
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8081", value_parser = address)]
    listen: Vec<Address>,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within(1..=dummy::WORKERS_MAX))]
    workers: usize,
}

/// `weir demo`, and `weir` alone.
#[derive(Args)]
pub struct DemoArgs {
    /// Port of the edge on 127.0.0.1; the origin gets the next port; weir takes other ports if these are in use
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// Connections of the load
    #[arg(long, value_name = "N", default_value_t = CONNECTIONS, value_parser = within(1..=CONNECTIONS_MAX))]
    connections: u32,
    /// Seconds of load
    #[arg(long, value_name = "S", default_value_t = SECONDS, value_parser = within(1..=SECONDS_MAX))]
    seconds: u32,
    /// End after the load instead of serving on
    #[arg(long)]
    once: bool,
}

const PORT: u16 = 8080;
const CONNECTIONS: u32 = 64;
const CONNECTIONS_MAX: u32 = 10_000;
const SECONDS: u32 = 5;
const SECONDS_MAX: u32 = 3600;

impl Default for DemoArgs {
    fn default() -> DemoArgs {
        DemoArgs { port: PORT, connections: CONNECTIONS, seconds: SECONDS, once: false }
    }
}

/// Runs the dummy origin until a signal ends it.
pub fn origin(args: &OriginArgs, language: Language) -> ExitCode {
    report(serve_origin(args, language).map(|()| true), "origin", language)
}

/// Starts everything, runs the load and prints the result; fails if any request failed.
pub fn demo(args: &DemoArgs, language: Language) -> ExitCode {
    report(run_demo(args, language), "demo", language)
}

fn report(outcome: Result<bool, Said>, verb: &str, language: Language) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("weir {verb}: {}", message.say(language));
            ExitCode::FAILURE
        }
    }
}

fn serve_origin(args: &OriginArgs, language: Language) -> Result<(), Said> {
    let tell = |said: Said| println!("{}", said.say(language));
    let signals = catch_signals()?;
    // The origin may hold many connections. If the kernel refuses to raise the limit, the old limit stays.
    let _ = process::raise_nofile();
    let origin =
        dummy::start(&args.listen, args.workers).map_err(|error| say!(texts::CANNOT_LISTEN, error.to_string()))?;
    for address in origin.addresses() {
        match address {
            Address::Tcp(address) => tell(say!(texts::ORIGIN_AT, format!("http://{address}/64k?delay=20ms"))),
            Address::Unix(_) => tell(say!(texts::ORIGIN_AT, address.to_string())),
        }
    }
    tell(say!(texts::ORIGIN_HELP));
    wait_for_the_end(signals);
    let totals = origin.totals();
    tell(say!(texts::ORIGIN_TOTALS, totals.requests, totals.connections));
    for address in origin.addresses() {
        if let Address::Unix(path) = address {
            // It does not matter if the file is already gone.
            let _ = std::fs::remove_file(path);
        }
    }
    Ok(())
}

fn catch_signals() -> Result<Signals, Said> {
    process::signals().map_err(|error| say!(texts::SIGNALS, error.to_string()))
}

fn wait_for_the_end(mut signals: Signals) {
    signals.find(|signal| matches!(signal, Signal::Quit | Signal::Term | Signal::Int));
}

/// `HOST:PORT` or `unix:PATH`.
fn address(text: &str) -> Result<Address, Said> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(Address::Unix(path.into()));
    }
    text.parse().map(Address::Tcp).map_err(|_| {
        Said::of_both("it must be an address with a port, or unix:PATH", "포트가 있는 주소나 unix:PATH를 쓰세요")
    })
}

fn run_demo(args: &DemoArgs, language: Language) -> Result<bool, Said> {
    let signals = catch_signals()?;
    let (origin, origin_at) = start_origin(args.port.saturating_add(1))?;
    let edge_at = free_address(args.port)?;
    let place = DemoDirectory::new(edge_at, origin_at, args.connections)
        .map_err(|error| say!(texts::NO_DIRECTORY, error.to_string()))?;
    let (running, dashboard) = start_edge(&place)?;
    println!("{}", say!(texts::DEMO_BEGINS, args.seconds, args.connections).say(language));
    if let Some(dashboard) = dashboard {
        println!("{}", say!(texts::DEMO_WATCH, format!("http://{dashboard}/")).say(language));
    }
    let outcome = Arc::new(OnceLock::new());
    let load = Load {
        url: format!("http://{edge_at}/1k"),
        connections: args.connections as usize,
        duration: Duration::from_secs(u64::from(args.seconds)),
        after: if args.once { String::new() } else { place.what_to_open(edge_at, dashboard, language) },
        language,
        end: args.once.then(|| signals.handle()),
        outcome: outcome.clone(),
    };
    std::thread::Builder::new()
        .name("demo".to_owned())
        .spawn(move || load.run())
        .map_err(|error| say!(texts::NO_THREAD, error.to_string()))?;
    // The edge's own loop: HUP reloads, INT and TERM end it, as in `weir edge`.
    running.serve(signals, &Disk);
    origin.stop();
    origin.join();
    match outcome.get() {
        Some(Ok(passed)) => Ok(*passed),
        Some(Err(message)) => Err(message.clone()),
        None => Err(say!(texts::NOT_COMPLETE)),
    }
}

/// Starts the origin on this port, or on a free port if this port is in use.
fn start_origin(port: u16) -> Result<(dummy::Origin, SocketAddr), Said> {
    let address = free_address(port)?;
    let origin = dummy::start(&[address.into()], 1)
        .map_err(|error| say!(texts::CANNOT_LISTEN_ON, address.to_string(), error.to_string()))?;
    let real = origin.tcp_address().unwrap_or(address);
    Ok((origin, real))
}

/// A free loopback address: this port, or a port that the kernel picks.
fn free_address(port: u16) -> Result<SocketAddr, Said> {
    let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    probe.and_then(|listener| listener.local_addr()).map_err(|error| say!(texts::NO_PORT, error.to_string()))
}

/// Starts the edge as `weir edge -p PLACE` does. Also gives the address of its dashboard.
fn start_edge(place: &DemoDirectory) -> Result<(Keeper<Here>, Option<SocketAddr>), Said> {
    let mut origin = load::ConfOrigin {
        file: place.file("nginx.conf"),
        globals: String::new(),
        paths: Paths { prefix: place.file(""), conf_prefix: place.file(""), ..Paths::default() },
        pid: place.file("logs/nginx.pid"),
        error_log: place.file("logs/error.log"),
        dashboard: load::Dashboard::AsWritten { on: None, unasked: true },
    };
    let (loaded, answers, claimed) = load_with_dashboard(&mut origin, &Disk, 1, &|_| false);
    for problem in &loaded.problems {
        eprint!("{}", weir_conf::render(problem, &loaded.tree, "weir"));
    }
    let conf = loaded.conf.ok_or_else(|| say!(texts::DEMO_REFUSED))?;
    log::open_default(Path::new(&origin.error_log));
    let dashboard = conf.dashboard;
    let keeper = Keeper::start(origin, (conf, loaded.tree, answers), claimed, Here::new)?;
    keeper.write_pid()?;
    Ok((keeper, dashboard))
}

/// The load. It runs on a thread of its own because the edge uses the main thread.
struct Load {
    url: String,
    connections: usize,
    duration: Duration,
    /// Printed after the verdict.
    after: String,
    /// Ends the edge when the load is done. `None`: the edge goes on serving.
    end: Option<SignalsHandle>,
    outcome: Arc<OnceLock<Result<bool, Said>>>,
    language: Language,
}

impl Load {
    fn run(self) {
        let outcome = self.measure();
        if let Err(message) = &outcome
            && self.end.is_none()
        {
            eprintln!("weir demo: {}", message.say(self.language));
        }
        print!("{}", self.after);
        // This is the only place that sets the outcome.
        let _ = self.outcome.set(outcome);
        if let Some(end) = self.end {
            end.close();
        }
    }

    fn measure(&self) -> Result<bool, Said> {
        let before = verdict::Cpu::now();
        let report = quick::run(&QuickRun {
            url: self.url.clone(),
            connections: self.connections,
            duration: self.duration,
            ..QuickRun::default()
        })?;
        let verdict = DemoVerdict { cpu: verdict::Cpu::now().since(before), report };
        print!("{}", verdict.text(self.language));
        Ok(verdict.is_clean())
    }
}
