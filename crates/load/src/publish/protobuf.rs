//! `ExportMetricsServiceRequest` of opentelemetry-proto 1 as protobuf: the few fields that are sent.
//!
//! Field numbers are those of `metrics.proto`, `common.proto` and `resource.proto`.

use weir_wire::protobuf::{bytes, fixed, message, number};

use super::export::{DELTA, Export, Metric, whole};
use crate::value::Value;

/// The whole request.
pub(super) fn write(export: &Export<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    // resource_metrics
    message(1, &mut out, |out| {
        // resource
        message(1, out, |out| attributes(1, export.resource, out));
        // scope_metrics
        message(2, out, |out| {
            // scope.name
            message(1, out, |out| bytes(1, export.scope.as_bytes(), out));
            for metric in &export.metrics {
                message(2, out, |out| one(metric, export, out));
            }
        });
    });
    out
}

fn one(metric: &Metric, export: &Export<'_>, out: &mut Vec<u8>) {
    bytes(1, metric.name.as_bytes(), out);
    let of = if metric.is_sum { 7 } else { 5 };
    message(of, out, |out| {
        message(1, out, |out| {
            fixed(2, export.start_ns, out);
            fixed(3, export.end_ns, out);
            fixed(4, metric.value.to_bits(), out);
            attributes(7, &export.attributes, out);
        });
        if metric.is_sum {
            number(2, DELTA, out);
            number(3, 1, out);
        }
    });
}

fn attributes(field: u64, attributes: &[(String, Value)], out: &mut Vec<u8>) {
    for (name, value) in attributes {
        message(field, out, |out| {
            bytes(1, name.as_bytes(), out);
            message(2, out, |out| match value {
                Value::Bool(value) => number(2, u64::from(*value), out),
                Value::Number(value) => match whole(*value) {
                    Some(whole) => number(3, whole as u64, out),
                    None => fixed(4, value.to_bits(), out),
                },
                value => bytes(1, value.to_text().as_bytes(), out),
            });
        });
    }
}
