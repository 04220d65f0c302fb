//! What a plan will do, in a few lines.

use std::fmt;
use std::time::Duration;

use crate::plan::{Arrivals, Engine, Flow, Phase, Plan, Step};

/// Scenarios and phases that are listed.
const LINES_MAX: usize = 50;

impl Phase {
    /// How many virtual users arrive; `None` when chance decides.
    ///
    /// Artillery's arithmetic (artillery.md §1.2): even intervals in whole microseconds, ramps in whole seconds.
    pub fn vusers(&self) -> Option<u64> {
        match self.arrivals {
            Arrivals::Pause => Some(0),
            Arrivals::Count(count) => Some(count),
            Arrivals::Poisson(_) => None,
            Arrivals::Rate(rate) => {
                let interval = (1e6 / rate).floor().max(1.0);
                Some((self.duration.as_micros() as f64 / interval).floor() as u64)
            }
            Arrivals::Ramp(from, to) => {
                Some((0..self.ramp_seconds()).map(|second| self.ramp_rate(from, to, second)).sum())
            }
        }
    }

    /// How many steps of a second a ramp has.
    pub fn ramp_seconds(&self) -> u64 {
        self.duration.as_secs() + u64::from(self.duration.subsec_nanos() > 0)
    }

    /// How many virtual users arrive in a second of a ramp, counted from 0.
    pub fn ramp_rate(&self, from: f64, to: f64, second: u64) -> u64 {
        let seconds = self.duration.as_secs_f64();
        let rate =
            if seconds <= 1.0 { (from + to) / 2.0 } else { from + (to - from) * second as f64 / (seconds - 1.0) };
        // Down at less than a half, up from there.
        (rate.max(0.0) + 0.5).floor() as u64
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: Duration = self.phases.iter().map(|phase| phase.duration).sum();
        writeln!(out, "target {}", self.target)?;
        writeln!(out, "{}, {}", counted(self.phases.len(), "phase"), seconds(total))?;
        for phase in self.phases.iter().take(LINES_MAX) {
            write!(out, "  {}: {}, {}", phase.name, seconds(phase.duration), arrivals(phase.arrivals))?;
            if let Some(vusers) = phase.vusers() {
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
        let known: u64 = self.phases.iter().filter_map(Phase::vusers).sum();
        let is_exact = self.phases.iter().all(|phase| phase.vusers().is_some() && phase.vusers_max.is_none());
        let expected: f64 = self
            .phases
            .iter()
            .map(|phase| match phase.arrivals {
                Arrivals::Poisson(rate) => rate * phase.duration.as_secs_f64(),
                _ => 0.0,
            })
            .sum();
        let about = if is_exact { "" } else { "about " };
        writeln!(out, "{about}{} in all", counted(known as usize + expected.round() as usize, "virtual user"))
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

fn arrivals(arrivals: Arrivals) -> String {
    match arrivals {
        Arrivals::Pause => "nobody arrives".to_owned(),
        Arrivals::Count(_) => "evenly".to_owned(),
        Arrivals::Rate(rate) => format!("{rate} a second"),
        Arrivals::Poisson(rate) => format!("{rate} a second at random"),
        Arrivals::Ramp(from, to) => format!("{from} to {to} a second"),
    }
}

/// Steps as written, those of loops too.
fn steps(flow: &Flow) -> usize {
    flow.iter()
        .map(|step| match step {
            Step::Loop(inner) => 1 + steps(&inner.flow),
            Step::Parallel { steps: inner, .. } => 1 + steps(inner),
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vusers(seconds: f64, arrivals: Arrivals) -> Option<u64> {
        let duration = Duration::from_secs_f64(seconds);
        Phase { name: String::new(), shown: String::new(), duration, arrivals, vusers_max: None }.vusers()
    }

    #[test]
    fn virtual_users_are_counted_as_artillery_does() {
        let cases = [
            (6.0, Arrivals::Rate(5.0), 30),
            (10.0, Arrivals::Rate(3.0), 30),
            (1.0, Arrivals::Rate(0.5), 0),
            (60.0, Arrivals::Rate(0.5), 30),
            (5.0, Arrivals::Ramp(2.0, 10.0), 30),
            (5.0, Arrivals::Ramp(10.0, 2.0), 30),
            (1.0, Arrivals::Ramp(2.0, 10.0), 6),
            (9.0, Arrivals::Count(7), 7),
            (9.0, Arrivals::Pause, 0),
        ];
        for (seconds, arrivals, expected) in cases {
            assert_eq!(vusers(seconds, arrivals), Some(expected), "{seconds} {arrivals:?}");
        }
        assert_eq!(vusers(1.0, Arrivals::Poisson(5.0)), None);
    }
}
