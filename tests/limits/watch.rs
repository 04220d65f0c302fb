//! A viewer of the feed: its events and their times.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::stage::{Edge, PATIENCE};

/// The data of one event.
#[derive(Clone, Debug)]
pub struct Second {
    /// Arrival time.
    pub at: Instant,
    /// The verdict's state and sentence.
    pub state: String,
    words: String,
    /// The limit in the verdict.
    pub kind: String,
    pub of: String,
    /// The share of that limit in use.
    pub ratio: f64,
    /// The next limit in the verdict, and the share in use.
    next: (String, String, f64),
    /// The remedy.
    pub remedy: String,
    /// Errors counted so far, of all classes.
    pub errors: u64,
}

/// From this share on, the next limit is near.
const NEAR: f64 = 0.8;

impl Second {
    /// True if the verdict warns of this limit. If the hypervisor leaves the machine no CPU time, the verdict says that
    /// first, and this limit is the next.
    pub fn warns(&self, kind: &str, of: &str) -> bool {
        let is_next = || self.next.0 == kind && self.next.1 == of && self.next.2 >= NEAR;
        match self.state.as_str() {
            "near" | "limited" => (self.kind == kind && self.of == of) || (self.kind == "cpu_credits" && is_next()),
            _ => false,
        }
    }

    /// The event as one line.
    pub fn said(&self, begun: Instant) -> String {
        let Second { state, words, errors, ratio, .. } = self;
        format!("{:.1?}: {state}: {words} [{ratio:.2}], {errors} errors", self.at - begun)
    }
}

/// A viewer.
pub struct Watch {
    /// Start time.
    pub begun: Instant,
    seconds: Arc<Mutex<Vec<Second>>>,
}

impl Watch {
    /// Connects, and waits for the first event.
    pub fn begin(edge: &Edge) -> Watch {
        let mut stream = TcpStream::connect(edge.dashboard).unwrap();
        stream.write_all(b"GET /feed HTTP/1.0\r\nAuthorization: Bearer a token for tests only\r\n\r\n").unwrap();
        let watch = Watch { begun: Instant::now(), seconds: Arc::default() };
        let seconds = watch.seconds.clone();
        std::thread::spawn(move || {
            let mut document = Value::Null;
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let Some(data) = line.strip_prefix("data: ") else { continue };
                merge(&mut document, serde_json::from_str(data).unwrap());
                seconds.lock().unwrap().push(second(&document));
            }
        });
        watch.until("the first event", |seconds| seconds.first().map(|_| ()));
        watch
    }

    /// All events so far.
    pub fn all(&self) -> Vec<Second> {
        self.seconds.lock().unwrap().clone()
    }

    /// Waits for `count` events after this moment; returns the last of them.
    pub fn after(&self, moment: Instant, count: usize) -> Second {
        self.until("events go on", |seconds| seconds.iter().filter(|second| second.at > moment).nth(count).cloned())
    }

    /// Waits until `found` returns a value for the events.
    pub fn until<T>(&self, what: &str, found: impl Fn(&[Second]) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = found(&self.seconds.lock().unwrap()) {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}: {:#?}", self.all());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn second(document: &Value) -> Second {
    let text = |path: &str| document.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |path: &str| document.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
    let (kind, of) = (text("/verdict/limit/kind"), text("/verdict/limit/of"));
    let errors = document.pointer("/snapshot/weir/errors").and_then(Value::as_array);
    Second {
        at: Instant::now(),
        state: text("/verdict/state"),
        words: text("/verdict/words/en"),
        ratio: number("/verdict/limit/ratio"),
        remedy: text("/verdict/remedy/en"),
        next: (text("/verdict/next/kind"), text("/verdict/next/of"), number("/verdict/next/ratio")),
        errors: errors.into_iter().flatten().filter_map(|class| class["count"].as_u64()).sum(),
        kind,
        of,
    }
}

/// A merge patch (RFC 7396); an object in place of a list patches that list by index.
fn merge(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (name, change) in patch {
                if change.is_null() {
                    into.remove(&name);
                } else {
                    merge(into.entry(name).or_insert(Value::Null), change);
                }
            }
        }
        (Value::Array(into), Value::Object(patch)) => {
            for (place, change) in patch {
                merge(&mut into[place.parse::<usize>().unwrap()], change);
            }
        }
        (into, patch) => *into = patch,
    }
}
