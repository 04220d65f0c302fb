//! `ExportMetricsServiceRequest` of opentelemetry-proto 1 as protobuf: the few fields that are sent.
//!
//! Field numbers are those of `metrics.proto`, `common.proto` and `resource.proto`.

use super::otlp::{DELTA, Export, Metric, whole};
use crate::value::Value;

/// Varints, also of `bool` and enumerations.
const VARINT: u64 = 0;
/// `fixed64` and `double`.
const FIXED64: u64 = 1;
/// Texts and messages.
const LENGTH: u64 = 2;

/// The whole request.
pub(super) fn write(export: &Export<'_>) -> Vec<u8> {
    // resource_metrics
    message(1, |out| {
        // resource
        out.extend(message(1, |out| attributes(1, export.resource, out)));
        // scope_metrics
        out.extend(message(2, |out| {
            // scope.name
            out.extend(message(1, |out| bytes(1, export.scope.as_bytes(), out)));
            for metric in &export.metrics {
                out.extend(message(2, |out| one(metric, export, out)));
            }
        }));
    })
}

fn one(metric: &Metric, export: &Export<'_>, out: &mut Vec<u8>) {
    bytes(1, metric.name.as_bytes(), out);
    let point = message(1, |out| {
        fixed(2, export.start_ns, out);
        fixed(3, export.end_ns, out);
        fixed(4, metric.value.to_bits(), out);
        attributes(7, &export.attributes, out);
    });
    let of = if metric.is_sum { 7 } else { 5 };
    out.extend(message(of, |out| {
        out.extend(point);
        if metric.is_sum {
            number(2, DELTA, out);
            number(3, 1, out);
        }
    }));
}

fn attributes(field: u64, attributes: &[(String, Value)], out: &mut Vec<u8>) {
    for (name, value) in attributes {
        out.extend(message(field, |out| {
            bytes(1, name.as_bytes(), out);
            out.extend(message(2, |out| match value {
                Value::Bool(value) => number(2, u64::from(*value), out),
                Value::Number(value) => match whole(*value) {
                    Some(whole) => number(3, whole as u64, out),
                    None => fixed(4, value.to_bits(), out),
                },
                value => bytes(1, value.to_text().as_bytes(), out),
            }));
        }));
    }
}

fn message(field: u64, fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut inner = Vec::new();
    fill(&mut inner);
    let mut out = Vec::with_capacity(inner.len() + 12);
    bytes(field, &inner, &mut out);
    out
}

fn bytes(field: u64, bytes: &[u8], out: &mut Vec<u8>) {
    varint(field << 3 | LENGTH, out);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn number(field: u64, value: u64, out: &mut Vec<u8>) {
    varint(field << 3 | VARINT, out);
    varint(value, out);
}

fn fixed(field: u64, value: u64, out: &mut Vec<u8>) {
    varint(field << 3 | FIXED64, out);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
