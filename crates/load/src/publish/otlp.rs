//! Posts metrics to an OpenTelemetry collector: counters as sums of the period, all others as gauges.
//!
//! The messages are those of opentelemetry-proto 1 (`metrics/v1/metrics.proto`), as JSON or protobuf.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::export::{DELTA, Export, Metric, whole};
use super::options::OtlpOptions;
use super::post::{Post, post};
use super::protobuf;
use crate::client::Resolver;
use crate::record::{Period, WINDOW_MS};
use crate::value::Value;

/// Time limit of one export: OpenTelemetry's own default.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A collector.
pub(super) struct Otlp {
    options: OtlpOptions,
    resolver: Resolver,
}

impl Otlp {
    pub(super) fn new(options: OtlpOptions) -> Otlp {
        Otlp { options, resolver: Resolver::default() }
    }

    /// Sends a period.
    pub(super) fn export(&self, period: &Period) -> Result<(), String> {
        let export = self.of(period);
        let (content_type, body) = match self.options.is_protobuf {
            true => ("application/x-protobuf", protobuf::write(&export)),
            false => ("application/json", json(&export).to_string().into_bytes()),
        };
        post(Post {
            url: self.options.endpoint.clone(),
            content_type,
            headers: self.options.headers.clone(),
            body,
            ca: None,
            timeout: TIMEOUT,
            resolver: self.resolver.clone(),
        })
    }

    fn of(&self, period: &Period) -> Export<'_> {
        let filter = &self.options.filter;
        let mut metrics = Vec::new();
        for (name, count) in period.counters.iter().filter(|(name, _)| filter.lets(name)) {
            metrics.push(Metric { name: name.to_string(), value: *count as f64, is_sum: true });
        }
        for (name, rate) in period.rates.iter().filter(|(name, _)| filter.lets(name)) {
            metrics.push(Metric { name: name.to_string(), value: *rate, is_sum: false });
        }
        for (name, summary) in period.summaries.iter().filter(|(name, _)| filter.lets(name)) {
            let figures = summary.figures().into_iter();
            metrics.extend(figures.map(|(figure, value)| Metric {
                name: format!("{name}.{figure}"),
                value,
                is_sum: false,
            }));
        }
        let mut attributes = self.options.attributes.clone();
        for (name, ms) in [("startTime", period.stamps.first()), ("endTime", period.stamps.last())] {
            attributes.extend(ms.map(|ms| (name.to_owned(), Value::Number(ms as f64))));
        }
        Export {
            resource: &self.options.resource,
            scope: &self.options.meter_name,
            attributes,
            start_ns: period.start_ms.saturating_mul(1_000_000),
            end_ns: period.start_ms.saturating_add(WINDOW_MS).saturating_mul(1_000_000),
            metrics,
        }
    }
}

/// The JSON form: 64-bit numbers are texts, as in protobuf's JSON mapping.
fn json(export: &Export<'_>) -> Json {
    let attributes = json_attributes(&export.attributes);
    let metrics = export.metrics.iter().map(|metric| {
        let points = json!([{
            "attributes": attributes,
            "startTimeUnixNano": export.start_ns.to_string(),
            "timeUnixNano": export.end_ns.to_string(),
            "asDouble": metric.value,
        }]);
        match metric.is_sum {
            true => json!({
                "name": metric.name, "description": "", "unit": "",
                "sum": { "aggregationTemporality": DELTA, "isMonotonic": true, "dataPoints": points },
            }),
            false => json!({ "name": metric.name, "description": "", "unit": "", "gauge": { "dataPoints": points } }),
        }
    });
    let metrics: Vec<Json> = metrics.collect();
    json!({ "resourceMetrics": [{
        "resource": { "attributes": json_attributes(export.resource), "droppedAttributesCount": 0 },
        "scopeMetrics": [{ "scope": { "name": export.scope, "version": "" }, "metrics": metrics }],
    }] })
}

fn json_attributes(attributes: &[(String, Value)]) -> Json {
    let one = |(name, value): &(String, Value)| {
        let value = match value {
            Value::Bool(value) => json!({ "boolValue": value }),
            Value::Number(value) => match whole(*value) {
                Some(whole) => json!({ "intValue": whole.to_string() }),
                None => json!({ "doubleValue": value }),
            },
            value => json!({ "stringValue": value.to_text() }),
        };
        json!({ "key": name, "value": value })
    };
    attributes.iter().map(one).collect()
}
