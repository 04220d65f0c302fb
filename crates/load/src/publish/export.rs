//! The data of one period for OpenTelemetry.

use crate::value::Value;

/// The data, before it becomes JSON or protobuf.
pub(super) struct Export<'e> {
    pub(super) resource: &'e [(String, Value)],
    pub(super) scope: &'e str,
    /// Attributes of every data point.
    pub(super) attributes: Vec<(String, Value)>,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) metrics: Vec<Metric>,
}

/// A metric with its one data point.
pub(super) struct Metric {
    pub(super) name: String,
    pub(super) value: f64,
    /// True: a monotonic sum of this period alone; false: a gauge.
    pub(super) is_sum: bool,
}

/// `AGGREGATION_TEMPORALITY_DELTA`.
pub(super) const DELTA: u64 = 1;

/// The number as an integer, if it has no fraction and fits.
pub(super) fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64)
}
