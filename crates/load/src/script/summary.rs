//! Describes a plan in a few lines.

use std::fmt;
use std::time::Duration;

use crate::arrive;
use crate::plan::{Arrivals, Connect, Engine, Flow, Plan, Step};
use crate::value::Value;

/// Most scenarios and phases in the list.
const LINES_MAX: usize = 50;

impl Plan {
    /// Every origin that requests of the script name, `config.target` first; origins in variables are not known yet.
    pub fn targets(&self) -> Vec<String> {
        let mut targets = vec![origin(&self.target)];
        let hooks = self.before.iter().chain(&self.after).map(|hook| &hook.flow);
        for flow in self.scenarios.iter().map(|scenario| &scenario.flow).chain(hooks) {
            named(flow, &mut targets);
        }
        targets
    }

    /// Number of virtual users that arrive in all phases; of random arrivals, the expected number.
    pub fn vusers(&self) -> u64 {
        let known: u64 = self.phases.iter().filter_map(arrive::expected).sum();
        let random = self.phases.iter().map(|phase| match phase.arrivals {
            Arrivals::Poisson(rate) => rate * phase.duration.as_secs_f64(),
            _ => 0.0,
        });
        known + random.sum::<f64>().round() as u64
    }

    /// Parts of metric names that the console does not show.
    pub fn suppressed(&self) -> Vec<String> {
        let is_suppressed = |options: &Value| match options {
            Value::Map(map) => map.get("suppressOutput").is_some_and(Value::is_truthy),
            _ => false,
        };
        let plugins = &self.plugins;
        let by_endpoint = plugins.by_endpoint.as_ref().is_none_or(is_suppressed);
        let others = [("expect", &plugins.expect), ("ensure", &plugins.ensure), ("fake-data", &plugins.fake_data)];
        let others = others.into_iter().filter(|(_, options)| options.as_ref().is_some_and(is_suppressed));
        let by_endpoint = by_endpoint.then_some("metrics-by-endpoint");
        others.map(|(name, _)| name).chain(by_endpoint).map(|name| format!("plugins.{name}")).collect()
    }
}

/// `scheme://host:port` of a URL.
fn origin(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(start..).and_then(|rest| rest.find(['/', '?', '#'])).map_or(url.len(), |at| start + at);
    url.get(..end).unwrap_or(url).to_owned()
}

fn named(flow: &Flow, targets: &mut Vec<String>) {
    for step in flow {
        let url = match step {
            Step::Request(request) => request.url.as_ref(),
            Step::Connect(connect) => match &**connect {
                Connect::Url(url) => Some(url),
                Connect::Options(_) | Connect::Function(_) => None,
            },
            Step::Loop(inner) => {
                named(&inner.flow, targets);
                None
            }
            Step::Parallel { steps, .. } => {
                named(steps, targets);
                None
            }
            _ => None,
        };
        let written = url.and_then(|url| url.literal()).filter(|url| url.contains("://")).map(origin);
        if let Some(written) = written.filter(|written| !targets.contains(written))
            && targets.len() < LINES_MAX
        {
            targets.push(written);
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: Duration = self.phases.iter().map(|phase| phase.duration).sum();
        writeln!(out, "target {}", self.target)?;
        for reporter in &self.plugins.publish {
            writeln!(out, "metrics go to {reporter}")?;
        }
        writeln!(out, "{}, {}", counted(self.phases.len(), "phase"), seconds(total))?;
        for phase in self.phases.iter().take(LINES_MAX) {
            write!(out, "  {}: {}, {}", phase.name, seconds(phase.duration), phase.arrivals)?;
            if let Some(vusers) = arrive::expected(phase) {
                write!(out, ", {}", counted(vusers as usize, "virtual user"))?;
            }
            if let Some(most) = phase.vusers_max {
                write!(out, ", at most {most} at once")?;
            }
            writeln!(out)?;
        }
        more(out, self.phases.len())?;
        let weights: u64 = self.scenarios.iter().map(|scenario| u64::from(scenario.weight)).sum();
        writeln!(out, "{}", counted(self.scenarios.len(), "scenario"))?;
        for scenario in self.scenarios.iter().take(LINES_MAX) {
            let share = f64::from(scenario.weight) / weights.max(1) as f64 * 100.0;
            let engine = match scenario.engine {
                Engine::Http => "http",
                Engine::Ws => "ws",
                Engine::SocketIo => "socketio",
            };
            writeln!(out, "  {}: {engine}, {share:.0} %, {}", scenario.name, counted(steps(&scenario.flow), "step"))?;
        }
        more(out, self.scenarios.len())?;
        let is_exact = self.phases.iter().all(|phase| arrive::expected(phase).is_some() && phase.vusers_max.is_none());
        let about = if is_exact { "" } else { "about " };
        writeln!(out, "{about}{} in all", counted(self.vusers() as usize, "virtual user"))
    }
}

fn more(out: &mut fmt::Formatter<'_>, count: usize) -> fmt::Result {
    if count > LINES_MAX { writeln!(out, "  and {} more", count - LINES_MAX) } else { Ok(()) }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

impl fmt::Display for Arrivals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arrivals::Pause => out.write_str("nobody arrives"),
            Arrivals::Count(count) => write!(out, "{count} in all, evenly"),
            Arrivals::Rate(rate) => write!(out, "{rate} a second"),
            Arrivals::Poisson(rate) => write!(out, "{rate} a second at random"),
            Arrivals::Ramp(from, to) => write!(out, "{from} to {to} a second"),
        }
    }
}

/// Number of steps as written, including those of loops.
fn steps(flow: &Flow) -> usize {
    flow.iter()
        .map(|step| match step {
            Step::Loop(inner) => 1 + steps(&inner.flow),
            Step::Parallel { steps: inner, .. } => 1 + steps(inner),
            _ => 1,
        })
        .sum()
}
