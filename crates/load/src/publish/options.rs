//! Reads a reporter of `publish-metrics`: what it sends and where, or why it sends nothing.

use weir_words::{Said, say};

use crate::texts::script as texts;
use crate::url::Url;
use crate::value::{Map, Value};

/// Port of StatsD, DogStatsD and Telegraf's listener.
const STATSD_PORT: u16 = 8125;
/// Default address of OpenTelemetry's collector.
const OTLP_ENDPOINT: &str = "http://localhost:4318";

/// A reporter and its options.
#[derive(Clone, Debug)]
pub struct Reporter {
    /// The type in the script: `prometheus`.
    pub name: String,
    /// The kind of reporter, with its address.
    pub kind: ReporterKind,
}

/// The kinds that weir supports.
#[derive(Clone, Debug)]
pub enum ReporterKind {
    /// Text that is pushed to a Pushgateway.
    Prometheus(PrometheusOptions),
    /// UDP: StatsD, DogStatsD, Telegraf.
    StatsD(StatsDOptions),
    /// OTLP over HTTP.
    OpenTelemetry(OtlpOptions),
}

/// Why a reporter sends nothing, as a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReporterRefused {
    /// The run goes on without this reporter.
    Unsent(Said),
    /// The script is invalid.
    Wrong(Said),
}

/// `type: prometheus`.
#[derive(Clone, Debug)]
pub struct PrometheusOptions {
    /// `pushgateway`; the path is appended to it.
    pub gateway: Url,
    /// The prefix of `_counters`, `_rates` and `_summaries`.
    pub prefix: String,
    /// `tags`, split into names and values.
    pub labels: Vec<(String, String)>,
    /// `ca`: a file with certificate authorities.
    pub ca: Option<String>,
}

/// `type: statsd`, `influxdb-statsd` or `datadog`.
#[derive(Clone, Debug)]
pub struct StatsDOptions {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The prefix of every name, unchanged.
    pub prefix: String,
    /// Tags of every metric and event: `name:value`.
    pub tags: Vec<String>,
    /// True: put the tags where Telegraf expects them.
    pub is_telegraf: bool,
    /// `event`; `None` if it must not be sent.
    pub event: Option<EventOptions>,
    /// Which metrics to send.
    pub filter: Filter,
}

/// `event`: sent when the run begins and ends.
#[derive(Clone, Debug)]
pub struct EventOptions {
    pub title: Option<String>,
    pub text: Option<String>,
    pub aggregation_key: Option<String>,
    pub source_type_name: Option<String>,
    pub priority: String,
    pub alert_type: String,
    pub tags: Vec<String>,
}

/// `type: open-telemetry`.
#[derive(Clone, Debug)]
pub struct OtlpOptions {
    /// The URL for metrics.
    pub endpoint: Url,
    /// True: protobuf; false: JSON.
    pub is_protobuf: bool,
    /// Header fields of every request.
    pub headers: Vec<(String, String)>,
    /// The instrumentation scope.
    pub meter_name: String,
    /// Attributes of every data point.
    pub attributes: Vec<(String, Value)>,
    /// Attributes of the resource, with `service.name`.
    pub resource: Vec<(String, Value)>,
    /// Which metrics to send.
    pub filter: Filter,
}

/// Which metrics are sent.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    only: Vec<String>,
    excluded: Vec<String>,
    /// True: the listed names are prefixes; false: they are whole names.
    is_prefix: bool,
}

impl Filter {
    /// True if a metric with this name is sent.
    pub fn lets(&self, name: &str) -> bool {
        let is_in = |list: &[String]| match self.is_prefix {
            true => list.iter().any(|start| name.starts_with(start.as_str())),
            false => list.iter().any(|known| known == name),
        };
        // The StatsD plugin uses `excluded` only if `includeOnly` is not set.
        let excluded = (self.only.is_empty() || !self.is_prefix) && is_in(&self.excluded);
        !excluded && (self.only.is_empty() || is_in(&self.only))
    }
}

impl Reporter {
    /// Reads an entry of `publish-metrics`.
    pub fn read(value: &Value) -> Result<Reporter, ReporterRefused> {
        let empty = Map::default();
        let map = match value {
            Value::Map(map) => map,
            _ => &empty,
        };
        let name = text(map, "type").unwrap_or_default();
        let kind = match name.as_str() {
            "prometheus" => ReporterKind::Prometheus(prometheus(map)?),
            "datadog" if map.get("apiKey").is_some_and(Value::is_truthy) => return Err(unsent(&name, true)),
            "statsd" | "influxdb-statsd" | "datadog" => ReporterKind::StatsD(statsd(map, &name)?),
            "open-telemetry" => ReporterKind::OpenTelemetry(otlp(map)?),
            _ => return Err(unsent(&name, false)),
        };
        Ok(Reporter { name, kind })
    }
}

impl Reporter {
    /// The reporter and its address.
    pub fn said(&self) -> Said {
        let place = match &self.kind {
            ReporterKind::Prometheus(options) => options.gateway.origin().to_string(),
            ReporterKind::StatsD(options) => format!("{}:{}", options.host, options.port),
            ReporterKind::OpenTelemetry(options) => options.endpoint.origin().to_string(),
        };
        say!(texts::PLAN_REPORTER, &self.name, place)
    }
}

/// Vendors have interfaces of their own; most accept OpenTelemetry too.
fn unsent(name: &str, has_key: bool) -> ReporterRefused {
    let instead = match name {
        "datadog" => texts::NO_API_KEY,
        "newrelic" | "dynatrace" | "splunk" | "honeycomb" => texts::USE_OTLP,
        "cloudwatch" => texts::USE_STATSD,
        "mixpanel" => texts::KEEP_REPORT,
        _ => texts::USE_ONE_OF,
    };
    let why = if has_key { say!(texts::WITH_API_KEY) } else { Said::default() };
    ReporterRefused::Unsent(say!(texts::UNSENT, name, why, instead))
}

fn prometheus(map: &Map) -> Result<PrometheusOptions, ReporterRefused> {
    let gateway = text(map, "pushgateway").ok_or_else(|| ReporterRefused::Wrong(say!(texts::NO_GATEWAY)))?;
    let gateway = Url::parse(&gateway).map_err(|error| ReporterRefused::Wrong(say!(texts::BAD_GATEWAY, error)))?;
    let labels = texts(map, "tags");
    Ok(PrometheusOptions {
        gateway,
        prefix: text(map, "prefix").unwrap_or_else(|| "artillery".to_owned()),
        labels: labels.iter().map(|tag| pair(tag)).collect(),
        ca: text(map, "ca"),
    })
}

/// `name:value`.
fn pair(tag: &str) -> (String, String) {
    let (name, value) = tag.split_once(':').unwrap_or((tag, ""));
    (name.to_owned(), value.to_owned())
}

fn statsd(map: &Map, name: &str) -> Result<StatsDOptions, ReporterRefused> {
    let nothing = Map::default();
    let event = match map.get("event") {
        Some(Value::Map(event)) => event,
        _ => &nothing,
    };
    // The value may be the text `false`, from the environment.
    let is_silent = event.get("send").is_some_and(|send| send.to_text() == "false");
    let is_telegraf = name == "influxdb-statsd";
    // Telegraf does not support events.
    let event = (!is_silent && !is_telegraf).then(|| EventOptions {
        title: text(event, "title"),
        text: text(event, "text"),
        aggregation_key: text(event, "aggregationKey"),
        source_type_name: text(event, "sourceTypeName"),
        priority: text(event, "priority").unwrap_or_else(|| "low".to_owned()),
        alert_type: text(event, "alertType").unwrap_or_else(|| "info".to_owned()),
        tags: texts(event, "tags"),
    });
    let port = map.get("port").map_or(f64::from(STATSD_PORT), Value::to_number);
    if !(1.0..=65535.0).contains(&port) {
        return Err(ReporterRefused::Wrong(say!(texts::BAD_PORT, name)));
    }
    Ok(StatsDOptions {
        host: text(map, "host").unwrap_or_else(|| "127.0.0.1".to_owned()),
        port: port as u16,
        prefix: map.get("prefix").map_or_else(|| "artillery.".to_owned(), |prefix| prefix.to_text().into_owned()),
        tags: texts(map, "tags"),
        is_telegraf,
        event,
        filter: Filter { only: texts(map, "includeOnly"), excluded: texts(map, "excluded"), is_prefix: true },
    })
}

fn otlp(map: &Map) -> Result<OtlpOptions, ReporterRefused> {
    let Some(Value::Map(metrics)) = map.get("metrics") else {
        return Err(ReporterRefused::Unsent(say!(texts::NO_METRICS)));
    };
    let wrong = |why: Said| ReporterRefused::Wrong(say!(texts::BAD_OTLP, why));
    let is_protobuf = match text(metrics, "exporter").as_deref() {
        None | Some("otlp-http") => false,
        Some("otlp-proto") => true,
        Some("otlp-grpc") => {
            return Err(ReporterRefused::Unsent(say!(texts::NO_GRPC)));
        }
        Some(other) => {
            let known = "otlp-proto, otlp-http, otlp-grpc";
            return Err(wrong(say!(texts::UNKNOWN_EXPORTER, other, known)));
        }
    };
    let endpoint = Url::parse(&text(metrics, "endpoint").unwrap_or_else(endpoint));
    let endpoint = endpoint.map_err(wrong)?;
    let pairs = |name: &str| match metrics.get(name) {
        Some(Value::Map(map)) => map.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
        _ => Vec::new(),
    };
    let mut headers: Vec<_> =
        pairs("headers").into_iter().map(|(name, value)| (name, value.to_text().into_owned())).collect();
    headers.extend(environment_headers());
    let service = text(map, "serviceName").unwrap_or_else(|| "Artillery-test".to_owned());
    let mut resource = vec![("service.name".to_owned(), Value::from(service.as_str()))];
    if let Some(Value::Map(attributes)) = map.get("resourceAttributes") {
        resource.retain(|(name, _)| !attributes.contains_key(name.as_str()));
        resource.extend(attributes.iter().map(|(name, value)| (name.to_string(), value.clone())));
    }
    Ok(OtlpOptions {
        endpoint,
        is_protobuf,
        headers,
        meter_name: text(metrics, "meterName").unwrap_or_else(|| "Artillery.io_metrics".to_owned()),
        attributes: pairs("attributes"),
        resource,
        filter: Filter { only: texts(metrics, "includeOnly"), excluded: texts(metrics, "exclude"), is_prefix: false },
    })
}

/// The endpoint in OpenTelemetry's own variables (its specification, "OTLP Exporter Configuration").
fn endpoint() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    variable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT").unwrap_or_else(|| {
        let base = variable("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or_else(|| OTLP_ENDPOINT.to_owned());
        format!("{}/v1/metrics", base.trim_end_matches('/'))
    })
}

/// `OTEL_EXPORTER_OTLP_HEADERS`: `name=value,name=value`.
fn environment_headers() -> Vec<(String, String)> {
    let text = std::env::var("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

fn text(map: &Map, name: &str) -> Option<String> {
    map.get(name).filter(|value| value.is_truthy()).map(|value| value.to_text().into_owned())
}

fn texts(map: &Map, name: &str) -> Vec<String> {
    match map.get(name) {
        Some(Value::List(list)) => list.iter().map(|value| value.to_text().into_owned()).collect(),
        Some(value) if value.is_truthy() => vec![value.to_text().into_owned()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn read(json: &str) -> Result<Reporter, ReporterRefused> {
        Reporter::read(&crate::value::parse_json(json.as_bytes()).unwrap())
    }

    #[test]
    fn what_is_not_sent_says_what_to_do() {
        for (json, wanted) in [
            (r#"{"type": "datadog", "apiKey": "k"}"#, "remove `apiKey`"),
            (r#"{"type": "newrelic"}"#, "type: open-telemetry"),
            (r#"{"type": "cloudwatch"}"#, "type: statsd"),
            (r#"{"type": "graphite"}"#, "use one of prometheus"),
            (r#"{"type": "open-telemetry", "traces": {}}"#, "has no `metrics`"),
            (r#"{"type": "open-telemetry", "metrics": {"exporter": "otlp-grpc"}}"#, "otlp-proto"),
        ] {
            match read(json) {
                Err(ReporterRefused::Unsent(what)) => assert!(what.contains(wanted), "{json}: {what}"),
                other => panic!("{json}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for (json, wanted) in [
            (r#"{"type": "prometheus"}"#, "pushgateway must be provided"),
            (r#"{"type": "prometheus", "pushgateway": "a:9091"}"#, "must begin with http://"),
            (r#"{"type": "statsd", "port": 70000}"#, "between 1 and 65535"),
            (r#"{"type": "open-telemetry", "metrics": {"exporter": "udp"}}"#, "udp is not supported"),
        ] {
            match read(json) {
                Err(ReporterRefused::Wrong(what)) => assert!(what.contains(wanted), "{json}: {what}"),
                other => panic!("{json}: {other:?}"),
            }
        }
    }

    #[test]
    fn filters_of_statsd_are_beginnings_and_those_of_opentelemetry_names() {
        let filter = |only: &[&str], excluded: &[&str], is_prefix| {
            let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            Filter { only: list(only), excluded: list(excluded), is_prefix }
        };
        for (filter, lets) in [
            (filter(&[], &[], true), true),
            (filter(&["http."], &[], true), true),
            (filter(&["http."], &["http.codes"], true), true),
            (filter(&[], &["http.codes"], true), false),
            (filter(&["http."], &[], false), false),
            (filter(&["http.codes.200"], &[], false), true),
            (filter(&["http.codes.200"], &["http.codes.200"], false), false),
        ] {
            assert_eq!(filter.lets("http.codes.200"), lets, "{filter:?}");
        }
    }
}
