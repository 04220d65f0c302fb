//! `floor`: the cheapest relay, origin and load generators we know how to write.
//!
//! They exist to be measured against, so they do the work a proxy cannot avoid and nothing
//! else: no configuration, no log, no timeouts, no chunked bodies. One process, one thread (the relay may have
//! several), raw epoll (the relay may use io_uring). Not a product: never put one in front of anything but the bench.

#![deny(unsafe_code)]
// The bans are for weir: its threads and its clock are those of `net`.
#![allow(clippy::disallowed_methods)]

mod buffers;
mod exchange;
mod flags;
mod http;
mod idle;
mod load;
mod origin;
mod relay;
mod sys;
mod uring;
mod waits;
mod wakes;
mod wsload;

use flags::Flags;
use std::process::ExitCode;

const USAGE: &str = "usage:
  floor relay  --listen ADDR --origin ADDR [--workers N] [--ring multi|single [--buffers N] | --send late]   on io_uring with --ring
  floor origin --listen ADDR          answers /1k, /64k, /1m, /app; an Upgrade becomes an echo
  floor cached --listen ADDR          the same answers: a cache hit without a cache
  floor load   --target ADDR --path PATH --rate R --conns N --seconds S [--spread N]   PATH0, PATH1 ... in turns
  floor wsload --target ADDR --conns N --seconds S
  floor idle   --target ADDR --conns N [--path PATH | --ws]   holds them until stdin ends
  floor wakes                         CPU time of a sleep, of waking a halted CPU, of being woken, of a system call
  floor waits  --rate R --micros US --seconds S   CPU time of an event, by the way of waiting for several";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let verb = args.next().unwrap_or_default();
    let outcome = Flags::parse(args).and_then(|flags| match verb.as_str() {
        "relay" => relay::run(&flags),
        "origin" | "cached" => origin::run(&flags),
        "load" => load::run(&flags),
        "wsload" => wsload::run(&flags),
        "idle" => idle::run(&flags),
        "wakes" => wakes::run(),
        "waits" => waits::run(&flags),
        _ => Err(std::io::Error::other(USAGE)),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor {verb}: {error}");
            ExitCode::FAILURE
        }
    }
}
