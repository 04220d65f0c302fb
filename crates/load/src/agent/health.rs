//! The self-check of an agent, as JSON.

use serde_json::{Value, json};

use crate::output::SelfCheck;

/// Writes a self-check as JSON.
pub fn write(check: &SelfCheck) -> Value {
    json!({
        "worker_cpu": check.worker_cpu, "worker_cpu_peak": check.worker_cpu_peak, "machine_cpu": check.machine_cpu,
        "throttled": check.throttled, "lag_p99_ms": check.lag_p99_ms, "lag_p99_least_ms": check.lag_p99_least_ms,
        "lag_max_ms": check.lag_max_ms, "ports": check.ports.map(|(a, b)| [a, b]),
        "descriptors": check.descriptors.map(|(a, b)| [a, b]), "dropped": check.dropped,
    })
}

/// Reads the JSON of [`write`]; a missing member means that the value was not measured.
pub fn read(json: &Value) -> SelfCheck {
    let float = |key: &str| json.get(key).and_then(Value::as_f64);
    let room = |key: &str| Some((json.get(key)?.get(0)?.as_u64()?, json.get(key)?.get(1)?.as_u64()?));
    let cpus = json.get("worker_cpu").and_then(Value::as_array);
    SelfCheck {
        worker_cpu: cpus.into_iter().flatten().filter_map(Value::as_f64).collect(),
        worker_cpu_peak: float("worker_cpu_peak"),
        machine_cpu: float("machine_cpu"),
        throttled: float("throttled"),
        lag_p99_ms: float("lag_p99_ms"),
        lag_p99_least_ms: float("lag_p99_least_ms"),
        lag_max_ms: float("lag_max_ms"),
        ports: room("ports"),
        descriptors: room("descriptors"),
        dropped: json.get("dropped").and_then(Value::as_u64).unwrap_or(0),
        agents: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_gives_it_back() {
        let check = SelfCheck {
            worker_cpu: vec![0.5, 0.25],
            worker_cpu_peak: Some(0.75),
            throttled: Some(0.25),
            lag_p99_ms: Some(12.5),
            lag_p99_least_ms: Some(11.5),
            ports: Some((3, 28_232)),
            dropped: 4,
            ..SelfCheck::default()
        };
        assert_eq!(read(&write(&check)), check);
        assert_eq!(read(&Value::Null), SelfCheck::default());
    }
}
