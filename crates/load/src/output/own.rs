//! The key `weir` of a report: data that Artillery does not have. `docs/guide/load/report.md` documents its shape.

use std::collections::BTreeMap;
use weir_words::Said;

use serde_json::{Map, Value, json};

use super::{RunFacts, SelfCheck, number};
use crate::record::{Figures, Hdr, Point, RunResults, phase};

/// Version of the shape; it is raised when a key changes its meaning.
const VERSION: u64 = 1;

/// The whole section.
pub fn section(outcome: &RunResults, facts: &RunFacts) -> Value {
    json!({
        "version": VERSION,
        "targets": facts.targets,
        "script": facts.script,
        "script_id": facts.script_id,
        "test_run_id": facts.test_run_id,
        "started_ms": facts.started_ms,
        "ended_ms": facts.ended_ms,
        "phases": phases(facts),
        "environment": facts.environment.iter().cloned().map(|(name, value)| (name, value.into())).collect::<Map<_, _>>(),
        "checks": checks(facts),
        "incomplete": facts.incomplete.iter().map(Said::en).collect::<Vec<_>>(),
        "incomplete_said": facts.incomplete,
        "latency_unit": "ms",
        "response": latency(&outcome.own.response),
        "service": latency(&outcome.own.service),
        "schedule_lag": latency(&outcome.own.lag),
        "dropped": outcome.own.dropped,
        "failures": failures(outcome),
        "generator": generator(&facts.self_check),
        "windows": windows(outcome),
        "series": series(outcome),
    })
}

fn phases(facts: &RunFacts) -> Vec<Value> {
    let phase = |phase: &super::PhaseFact| json!({"name": phase.name, "duration": phase.shown, "duration_ms": phase.duration_ms, "arrivals": phase.arrivals.en(), "arrivals_said": phase.arrivals});
    facts.phases.iter().map(phase).collect()
}

fn checks(facts: &RunFacts) -> Vec<Value> {
    let check =
        |check: &super::ensure::Check| json!({"check": check.shown, "ok": check.is_ok, "strict": check.is_strict});
    facts.checks.iter().map(check).collect()
}

fn latency(hdr: &Hdr) -> Value {
    let mut out = figures(&Figures::of(hdr));
    out.insert("hdr_ns".to_owned(), hdr.encoded().into());
    out.into()
}

fn figures(figures: &Figures) -> Map<String, Value> {
    let Figures { count, min, mean, p50, p90, p95, p99, p999, max } = *figures;
    let times = [
        ("min", min),
        ("mean", mean),
        ("p50", p50),
        ("p90", p90),
        ("p95", p95),
        ("p99", p99),
        ("p999", p999),
        ("max", max),
    ];
    let times = times.into_iter().map(|(name, ms)| (name.to_owned(), number::json(ms)));
    std::iter::once(("count".to_owned(), count.into())).chain(times).collect()
}

fn failures(outcome: &RunResults) -> Vec<Value> {
    let failure = |((step, name), count): ((weir_meter::Step, &str), u64)| json!({"hop": "target", "phase": phase(step), "name": name, "count": count});
    outcome.own.failures.iter().map(|((step, name), count)| failure(((*step, &**name), *count))).collect()
}

fn generator(check: &SelfCheck) -> Value {
    let (limits, cautions) = (check.limits(), check.cautions());
    let agents = check.agents.iter().map(|(name, check)| (name.clone(), generator(check))).collect::<Map<_, _>>();
    let room = |room: Option<(u64, u64)>| room.map(|(used, all)| json!({"used": used, "of": all}));
    json!({
        "is_limit": !limits.is_empty(),
        "limits": limits.iter().map(Said::en).collect::<Vec<_>>(),
        "limits_said": limits,
        "cautions": cautions.iter().map(Said::en).collect::<Vec<_>>(),
        "cautions_said": cautions,
        "worker_cpu": check.worker_cpu.iter().map(|cpu| number::json(thousandths(*cpu))).collect::<Vec<_>>(),
        "worker_cpu_peak": check.worker_cpu_peak.map(thousandths),
        "machine_cpu": check.machine_cpu.map(thousandths),
        "throttled": check.throttled.map(thousandths),
        "lag_p99_ms": check.lag_p99_ms.map(number::json),
        "lag_p99_least_ms": check.lag_p99_least_ms.map(number::json),
        "lag_max_ms": check.lag_max_ms.map(number::json),
        "ports": room(check.ports),
        "descriptors": room(check.descriptors),
        "agents": agents,
    })
}

fn thousandths(part: f64) -> f64 {
    (part * 1000.0).round() / 1000.0
}

fn windows(outcome: &RunResults) -> Vec<Value> {
    let window = |period: &crate::record::Period| json!({"period": period.start_ms, "response": figures(&period.response), "service": figures(&period.service)});
    outcome.periods.iter().map(window).collect()
}

/// Columns of equal length, one place for each `interval_ms` from `start_ms` on.
fn series(outcome: &RunResults) -> Value {
    let (Some(first), Some(last)) = (outcome.points.first(), outcome.points.last()) else { return Value::Null };
    let interval_ms = outcome.point_ms.max(1);
    let length = ((last.start_ms - first.start_ms) / interval_ms) as usize + 1;
    let place = |point: &Point| ((point.start_ms - first.start_ms) / interval_ms) as usize;
    let mut counts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for point in &outcome.points {
        for (name, count) in &point.counts {
            let column = counts.entry(name).or_insert_with(|| vec![0; length]);
            if let Some(slot) = column.get_mut(place(point)) {
                *slot += count;
            }
        }
    }
    let column = |of: &dyn Fn(&Point) -> Option<[f64; 5]>, index: usize| {
        let mut column = vec![Value::Null; length];
        for point in &outcome.points {
            if let (Some(slot), Some(ms)) =
                (column.get_mut(place(point)), of(point).and_then(|five| five.get(index).copied()))
            {
                *slot = number::json((ms * 1000.0).round() / 1000.0);
            }
        }
        Value::Array(column)
    };
    let quantiles = |of: &dyn Fn(&Point) -> Option<[f64; 5]>| json!({"p50": column(of, 0), "p90": column(of, 1), "p95": column(of, 2), "p99": column(of, 3), "max": column(of, 4)});
    json!({
        "start_ms": first.start_ms,
        "interval_ms": interval_ms,
        "length": length,
        "counts": counts,
        "response": quantiles(&|point| point.response),
        "service": quantiles(&|point| point.service),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Merger, Recorder};
    use std::time::Duration;
    use weir_meter::Step;

    const T: u64 = 1_795_186_840_000;

    #[test]
    fn what_was_recorded_can_be_read() {
        let recorder = Recorder::at(T);
        recorder.latency(Duration::from_millis(30), Duration::from_millis(20));
        recorder.set_ms(T + 3_500);
        recorder.count(recorder.metric("http.requests"), 2);
        recorder.latency(Duration::from_millis(10), Duration::from_millis(10));
        recorder.failure(Step::Connect, "ECONNREFUSED");
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger.close(u64::MAX);
        let check = SelfCheck { worker_cpu: vec![0.95], ports: Some((1, 2)), ..SelfCheck::default() };
        let section = section(&merger.outcome(), &RunFacts { self_check: check, ..RunFacts::default() });
        assert_eq!((&section["response"]["count"], &section["failures"][0]["phase"]), (&json!(2), &json!("connect")));
        let hdr = Hdr::decode(section["response"]["hdr_ns"].as_str().unwrap()).unwrap();
        assert_eq!(hdr.count(), 2);
        assert_eq!(
            (&section["generator"]["is_limit"], &section["generator"]["ports"]["of"]),
            (&json!(true), &json!(2))
        );
        let series = &section["series"];
        assert_eq!((&series["length"], &series["counts"]["http.requests"]), (&json!(4), &json!([0, 0, 0, 2])));
        assert_eq!(
            (&series["response"]["p50"][1], series["service"]["max"].as_array().unwrap().len()),
            (&Value::Null, 4)
        );
        assert_eq!(section["windows"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn nothing_recorded_is_no_series() {
        assert_eq!(section(&RunResults::default(), &RunFacts::default())["series"], Value::Null);
    }
}
