//! Text for a Prometheus Pushgateway: all counts of the run so far, rates and summaries of the last period.

use std::time::Duration;

use indexmap::IndexMap;

use super::options::PrometheusOptions;
use super::post::{Post, post};
use crate::client::Resolver;
use crate::output::number::js;
use crate::random;
use crate::record::Period;

/// Time limit of one push.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Most time series that are kept; further ones are left out, as a Prometheus server would do.
const SERIES_MAX: usize = 100_000;

/// A Pushgateway, and the values pushed to it so far.
pub(super) struct Pushgateway {
    options: PrometheusOptions,
    /// The group of the pushes, one for each run.
    job: String,
    counters: IndexMap<String, f64>,
    rates: IndexMap<String, f64>,
    summaries: IndexMap<String, f64>,
    resolver: Resolver,
}

impl Pushgateway {
    pub(super) fn new(options: PrometheusOptions) -> Pushgateway {
        Pushgateway {
            options,
            job: std::env::var("WORKER_ID").unwrap_or_else(|_| random::uuid()),
            counters: IndexMap::new(),
            rates: IndexMap::new(),
            summaries: IndexMap::new(),
            resolver: Resolver::default(),
        }
    }

    /// Adds a period and pushes all values.
    pub(super) fn push(&mut self, period: &Period) -> Result<(), String> {
        self.add(period);
        let mut url = self.options.gateway.clone();
        url.target = format!("{}/metrics/job/{}", url.target.trim_end_matches('/'), escaped(&self.job));
        post(Post {
            url,
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            headers: Vec::new(),
            body: self.text().into_bytes(),
            ca: self.options.ca.clone(),
            timeout: TIMEOUT,
            resolver: self.resolver.clone(),
        })
    }

    fn add(&mut self, period: &Period) {
        for (name, count) in &period.counters {
            if let Some(sum) = series(&mut self.counters, key(name)) {
                *sum += *count as f64;
            }
        }
        for (name, rate) in &period.rates {
            if let Some(last) = series(&mut self.rates, key(name)) {
                *last = *rate;
            }
        }
        for (name, summary) in &period.summaries {
            for (figure, value) in summary.figures() {
                if let Some(last) = series(&mut self.summaries, format!("{}_{figure}", key(name))) {
                    *last = value;
                }
            }
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (family, kind, help, series) in [
            ("counters", "counter", "counter based stats", &self.counters),
            ("rates", "gauge", "rates based stats", &self.rates),
            ("summaries", "gauge", "summaries based stats", &self.summaries),
        ] {
            let family = format!("{}_{family}", self.options.prefix);
            text.push_str(&format!("# HELP {family} {help}\n# TYPE {family} {kind}\n"));
            for (metric, value) in series {
                text.push_str(&format!("{family}{{metric=\"{}\"", quoted(metric)));
                for (name, value) in &self.options.labels {
                    text.push_str(&format!(",{name}=\"{}\"", quoted(value)));
                }
                text.push_str(&format!("}} {}\n", js(*value)));
            }
        }
        text
    }
}

/// The value of a series; a new series only if there is room.
fn series(all: &mut IndexMap<String, f64>, name: String) -> Option<&mut f64> {
    match all.contains_key(&name) || all.len() < SERIES_MAX {
        true => Some(all.entry(name).or_default()),
        false => None,
    }
}

/// Lower case, with `_` for dots and spaces.
fn key(name: &str) -> String {
    name.replace(|c: char| c == '.' || c.is_whitespace(), "_").to_lowercase()
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A path segment, percent-encoded.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
        out
    })
}
