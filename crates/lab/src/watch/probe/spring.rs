//! Spring Boot's metrics: Tomcat's threads and Hikari's pools, from the Prometheus page or one by one.

use super::program::Probe;
use super::ways::{Reading, get, url};

/// Micrometer's names in Prometheus form, their names here, and their factors.
const METRICS: &[(&str, &str, f64)] = &[
    ("tomcat_threads_busy_threads", "busy", 1.0),
    ("tomcat_threads_config_max_threads", "busy_max", 1.0),
    ("hikaricp_connections_active", "active", 1.0),
    ("hikaricp_connections_pending", "pending", 1.0),
    ("hikaricp_connections_max", "pool", 1.0),
    ("hikaricp_connections_timeout_total", "pool_timeouts", 1.0),
    ("jvm_gc_pause_seconds_sum", "gc_ms", 1000.0),
];

/// Takes a reading. A path that the user gave is taken as the Prometheus page.
pub fn read(probe: &Probe) -> Result<Reading, String> {
    let (at, path) = url(&probe.at);
    let page = get(&at, path.as_deref().unwrap_or("/actuator/prometheus"));
    let found = match &page {
        Ok(page) => of_page(page),
        // Without the Prometheus registry, each metric has an address of its own.
        Err(_) if path.is_none() => one_by_one(&at),
        Err(_) => Reading::new(),
    };
    if !found.is_empty() {
        return Ok(found);
    }
    Err(match page {
        Ok(_) => format!(
            "http://{at}: none of its metrics is Tomcat's or Hikari's (server.tomcat.mbeanregistry.enabled=true)"
        ),
        Err(why) => format!(
            "{why} (spring-boot-starter-actuator, management.endpoints.web.exposure.include=prometheus,metrics; else --probe spring=URL)"
        ),
    })
}

/// The sums over all labels of a name.
fn of_page(page: &str) -> Reading {
    let mut found = Reading::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        let known = METRICS.iter().find(|(known, _, _)| *known == name);
        let value =
            line.rsplit_once('}').map_or_else(|| line.split(' ').nth(1), |(_, rest)| rest.split_whitespace().next());
        if let (Some((_, own, factor)), Some(value)) = (known, value.and_then(|value| value.parse::<f64>().ok())) {
            *found.entry((*own).to_owned()).or_default() += value * factor;
        }
    }
    found
}

fn one_by_one(at: &str) -> Reading {
    let mut found = Reading::new();
    for (name, own, factor) in METRICS {
        let (name, statistic) = match *name {
            "jvm_gc_pause_seconds_sum" => ("jvm.gc.pause".to_owned(), "TOTAL_TIME"),
            "tomcat_threads_busy_threads" => ("tomcat.threads.busy".to_owned(), "VALUE"),
            "tomcat_threads_config_max_threads" => ("tomcat.threads.config.max".to_owned(), "VALUE"),
            "hikaricp_connections_timeout_total" => ("hikaricp.connections.timeout".to_owned(), "COUNT"),
            name => (name.replace('_', "."), "VALUE"),
        };
        match get(at, &format!("/actuator/metrics/{name}")) {
            Ok(text) => {
                if let Some(value) = measured(&text, statistic) {
                    found.insert((*own).to_owned(), value * factor);
                }
            }
            // A 404 means that the metric does not exist. If the program does not answer, it will not answer for the
            // next metric either.
            Err(why) if why.contains(" 404") => {}
            Err(_) => break,
        }
    }
    found
}

fn measured(text: &str, statistic: &str) -> Option<f64> {
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    let all = json["measurements"].as_array()?;
    all.iter().find(|one| one["statistic"] == statistic)?["value"].as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_summed_over_their_labels() {
        let page = "# HELP tomcat_threads_busy_threads  \n\
            tomcat_threads_busy_threads{name=\"http-nio-8080\",} 5.0\n\
            tomcat_threads_config_max_threads{name=\"http-nio-8080\"} 5.0\n\
            hikaricp_connections_active{pool=\"a\"} 4.0\nhikaricp_connections_active{pool=\"b\"} 1.0\n\
            jvm_gc_pause_seconds_sum{action=\"end of minor GC\",cause=\"x } y\"} 0.25\nprocess_uptime_seconds 3\n";
        let found = of_page(page);
        assert_eq!((found["busy"], found["busy_max"], found["active"], found["gc_ms"]), (5.0, 5.0, 5.0, 250.0));
        assert_eq!(found.len(), 4);
        let json =
            r#"{"name":"x","measurements":[{"statistic":"COUNT","value":3},{"statistic":"TOTAL_TIME","value":0.5}]}"#;
        assert_eq!((measured(json, "TOTAL_TIME"), measured("x", "VALUE")), (Some(0.5), None));
    }
}
