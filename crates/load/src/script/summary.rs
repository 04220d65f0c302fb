//! Describes a plan in a few lines.

use std::fmt;
use std::time::Duration;

use weir_words::{Language, Said, say};

use crate::arrive;
use crate::plan::{Arrivals, Connect, Engine, Flow, Phase, Plan, Scenario, Step};
use crate::texts::{self as all_texts, script as texts};
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

impl Plan {
    /// The plan as lines, in a language.
    pub fn told(&self, language: Language) -> String {
        let total: Duration = self.phases.iter().map(|phase| phase.duration).sum();
        let mut lines = vec![say!(texts::PLAN_TARGET, self.target.as_ref())];
        lines.extend(self.plugins.publish.iter().map(|reporter| say!(texts::PLAN_METRICS, reporter.said())));
        let phases = if self.phases.len() == 1 { texts::PLAN_PHASE } else { texts::PLAN_PHASES };
        lines.push(phases.with(&[self.phases.len().into(), seconds(total).into()]));
        lines.extend(self.phases.iter().take(LINES_MAX).map(|phase| inner(phase_line(phase))));
        lines.extend(more(self.phases.len()));
        let weights: u64 = self.scenarios.iter().map(|scenario| u64::from(scenario.weight)).sum();
        let scenarios = if self.scenarios.len() == 1 { texts::PLAN_SCENARIO } else { texts::PLAN_SCENARIOS };
        lines.push(scenarios.with(&[self.scenarios.len().into()]));
        lines.extend(self.scenarios.iter().take(LINES_MAX).map(|scenario| inner(scenario_line(scenario, weights))));
        lines.extend(more(self.scenarios.len()));
        let is_exact = self.phases.iter().all(|phase| arrive::expected(phase).is_some() && phase.vusers_max.is_none());
        let in_all = if is_exact { texts::PLAN_IN_ALL } else { texts::PLAN_ABOUT };
        lines.push(in_all.with(&[users(self.vusers())]));
        lines.iter().map(|line| format!("{}\n", line.say(language))).collect()
    }
}

/// The English lines.
impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.told(Language::English))
    }
}

/// A line below another one.
fn inner(line: Said) -> Said {
    Said::list(&["  ".into(), line], "")
}

fn phase_line(phase: &Phase) -> Said {
    let mut parts = vec![say!(texts::PLAN_PHASE_LINE, &phase.name, seconds(phase.duration), phase.arrivals.said())];
    parts.extend(arrive::expected(phase).map(users));
    parts.extend(phase.vusers_max.map(|most| say!(texts::PLAN_AT_MOST, most)));
    Said::list(&parts, ", ")
}

fn scenario_line(scenario: &Scenario, weights: u64) -> Said {
    let share = f64::from(scenario.weight) / weights.max(1) as f64 * 100.0;
    let engine = match scenario.engine {
        Engine::Http => "http",
        Engine::Ws => "ws",
        Engine::SocketIo => "socketio",
    };
    let steps = steps(&scenario.flow);
    let text = if steps == 1 { texts::PLAN_STEP } else { texts::PLAN_STEPS };
    text.with(&[scenario.name.as_ref().into(), engine.into(), format!("{share:.0}").into(), steps.into()])
}

fn more(count: usize) -> Option<Said> {
    (count > LINES_MAX).then(|| inner(say!(texts::PLAN_MORE, count - LINES_MAX)))
}

fn users(count: u64) -> Said {
    if count == 1 { say!(texts::PLAN_USER, count) } else { say!(texts::PLAN_USERS, count) }
}

fn seconds(duration: Duration) -> String {
    duration.as_secs_f64().to_string()
}

impl Arrivals {
    /// The arrivals in words.
    pub fn said(&self) -> Said {
        match self {
            Arrivals::Pause => say!(all_texts::ARRIVALS_PAUSE),
            Arrivals::Count(count) => say!(all_texts::ARRIVALS_COUNT, count),
            Arrivals::Rate(rate) => say!(all_texts::ARRIVALS_RATE, rate),
            Arrivals::Poisson(rate) => say!(all_texts::ARRIVALS_POISSON, rate),
            Arrivals::Ramp(from, to) => say!(all_texts::ARRIVALS_RAMP, from, to),
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
