//! Fleets with a real redis-server: the scripts of the ledger beside the model that the property test of `weir_fleet` uses,
//! and the edges, by `tests/fleet.py`.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "../crates/fleet/tests/ledger/mod.rs"]
mod ledger;
#[path = "support/needs.rs"]
mod needs;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use fastrand::Rng;
use ledger::Ledger;
use needs::{Need, cases};
use weir_fleet::{BEAT, Beat, BeatReply, DEBIT, DebitReply, FORGET_MS, LimitTerms, SILENT_MS};

/// Ledgers, and steps of each.
const LEDGERS: u64 = 60;
const STEPS: usize = 200;

/// The scripts write shares with nine digits, so the fleet's time may differ by this much, in milliseconds.
const ROUNDING_MS: i64 = 1;

/// The cases of `tests/fleet.py` that each run of all tests has; it has more.
const CASES: [&str; 5] = ["together", "killed and restarted", "pairs", "sessions", "servers"];

fn main() -> ExitCode {
    needs::run(cases![
        [Need::Program("redis-server")] => the_scripts_do_what_the_model_does;
        [Need::Program("redis-server"), Need::Program("python3")] => three_edges_share_what_must_be_shared
    ])
}

fn three_edges_share_what_must_be_shared() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet.py");
    let output = Command::new(script)
        .args(["--weir", env!("CARGO_BIN_EXE_weir"), "--seconds", "2", "--busy"])
        .args(CASES)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}", said.concat());
}

struct Redis {
    server: Child,
    stream: BufReader<UnixStream>,
}

impl Redis {
    fn start(room: &Path) -> Redis {
        let socket = room.join("redis.sock");
        let server = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(room)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        support::within("redis-server answers", || UnixStream::connect(&socket).is_ok());
        Redis { server, stream: BufReader::new(UnixStream::connect(&socket).unwrap()) }
    }

    fn ask(&mut self, words: &[String]) -> Vec<String> {
        let mut out = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| out += &format!("${}\r\n{word}\r\n", word.len()));
        self.stream.get_mut().write_all(out.as_bytes()).unwrap();
        let mut items = Vec::new();
        self.read(&mut items);
        items
    }

    fn read(&mut self, items: &mut Vec<String>) {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            "*" => (0..rest.parse().unwrap()).for_each(|_| self.read(items)),
            "$" => {
                let mut text = vec![0; rest.parse::<usize>().unwrap() + 2];
                self.stream.read_exact(&mut text).unwrap();
                items.push(String::from_utf8(text).unwrap().trim_end().to_owned());
            }
            "-" => panic!("{rest}"),
            _ => items.push(rest.to_owned()),
        }
    }

    fn run(&mut self, script: &str, keys: &[&str], words: &[String]) -> Vec<String> {
        let head = ["EVAL".to_owned(), script.to_owned(), keys.len().to_string()];
        let keys = keys.iter().map(|key| (*key).to_owned());
        self.ask(&head.into_iter().chain(keys).chain(words.iter().cloned()).collect::<Vec<_>>())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn the_scripts_do_what_the_model_does() {
    let room = support::scratch("fleet-scripts");
    let mut redis = Redis::start(&room);
    let (mut beats, mut debits) = (0, 0);
    for seed in 0..LEDGERS {
        let mut rng = Rng::with_seed(seed);
        redis.ask(&["FLUSHALL".to_owned()]);
        let mut model = Ledger::new(0);
        // The share that each edge holds.
        let mut edges = [0.0; 4];
        let terms = LimitTerms::new(*rng.choice(&[500, 10_000, 300_000]).unwrap(), 20_000, None);
        let mut now = 1_000_000;
        for step in 0..STEPS {
            now += *rng.choice(&[0, 1, 7, 60, 150, 400, 2000, 400_000]).unwrap() * i64::from(rng.u8(..) < 200);
            if rng.u8(..) < 3 {
                redis.ask(&["FLUSHALL".to_owned()]);
                model.forget();
            }
            if rng.bool() {
                let name = rng.usize(0..edges.len());
                let held = edges[name];
                let not_after_ms = now + *rng.choice(&[-1, 0, 100]).unwrap();
                let beat = Beat { not_after_ms, held, part: 0.25 };
                let wanted = model.beat(now, name, &beat);
                let words = [
                    now.to_string(),
                    format!("edge {name}"),
                    "r".to_owned(),
                    not_after_ms.to_string(),
                    format!("{held:.9}"),
                    "0.25".to_owned(),
                    SILENT_MS.to_string(),
                    FORGET_MS.to_string(),
                ];
                let items = redis.run(BEAT, &["{t}:fleet", "{t}:shares"], &words);
                let got = BeatReply::read(&items.iter().map(String::as_str).collect::<Vec<_>>());
                let place = format!("seed {seed}, step {step}: {got:?}, and not {wanted:?}");
                match (got, wanted) {
                    (
                        Some(BeatReply::Counted { redis_ms, share, edges: count }),
                        BeatReply::Counted { redis_ms: at, share: part, edges: all },
                    ) => {
                        assert_eq!((redis_ms, count), (at, all), "{place}");
                        assert!((share - part).abs() < 1e-6, "{place}");
                        edges[name] = part;
                        beats += 1;
                    }
                    (got, wanted) => assert_eq!(got, Some(wanted), "{place}"),
                }
            } else {
                let debt = rng.i64(1..9000);
                let wanted = model.debit(now, &terms, debt);
                let words = [now, terms.rate, terms.capacity, debt].map(|number| number.to_string());
                let items = redis.run(DEBIT, &["{t}:fleet", "{t}:bucket"], &words);
                let items: Vec<i64> = items.iter().map(|item| item.parse().unwrap()).collect();
                let got = DebitReply::read(&items, 1).and_then(|replies| replies.first().copied());
                let place = format!("seed {seed}, step {step}: {got:?}, and not {wanted:?}");
                match (got, wanted) {
                    (Some(got), Some(wanted)) => {
                        let rounding = 2 + terms.rate * ROUNDING_MS / 1000;
                        assert!((got.taken - wanted.taken).abs() <= rounding, "{place}");
                        assert!((got.level - wanted.level).abs() <= rounding, "{place}");
                        debits += 1;
                    }
                    (got, wanted) => assert_eq!(got, wanted, "{place}"),
                }
            }
        }
    }
    drop(redis);
    let _ = std::fs::remove_dir_all(&room);
    assert!(beats > 1000 && debits > 1000, "{beats} {debits}");
}
