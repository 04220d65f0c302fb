//! Traces in OpenTelemetry's sense: the trace context of a request, and spans on their way to a collector.
//!
//! ```text
//!  exchange ─ log phase ─► a span, as protobuf ─ try_send ─► bounded queue ─► exporter's thread ─► collector
//! ```
//!
//! `family::otel` decides the content and the time of a span. Invariant: a worker never waits: a span that finds the
//! queue full is dropped and counted.

mod carry;
pub mod context;
pub mod endpoint;
mod exporter;

use weir_net::log::{self, Level, Os};
use weir_net::process::Identity;

use crate::exchange::conf::Conf;

pub use exporter::{Counts, Exporter, Settings};

/// Starts the exporter of a configuration that has not taken over an existing one.
pub fn open(conf: &Conf, workers: usize, identity: Option<&Identity>) {
    if let Err(error) = conf.declared.otel.open(workers, identity) {
        log::global(Level::Alert, format_args!("thread could not be started {}: weir sends no traces", Os(&error)));
    }
}

/// Sends the waiting spans, within a limited time.
pub fn close(conf: &Conf) {
    if let Some(exporter) = conf.declared.otel.exporter() {
        exporter.close();
    }
}
