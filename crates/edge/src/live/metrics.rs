//! `/metrics`: the snapshot in the formats of Prometheus and OpenMetrics.
//!
//! [`METRICS`] is the list of all metrics; `docs/reference/metrics.md` is printed from it.

use std::fmt::{self, Write};

use weir_meter::live::{Limit, Snapshot, Times};

use super::question::Reply;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It grows, until it is reset.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Quantiles, with sum and count.
    Summary,
}

/// A metric.
pub struct Metric {
    /// Its name, without `_total`.
    pub name: &'static str,
    /// Its type.
    pub kind: MetricKind,
    /// Its labels.
    pub labels: &'static str,
    /// One sentence.
    pub help: &'static str,
    write: fn(&mut Family<'_>, &Snapshot),
}

/// The media types of the two formats.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Lines of one metric.
struct Family<'o> {
    out: &'o mut String,
    metric: &'static Metric,
}

impl Family<'_> {
    /// A line; a label's value may hold anything.
    fn line(&mut self, labels: &[(&str, &dyn fmt::Display)], value: f64) {
        let suffix = if self.metric.kind == MetricKind::Counter { "_total" } else { "" };
        self.sample(suffix, labels, value);
    }

    fn times(&mut self, labels: &[(&str, &dyn fmt::Display)], times: &Times) {
        for (quantile, us) in [("0.5", times.p50_us), ("0.95", times.p95_us), ("0.99", times.p99_us)] {
            let all: Vec<_> = labels.iter().copied().chain([("quantile", &quantile as &dyn fmt::Display)]).collect();
            self.sample("", &all, us as f64 / 1e6);
        }
        self.sample("_sum", labels, times.sum_us as f64 / 1e6);
        self.sample("_count", labels, times.count as f64);
    }

    fn sample(&mut self, suffix: &str, labels: &[(&str, &dyn fmt::Display)], value: f64) {
        // Writing to a String cannot fail.
        let _ = write!(self.out, "{}{suffix}", self.metric.name);
        for (index, (name, value)) in labels.iter().enumerate() {
            self.out.push_str(if index == 0 { "{" } else { "," });
            let value = value.to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.out, "{name}=\"{value}\"");
        }
        self.out.push_str(if labels.is_empty() { " " } else { "} " });
        let _ = writeln!(self.out, "{value}");
    }
}

/// The page.
pub fn reply(snapshot: &Snapshot, is_openmetrics: bool) -> Reply {
    let mut out = String::with_capacity(16 << 10);
    for metric in METRICS {
        let Metric { name, kind, help, .. } = metric;
        let word = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Summary => "summary",
        };
        // Prometheus' older text format names a counter with the suffix of its lines, OpenMetrics without it.
        let suffix = if *kind == MetricKind::Counter && !is_openmetrics { "_total" } else { "" };
        let _ = writeln!(out, "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {word}");
        (metric.write)(&mut Family { out: &mut out, metric }, snapshot);
    }
    if is_openmetrics {
        out.push_str("# EOF\n");
    }
    let content_type = if is_openmetrics { OPENMETRICS } else { PROMETHEUS };
    Reply { status: 200, content_type, body: out.into_bytes() }
}

/// The table of all metrics, as `docs/reference/metrics.md` shows it.
pub fn reference() -> String {
    let mut out = String::from(
        "# Metrics\n\nPrinted by `weir edge --reference-metrics`; `cargo test` keeps it true. Counters end in \
         `_total`; times are in seconds. [The guide](../guide/live.md) defines each metric.\n\n\
         | metric | kind | labels | meaning |\n|---|---|---|---|\n",
    );
    for Metric { name, kind, labels, help, .. } in METRICS {
        let (suffix, kind) = match kind {
            MetricKind::Counter => ("_total", "counter"),
            MetricKind::Gauge => ("", "gauge"),
            MetricKind::Summary => ("", "summary"),
        };
        let _ = writeln!(out, "| `{name}{suffix}` | {kind} | {labels} | {help} |");
    }
    out
}

macro_rules! metrics {
    ($( $name:literal $kind:ident $labels:literal $help:literal $write:expr; )*) => {
        /// All metrics, in the order in which they are shown.
        pub static METRICS: &[Metric] =
            &[ $( Metric { name: $name, kind: MetricKind::$kind, labels: $labels, help: $help, write: $write }, )* ];
    };
}

fn limit(family: &mut Family<'_>, snapshot: &Snapshot, of: fn(&Limit) -> f64) {
    for limit in &snapshot.weir.limits {
        family.line(&[("kind", &limit.kind), ("of", &limit.of)], of(limit));
    }
}

metrics! {
    "weir_up" Gauge "`version`" "Always 1; the label is the running version."
        |f, s| f.line(&[("version", &s.nginx.build)], 1.0);
    "weir_config_generation" Gauge "" "The number of times that weir loaded the configuration."
        |f, s| f.line(&[], s.nginx.generation as f64);
    "weir_config_last_load_ok" Gauge "" "1 if the last reload came into force or there was none, 0 if weir refused it."
        |f, s| f.line(&[], if s.weir.is_last_load_refused { 0.0 } else { 1.0 });
    "weir_config_loads_refused" Counter "" "Reloads that weir refused; the configuration before stayed in force."
        |f, s| f.line(&[], s.weir.loads_refused as f64);
    "weir_uptime_seconds" Gauge "" "Time since the process started."
        |f, s| f.line(&[], s.weir.uptime_ms as f64 / 1e3);
    "weir_connections_accepted" Counter "" "Client connections accepted."
        |f, s| f.line(&[], s.connections.accepted as f64);
    "weir_connections_dropped" Counter "" "Client connections closed at once because the table was full; raise worker_connections."
        |f, s| f.line(&[], s.connections.dropped as f64);
    "weir_connections" Gauge "`state`" "Client connections open, active or idle."
        |f, s| {
            f.line(&[("state", &"active")], s.connections.active as f64);
            f.line(&[("state", &"idle")], s.connections.idle as f64);
        };
    "weir_requests" Counter "" "Requests begun."
        |f, s| f.line(&[], s.http.requests.total as f64);
    "weir_requests_current" Gauge "" "Requests under way."
        |f, s| f.line(&[], s.http.requests.current as f64);
    "weir_protocol_requests" Counter "`protocol`" "Requests begun, by protocol: HTTP/1 (all versions before HTTP/2), HTTP/2, HTTP/3."
        |f, s| for of in &s.weir.protocols { f.line(&[("protocol", &of.protocol)], of.requests as f64); };
    "weir_protocol_received_bytes" Counter "`protocol`" "Bytes of requests that have ended, by protocol."
        |f, s| for of in &s.weir.protocols { f.line(&[("protocol", &of.protocol)], of.received as f64); };
    "weir_protocol_sent_bytes" Counter "`protocol`" "Bytes of answers that have ended, by protocol."
        |f, s| for of in &s.weir.protocols { f.line(&[("protocol", &of.protocol)], of.sent as f64); };
    "weir_quic_connections" Gauge "" "Connections of QUIC open, those in the handshake included."
        |f, s| f.line(&[], s.weir.quic.active as f64);
    "weir_quic_connections_accepted" Counter "" "Connections of QUIC accepted."
        |f, s| f.line(&[], s.weir.quic.accepted as f64);
    "weir_quic_handshakes_failed" Counter "`reason`" "Handshakes of QUIC that failed, by the alert of TLS that weir or the client sent; or timeout, closed (by the client), transport, shutdown."
        |f, s| for (reason, count) in &s.weir.quic.handshakes_failed { f.line(&[("reason", reason)], *count as f64); };
    "weir_quic_events" Counter "`event`" "refused: clients for whom the connection table had no place; version_negotiation: clients of another version of QUIC; retry: Retry packets sent; early_data: connections with accepted early data; stateless_reset: stateless resets sent; migration: addresses that clients have moved to."
        |f, s| {
            let of = &s.weir.quic;
            for (event, count) in [
                ("refused", of.refused), ("version_negotiation", of.version_negotiations), ("retry", of.retries),
                ("early_data", of.early_data), ("stateless_reset", of.stateless_resets), ("migration", of.migrations),
            ] {
                f.line(&[("event", &event)], count as f64);
            }
        };
    "weir_quic_lost_packets" Counter "" "Packets of QUIC that weir sent and declared lost."
        |f, s| f.line(&[], s.weir.quic.lost_packets as f64);
    "weir_quic_datagrams" Counter "`direction`" "Datagrams of the sockets of QUIC: received, sent; unsent: messages of one datagram or several that the kernel refused."
        |f, s| {
            let of = &s.weir.quic.datagrams;
            for (direction, count) in [("received", of.received), ("sent", of.sent), ("unsent", of.unsent)] {
                f.line(&[("direction", &direction)], count as f64);
            }
        };
    "weir_quic_datagrams_dropped" Counter "`reason`" "Datagrams that reached no connection: garbage, unknown_id, full (the worker or the process of the connection had no room, or has ended)."
        |f, s| for (reason, count) in &s.weir.quic.datagrams.dropped { f.line(&[("reason", reason)], *count as f64); };
    "weir_quic_datagrams_forwarded" Counter "`to`" "Datagrams that one worker passed on: to another worker, to an older process."
        |f, s| for (to, count) in &s.weir.quic.datagrams.forwarded { f.line(&[("to", to)], *count as f64); };
    "weir_step_seconds" Summary "`step`" "Time that requests spent in each step, quantiles over the last 10 to 15 s."
        |f, s| for step in &s.weir.path {
            let times = Times { count: step.total.count, sum_us: step.total.sum_us, ..step.recent.clone() };
            f.times(&[("step", &step.step)], &times);
        };
    "weir_server_requests" Counter "`zone`" "Requests begun, by server zone."
        |f, s| for (name, zone) in &s.http.server_zones { f.line(&[("zone", name)], zone.requests as f64); };
    "weir_server_processing" Gauge "`zone`" "Requests under way, by server zone."
        |f, s| for (name, zone) in &s.http.server_zones { f.line(&[("zone", name)], zone.processing as f64); };
    "weir_server_responses" Counter "`zone`, `code`" "Responses, by server zone and exact status."
        |f, s| for (name, zone) in &s.http.server_zones {
            for (code, count) in &zone.responses.codes { f.line(&[("zone", name), ("code", code)], *count as f64); }
        };
    "weir_server_discarded" Counter "`zone`" "Requests that ended without a response."
        |f, s| for (name, zone) in &s.http.server_zones { f.line(&[("zone", name)], zone.discarded as f64); };
    "weir_server_failed" Counter "`zone`" "Requests that failed: answered 5xx, cut short, or not answered because the origin failed. Refusals by `limit_req` and `limit_conn` and clients that disconnect do not count."
        |f, s| for (name, zone) in &s.weir.server_zones { f.line(&[("zone", name)], zone.failed as f64); };
    "weir_server_refused" Counter "`zone`" "Requests that `limit_req` or `limit_conn` refused."
        |f, s| for (name, zone) in &s.weir.server_zones { f.line(&[("zone", name)], zone.refused as f64); };
    "weir_server_received_bytes" Counter "`zone`" "Bytes from clients."
        |f, s| for (name, zone) in &s.http.server_zones { f.line(&[("zone", name)], zone.received as f64); };
    "weir_server_sent_bytes" Counter "`zone`" "Bytes to clients."
        |f, s| for (name, zone) in &s.http.server_zones { f.line(&[("zone", name)], zone.sent as f64); };
    "weir_server_request_seconds" Summary "`zone`" "Time from the first byte of a request to the last byte of its response, quantiles over the last 10 to 15 s."
        |f, s| for (name, zone) in &s.weir.server_zones {
            f.times(&[("zone", name)], &zone.times.summary());
        };
    "weir_tls_handshakes" Counter "`zone`, `result`" "TLS handshakes with clients: done, resumed (of those done), failed."
        |f, s| for (name, zone) in &s.http.server_zones {
            let Some(ssl) = &zone.ssl else { continue };
            for (result, count) in
                [("done", ssl.handshakes), ("resumed", ssl.session_reuses), ("failed", ssl.handshakes_failed)]
            {
                f.line(&[("zone", name), ("result", &result)], count as f64);
            }
        };
    "weir_location_requests" Counter "`zone`" "Requests that ended in a location, by location zone."
        |f, s| for (name, zone) in &s.http.location_zones { f.line(&[("zone", name)], zone.requests as f64); };
    "weir_location_responses" Counter "`zone`, `code`" "Responses, by location zone and exact status."
        |f, s| for (name, zone) in &s.http.location_zones {
            for (code, count) in &zone.responses.codes { f.line(&[("zone", name), ("code", code)], *count as f64); }
        };
    "weir_location_request_seconds" Summary "`zone`" "Like weir_server_request_seconds, but by location zone."
        |f, s| for (name, zone) in &s.weir.location_zones {
            f.times(&[("zone", name)], &zone.times.summary());
        };
    "weir_upstream_requests" Counter "`upstream`, `peer`" "Tries at a peer, retries included."
        |f, s| for (name, group) in &s.http.upstreams {
            for peer in &group.peers { f.line(&[("upstream", name), ("peer", &peer.server)], peer.requests as f64); }
        };
    "weir_upstream_active" Gauge "`upstream`, `peer`" "Requests a peer is serving."
        |f, s| for (name, group) in &s.http.upstreams {
            for peer in &group.peers { f.line(&[("upstream", name), ("peer", &peer.server)], peer.active as f64); }
        };
    "weir_upstream_up" Gauge "`upstream`, `peer`" "1 if weir may send requests to the peer; 0 if the peer is down, or excluded by failures or health checks."
        |f, s| for (name, group) in &s.http.upstreams {
            for peer in &group.peers {
                let is_up = peer.state == weir_meter::live::PeerState::Up;
                f.line(&[("upstream", name), ("peer", &peer.server)], f64::from(u8::from(is_up)));
            }
        };
    "weir_upstream_health_checks" Counter "`upstream`, `peer`, `result`" "Health checks of a peer: passed, failed."
        |f, s| for (name, group) in &s.http.upstreams {
            for peer in group.peers.iter().filter(|peer| peer.health_checks.checks > 0) {
                let found = &peer.health_checks;
                for (result, count) in [("passed", found.checks - found.fails), ("failed", found.fails)] {
                    f.line(&[("upstream", name), ("peer", &peer.server), ("result", &result)], count as f64);
                }
            }
        };
    "weir_upstream_responses" Counter "`upstream`, `peer`, `code`" "A peer's responses by exact status."
        |f, s| for (name, group) in &s.http.upstreams {
            for peer in &group.peers {
                for (code, count) in &peer.responses.codes {
                    f.line(&[("upstream", name), ("peer", &peer.server), ("code", code)], *count as f64);
                }
            }
        };
    "weir_upstream_fails" Counter "`upstream`, `peer`, `reason`" "Failed tries by reason."
        |f, s| for (name, peers) in &s.weir.upstreams {
            for peer in peers {
                for (reason, count) in &peer.fails {
                    f.line(&[("upstream", name), ("peer", &peer.server), ("reason", reason)], *count as f64);
                }
            }
        };
    "weir_upstream_connections" Counter "`upstream`, `peer`, `how`" "Tries by connection: opened for the try, or reused."
        |f, s| for (name, peers) in &s.weir.upstreams {
            for peer in peers {
                f.line(&[("upstream", name), ("peer", &peer.server), ("how", &"opened")], peer.opened as f64);
                f.line(&[("upstream", name), ("peer", &peer.server), ("how", &"reused")], peer.reused as f64);
            }
        };
    "weir_upstream_idle" Gauge "`upstream`, `peer`" "Idle connections that weir keeps to a peer."
        |f, s| for (name, peers) in &s.weir.upstreams {
            for peer in peers { f.line(&[("upstream", name), ("peer", &peer.server)], peer.idle as f64); }
        };
    "weir_stream_sessions" Counter "`zone`, `code`" "Sessions of `stream` that ended, by the class of their status: 2xx, 4xx, 5xx."
        |f, s| for (name, zone) in &s.stream.server_zones {
            let ended = &zone.sessions;
            for (code, count) in [("2xx", ended.c2xx), ("4xx", ended.c4xx), ("5xx", ended.c5xx)] {
                f.line(&[("zone", name), ("code", &code)], count as f64);
            }
        };
    "weir_stream_processing" Gauge "`zone`" "Current sessions of `stream`."
        |f, s| for (name, zone) in &s.stream.server_zones { f.line(&[("zone", name)], zone.processing as f64); };
    "weir_stream_received_bytes" Counter "`zone`" "Bytes from clients of `stream`."
        |f, s| for (name, zone) in &s.stream.server_zones { f.line(&[("zone", name)], zone.received as f64); };
    "weir_stream_sent_bytes" Counter "`zone`" "Bytes to clients of `stream`."
        |f, s| for (name, zone) in &s.stream.server_zones { f.line(&[("zone", name)], zone.sent as f64); };
    "weir_stream_upstream_sessions" Counter "`upstream`, `peer`" "Sessions of `stream` that were passed to a peer."
        |f, s| for (name, group) in &s.stream.upstreams {
            for peer in &group.peers { f.line(&[("upstream", name), ("peer", &peer.server)], peer.connections as f64); }
        };
    "weir_stream_upstream_fails" Counter "`upstream`, `peer`" "Failed attempts of `stream` at a peer."
        |f, s| for (name, group) in &s.stream.upstreams {
            for peer in &group.peers { f.line(&[("upstream", name), ("peer", &peer.server)], peer.fails as f64); }
        };
    "weir_upstream_retries" Counter "`upstream`, `peer`" "Tries at a peer after another had failed."
        |f, s| for (name, peers) in &s.weir.upstreams {
            for peer in peers { f.line(&[("upstream", name), ("peer", &peer.server)], peer.retries as f64); }
        };
    "weir_upstream_header_seconds" Summary "`upstream`, `peer`" "Time to the head of a peer's response, quantiles over the last 10 to 15 s."
        |f, s| for (name, peers) in &s.weir.upstreams {
            for peer in peers {
                let (total, recent) = (&peer.header.total, peer.header.recent.clone());
                let times = Times { count: total.count, sum_us: total.sum_us, ..recent };
                f.times(&[("upstream", name), ("peer", &peer.server)], &times);
            }
        };
    "weir_upstream_queue" Gauge "`upstream`" "Requests that wait for a free peer; only for groups with `queue`."
        |f, s| for (name, group) in &s.http.upstreams {
            if let Some(queue) = &group.queue { f.line(&[("upstream", name)], queue.size as f64); }
        };
    "weir_upstream_queue_requests" Counter "`upstream`, `outcome`" "Requests that found no free peer: waited (all that entered the queue), timeout (of these), overflow (the queue was full)."
        |f, s| for (name, queue) in &s.weir.queues {
            let overflows = s.http.upstreams.get(name).and_then(|group| group.queue.as_ref()).map_or(0, |queue| queue.overflows);
            for (outcome, count) in [("waited", queue.waited), ("timeout", queue.timed_out), ("overflow", overflows)] {
                f.line(&[("upstream", name), ("outcome", &outcome)], count as f64);
            }
        };
    "weir_record_exchanges" Counter "`file`" "Exchanges of recorded clients, also those that the recording lacks."
        |f, s| for of in &s.weir.recordings { f.line(&[("file", &of.file)], of.totals.exchanges as f64); };
    "weir_record_lost" Counter "`file`, `reason`" "Exchanges and messages that the recording lacks: queue (to the thread that writes, full), size (the file has its largest size), writing (failed), large (more than a block may hold)."
        |f, s| for of in &s.weir.recordings {
            for (reason, count) in of.totals.lost.by_reason() { f.line(&[("file", &of.file), ("reason", &reason)], count as f64); }
        };
    "weir_record_bytes" Gauge "`file`" "The size of the file of a recording."
        |f, s| for of in &s.weir.recordings { f.line(&[("file", &of.file)], of.bytes as f64); };
    "weir_canary_running" Gauge "" "1 while a share of the clients has a second configuration, else 0. There is none of these before the first canary of the process."
        |f, s| if let Some(of) = &s.weir.canary {
            f.line(&[], f64::from(u8::from(of.phase.is_on())));
        };
    "weir_canary_share" Gauge "" "The share of the clients that have the second configuration, from 0 to 1."
        |f, s| if let Some(of) = &s.weir.canary { f.line(&[], of.share); };
    "weir_canary_clients" Gauge "`lane`" "Clients that were judged: old, new."
        |f, s| if let Some(of) = &s.weir.canary {
            for (lane, own) in [("old", of.old), ("new", of.new)] { f.line(&[("lane", &lane)], own.clients as f64); }
        };
    "weir_canary_evidence" Gauge "" "The evidence that the second configuration harms clients: 1 is none; at 40 the canary is rolled back."
        |f, s| if let Some(of) = &s.weir.canary { f.line(&[], of.evidence); };
    "weir_cache_requests" Counter "`cache`, `status`" "Requests by cache status; error counts requests that ended before they had a status. The sum is all requests."
        |f, s| for (name, cache) in &s.weir.caches {
            for (status, count) in [
                ("hit", cache.hit), ("stale", cache.stale), ("updating", cache.updating),
                ("revalidated", cache.revalidated), ("miss", cache.miss), ("expired", cache.expired),
                ("bypass", cache.bypass), ("error", cache.error),
            ] {
                f.line(&[("cache", name), ("status", &status)], count as f64);
            }
        };
    "weir_cache_fetches" Counter "`cache`" "Answers fetched from the origin, background refreshes included."
        |f, s| for (name, cache) in &s.weir.caches { f.line(&[("cache", name)], cache.fetches as f64); };
    "weir_cache_reasons" Counter "`cache`, `reason`" "Decisions of the cache by reason, with the words of $weir_cache_reason."
        |f, s| for (name, cache) in &s.weir.caches {
            for (reason, count) in &cache.reasons { f.line(&[("cache", name), ("reason", reason)], *count as f64); }
        };
    "weir_cache_bytes" Gauge "`cache`, `where`" "Bytes stored on disk and in memory."
        |f, s| for (name, cache) in &s.weir.caches {
            let size = s.http.caches.get(name).map_or(0, |cache| cache.size);
            f.line(&[("cache", name), ("where", &"kept")], size as f64);
            f.line(&[("cache", name), ("where", &"memory")], cache.memory as f64);
        };
    "weir_cache_objects" Gauge "`cache`" "Objects stored."
        |f, s| for (name, cache) in &s.weir.caches { f.line(&[("cache", name)], cache.objects as f64); };
    "weir_limit_req" Counter "`zone`, `verdict`" "Decisions of limit_req."
        |f, s| for (name, zone) in &s.http.limit_reqs {
            for (verdict, count) in [
                ("passed", zone.passed), ("delayed", zone.delayed), ("rejected", zone.rejected),
                ("delayed_dry_run", zone.delayed_dry_run), ("rejected_dry_run", zone.rejected_dry_run),
            ] {
                f.line(&[("zone", name), ("verdict", &verdict)], count as f64);
            }
        };
    "weir_limit_conn" Counter "`zone`, `verdict`" "Decisions of limit_conn."
        |f, s| for (name, zone) in &s.http.limit_conns {
            for (verdict, count) in
                [("passed", zone.passed), ("rejected", zone.rejected), ("rejected_dry_run", zone.rejected_dry_run)]
            {
                f.line(&[("zone", name), ("verdict", &verdict)], count as f64);
            }
        };
    "weir_certificate_expiry_seconds" Gauge "`source`, `host`" "Seconds until a certificate for clients expires; negative afterwards. The host is its first one."
        |f, s| for certificate in &s.weir.certificates {
            let host = certificate.hosts.first().map_or("", String::as_str);
            if let Some(left) = certificate.seconds_left(s.nginx.timestamp.0) {
                f.line(&[("source", &certificate.source), ("host", &host)], left);
            }
        };
    "weir_certificate_failures" Gauge "`source`, `host`" "Failures in a row to get or renew a certificate that weir gets itself."
        |f, s| for certificate in s.weir.certificates.iter().filter(|certificate| certificate.is_renewed) {
            let host = certificate.hosts.first().map_or("", String::as_str);
            f.line(&[("source", &certificate.source), ("host", &host)], f64::from(certificate.failures));
        };
    "weir_trace_spans" Counter "`outcome`" "Spans of recorded requests: exported, dropped because the queue was full, or failed at the collector."
        |f, s| {
            let traces = &s.weir.traces;
            for (outcome, count) in
                [("exported", traces.exported), ("dropped", traces.dropped), ("failed", traces.failed)]
            {
                f.line(&[("outcome", &outcome)], count as f64);
            }
        };
    "weir_websockets_opened" Counter "" "Connections upgraded."
        |f, s| f.line(&[], s.weir.websockets.opened as f64);
    "weir_websockets" Gauge "" "Upgraded connections open."
        |f, s| f.line(&[], s.weir.websockets.open as f64);
    "weir_websockets_closed" Counter "`by`" "Upgraded connections that ended, by the side that ended them."
        |f, s| for (by, count) in &s.weir.websockets.closes { f.line(&[("by", by)], *count as f64); };
    "weir_websocket_messages" Counter "`from`" "WebSocket messages by sender: client or upstream."
        |f, s| {
            let all = &s.weir.websockets;
            for (from, count) in [("client", all.messages_received), ("upstream", all.messages_sent)] {
                f.line(&[("from", &from)], count.unwrap_or(0) as f64);
            }
        };
    "weir_websocket_close_codes" Counter "`code`, `by`" "Closed WebSockets by close code and by the side that sent it first; 1005: a Close without a code, 1006: no Close."
        |f, s| for close in &s.weir.websockets.codes {
            f.line(&[("code", &close.code), ("by", &close.by)], close.count as f64);
        };
    "weir_websocket_age_seconds" Summary "" "Age of upgraded connections when they ended."
        |f, s| f.times(&[], &s.weir.websockets.age);
    "weir_websocket_round_trip_seconds" Summary "`to`" "Time from a ping to its pong: to clients, to upstreams."
        |f, s| {
            f.times(&[("to", &"client")], &s.weir.websockets.rtt_client);
            f.times(&[("to", &"upstream")], &s.weir.websockets.rtt_upstream);
        };
    "weir_errors" Counter "`class`" "Errors by status and reason."
        |f, s| for class in &s.weir.errors { f.line(&[("class", &class.class)], class.count as f64); };
    "weir_limit_used" Gauge "`kind`, `of`" "The amount in use, in the unit of the limit."
        |f, s| limit(f, s, |limit| limit.used);
    "weir_limit_most" Gauge "`kind`, `of`" "The largest amount in use since the start."
        |f, s| limit(f, s, |limit| limit.max);
    "weir_limit" Gauge "`kind`, `of`" "The limit."
        |f, s| limit(f, s, |limit| limit.limit);
    "weir_limit_hits" Counter "`kind`, `of`" "The number of times that the limit was reached."
        |f, s| limit(f, s, |limit| limit.hits as f64);
    "weir_worker_cpu" Gauge "`worker`" "Share of one CPU that a worker used in the last second."
        |f, s| for worker in &s.weir.workers { f.line(&[("worker", &worker.id)], worker.cpu); };
    "weir_worker_wakeups" Gauge "`worker`" "How often the thread of a worker woke up, per second."
        |f, s| for worker in &s.weir.workers {
            if let Some(wakeups) = worker.wakeups { f.line(&[("worker", &worker.id)], wakeups); }
        };
    "weir_host_cpu" Gauge "`kind`" "Share of all CPUs' time in the last second."
        |f, s| {
            let cpu = &s.weir.host.cpu;
            for (kind, share) in [
                ("user", cpu.user), ("system", cpu.system), ("interrupts", cpu.interrupts), ("steal", cpu.steal),
                ("idle", cpu.idle), ("wait", cpu.wait),
            ] {
                f.line(&[("kind", &kind)], share);
            }
        };
    "weir_process_resident_bytes" Gauge "" "Resident memory of the process in bytes."
        |f, s| f.line(&[], s.weir.host.rss as f64);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::HashSet;

    fn page(is_openmetrics: bool) -> String {
        String::from_utf8(reply(&Snapshot::example(), is_openmetrics).body).unwrap()
    }

    #[test]
    fn every_metric_has_a_line_for_the_example() {
        let page = page(false);
        for metric in METRICS {
            let has_line = page.lines().any(|line| {
                let rest = line.strip_prefix(metric.name).map(|rest| rest.strip_prefix("_total").unwrap_or(rest));
                rest.is_some_and(|rest| rest.starts_with([' ', '{']))
            });
            assert!(has_line, "{}", metric.name);
            assert!(metric.help.ends_with('.') || metric.help.contains(';'), "{}", metric.name);
        }
        let names: HashSet<_> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len());
    }

    #[test]
    fn the_two_formats_differ_as_they_should() {
        let (old, new) = (page(false), page(true));
        assert!(old.contains("# TYPE weir_requests_total counter\nweir_requests_total 48924\n"));
        assert!(new.contains("# TYPE weir_requests counter\nweir_requests_total 48924\n"));
        assert!(new.ends_with("# EOF\n") && !old.contains("# EOF"));
        assert!(
            old.contains(
                "weir_upstream_fails_total{upstream=\"app\",peer=\"10.0.0.12:3000\",reason=\"refused\"} 250\n"
            )
        );
    }

    #[test]
    fn a_labels_value_may_hold_anything() {
        let mut out = String::new();
        Family { out: &mut out, metric: &METRICS[0] }.line(&[("version", &"a\"b\\c\nd")], 1.5);
        assert_eq!(out, "weir_up{version=\"a\\\"b\\\\c\\nd\"} 1.5\n");
    }
}
