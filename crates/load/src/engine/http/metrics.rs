//! The metrics of requests (artillery.md §3.2, §5.3, §5.4); each name is looked up once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use weir_net::Instant;

use weir_net::clock;

use crate::client::{Answer, Timings};
use crate::plan::Plan;
use crate::record::{MetricId, Recorder};
use crate::value::Value;

/// Labels that one worker remembers; more are looked up each time.
const ENDPOINTS_MAX: usize = 10_000;

/// Ids of the metrics of requests.
pub(crate) struct RequestMetrics {
    requests: MetricId,
    request_rate: MetricId,
    responses: MetricId,
    response_time: MetricId,
    /// `.2xx` to `.5xx`.
    classes: [MetricId; 4],
    downloaded_bytes: MetricId,
    codes: RefCell<Vec<(u16, MetricId)>>,
    extended: Option<Extended>,
    apdex: Option<Apdex>,
    /// Start of the whole milliseconds, as 1970 is for `Date.now()`.
    epoch: Instant,
}

struct Extended {
    dns: MetricId,
    tcp: MetricId,
    tls: MetricId,
    total: MetricId,
}

struct Apdex {
    threshold_ms: f64,
    satisfied: MetricId,
    tolerated: MetricId,
    frustrated: MetricId,
}

impl RequestMetrics {
    /// The metrics that every request has.
    pub(crate) fn plain(recorder: &Recorder) -> RequestMetrics {
        RequestMetrics {
            requests: recorder.metric("http.requests"),
            request_rate: recorder.metric("http.request_rate"),
            responses: recorder.metric("http.responses"),
            response_time: recorder.metric("http.response_time"),
            classes: ["2", "3", "4", "5"].map(|class| recorder.metric(&format!("http.response_time.{class}xx"))),
            downloaded_bytes: recorder.metric("http.downloaded_bytes"),
            codes: RefCell::new(Vec::new()),
            extended: None,
            apdex: None,
            epoch: clock::precise(),
        }
    }

    /// The metrics of a plan.
    pub(super) fn new(plan: &Plan, recorder: &Recorder) -> RequestMetrics {
        let extended = || Extended {
            dns: recorder.metric("http.dns"),
            tcp: recorder.metric("http.tcp"),
            tls: recorder.metric("http.tls"),
            total: recorder.metric("http.total"),
        };
        let apdex = |threshold_ms| Apdex {
            threshold_ms,
            satisfied: recorder.metric("apdex.satisfied"),
            tolerated: recorder.metric("apdex.tolerated"),
            frustrated: recorder.metric("apdex.frustrated"),
        };
        RequestMetrics {
            extended: plan.http.extended_metrics.then(extended),
            apdex: plan.plugins.apdex.map(apdex),
            ..RequestMetrics::plain(recorder)
        }
    }

    /// Counts a request that is passed to the client.
    pub(crate) fn request(&self, recorder: &Recorder) {
        recorder.count(self.requests, 1);
        recorder.rate(self.request_rate);
    }

    /// Counts the times that a request was sent again because the server reported that it had not begun with it.
    pub(crate) fn resent(&self, recorder: &Recorder, times: u64) {
        if times > 0 {
            recorder.count(recorder.metric("http.resent"), times);
        }
    }

    /// Counts the head of an answer.
    pub(crate) fn head(&self, recorder: &Recorder, status: u16, timings: &Timings) {
        recorder.count(self.code(recorder, status), 1);
        recorder.count(self.responses, 1);
        let time = self.first_byte_ms(timings);
        recorder.sample(self.response_time, time);
        if let Some(class) = usize::from(status / 100).checked_sub(2).and_then(|class| self.classes.get(class)) {
            recorder.sample(*class, time);
        }
        if let Some(extended) = &self.extended {
            recorder.sample(extended.dns, whole(timings.dns));
            recorder.sample(extended.tcp, whole(timings.tcp));
            if let Some(tls) = timings.tls {
                recorder.sample(extended.tls, whole(tls));
            }
        }
    }

    /// Counts a complete answer.
    pub(crate) fn answer(&self, recorder: &Recorder, answer: &Answer) {
        self.head(recorder, answer.status(), &answer.timings);
        if let Some(extended) = &self.extended {
            recorder.sample(extended.total, self.ms(answer.timings.started, answer.timings.end));
        }
        recorder.count(self.downloaded_bytes, answer.body_bytes);
    }

    /// Counts the final answer to a step.
    pub(super) fn apdex(&self, recorder: &Recorder, timings: &Timings) {
        let Some(apdex) = &self.apdex else {
            return;
        };
        for metric in [apdex.satisfied, apdex.tolerated, apdex.frustrated] {
            recorder.count(metric, 0);
        }
        let total = self.ms(timings.started, timings.end);
        let metric = match total {
            total if total <= apdex.threshold_ms => apdex.satisfied,
            total if total <= 4.0 * apdex.threshold_ms => apdex.tolerated,
            _ => apdex.frustrated,
        };
        recorder.count(metric, 1);
    }

    /// Artillery's `firstByte`: from the request sent to the head of its answer, in whole milliseconds.
    pub(super) fn first_byte_ms(&self, timings: &Timings) -> f64 {
        self.ms(timings.sent, timings.head)
    }

    /// The time between two instants on a clock of whole milliseconds; rounded down as often as up.
    fn ms(&self, from: Instant, to: Instant) -> f64 {
        let at = |instant: Instant| instant.saturating_duration_since(self.epoch).as_millis();
        at(to).saturating_sub(at(from)) as f64
    }

    fn code(&self, recorder: &Recorder, status: u16) -> MetricId {
        let mut codes = self.codes.borrow_mut();
        if let Some((_, metric)) = codes.iter().find(|(known, _)| *known == status) {
            return *metric;
        }
        let metric = recorder.metric(&format!("http.codes.{status}"));
        codes.push((status, metric));
        metric
    }
}

fn whole(time: Duration) -> f64 {
    time.as_millis() as f64
}

/// Options of metrics-by-endpoint.
pub(super) struct ByEndpoint {
    only_names: bool,
    strips_query: bool,
    ignores_unnamed: bool,
    namespace: String,
    /// True: make labels from the URL and name in the script, not from the rendered ones.
    pub(super) groups: bool,
    endpoints: RefCell<HashMap<String, Rc<Endpoint>>>,
}

/// The metrics of one label.
pub(super) struct Endpoint {
    label: String,
    response_time: MetricId,
    codes: RefCell<Vec<(u16, MetricId)>>,
}

impl ByEndpoint {
    pub(super) fn new(plan: &Plan) -> ByEndpoint {
        let options = plan.plugins.by_endpoint.as_ref();
        let option = |name: &str| match options {
            Some(Value::Map(map)) => map.get(name).cloned(),
            _ => None,
        };
        let is = |name: &str| option(name).is_some_and(|value| value.is_truthy());
        let namespace = option("metricsNamespace").filter(Value::is_truthy).map(|value| value.to_text().into_owned());
        ByEndpoint {
            only_names: is("useOnlyRequestNames"),
            // Artillery adds the plugin with this option if the script does not name the plugin.
            strips_query: options.is_none() || is("stripQueryString"),
            ignores_unnamed: is("ignoreUnnamedRequests"),
            namespace: namespace.unwrap_or_else(|| "plugins.metrics-by-endpoint".to_owned()),
            groups: match option("groupDynamicURLs") {
                None | Some(Value::Null | Value::Undefined) => true,
                Some(value) => value.is_truthy(),
            },
            endpoints: RefCell::new(HashMap::new()),
        }
    }

    /// The metrics of a request with this URL and name; `None` if the request is ignored.
    pub(super) fn of(&self, recorder: &Recorder, target: &str, url: &str, name: Option<&str>) -> Option<Rc<Endpoint>> {
        let label = match name.filter(|name| !name.is_empty()) {
            None if self.ignores_unnamed => return None,
            None => self.base(target, url),
            Some(name) if self.only_names => name.to_owned(),
            Some(name) => format!("{} ({name})", self.base(target, url)),
        };
        if label.is_empty() {
            return None;
        }
        let mut endpoints = self.endpoints.borrow_mut();
        if let Some(known) = endpoints.get(&label) {
            return Some(known.clone());
        }
        let endpoint = Rc::new(Endpoint {
            response_time: recorder.metric(&format!("{}.response_time.{label}", self.namespace)),
            codes: RefCell::new(Vec::new()),
            label: label.clone(),
        });
        if endpoints.len() < ENDPOINTS_MAX {
            endpoints.insert(label, endpoint.clone());
        }
        Some(endpoint)
    }

    /// The path, perhaps with the query; with host and port if they differ from the target's.
    fn base(&self, target: &str, url: &str) -> String {
        let (ours, theirs) = (Parts::of(target), Parts::of(url));
        let mut base = String::new();
        if !theirs.host.is_empty() && ours.host != theirs.host {
            base.push_str(theirs.host);
        }
        if !theirs.port.is_empty() && ours.port != theirs.port {
            base.push(':');
            base.push_str(theirs.port);
        }
        let rest = theirs.rest.split('#').next().unwrap_or_default();
        let rest = if self.strips_query { rest.split('?').next().unwrap_or_default() } else { rest };
        if !rest.starts_with('/') && !theirs.host.is_empty() {
            base.push('/');
        }
        base.push_str(rest);
        decoded(&base).unwrap_or(base)
    }

    /// Counts the final answer to a step.
    pub(super) fn answer(&self, recorder: &Recorder, endpoint: &Endpoint, answer: &Answer, first_byte_ms: f64) {
        if let Some(timing) = answer.field(b"server-timing") {
            let metric = recorder.metric(&format!("{}.server-timing.{}", self.namespace, endpoint.label));
            recorder.sample(metric, server_timing_total(timing));
        }
        let status = answer.status();
        let known = endpoint.codes.borrow().iter().find(|(known, _)| *known == status).map(|(_, metric)| *metric);
        let metric = known.unwrap_or_else(|| {
            let metric = recorder.metric(&format!("{}.{}.codes.{status}", self.namespace, endpoint.label));
            endpoint.codes.borrow_mut().push((status, metric));
            metric
        });
        recorder.count(metric, 1);
        recorder.sample(endpoint.response_time, first_byte_ms);
    }

    /// Counts a failed request.
    pub(super) fn failure(&self, recorder: &Recorder, endpoint: &Endpoint, name: &str) {
        let metric = recorder.metric(&format!("{}.{}.errors.{name}", self.namespace, endpoint.label));
        recorder.count(metric, 1);
    }
}

/// The parts of a URL as the script wrote it, with its templates.
struct Parts<'u> {
    host: &'u str,
    port: &'u str,
    rest: &'u str,
}

impl Parts<'_> {
    fn of(url: &str) -> Parts<'_> {
        let Some((_, after)) = url.split_once("://") else {
            return Parts { host: "", port: "", rest: url };
        };
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        let (authority, rest) = after.split_at_checked(end).unwrap_or((after, ""));
        let authority = authority.rsplit_once('@').map_or(authority, |(_, authority)| authority);
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port),
            _ => (authority, ""),
        };
        Parts { host, port, rest }
    }
}

/// `decodeURIComponent`; `None` if that would throw.
fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(out).ok()
}

/// The first `total;dur=N` of a Server-Timing field; -1 if there is none.
fn server_timing_total(field: &[u8]) -> f64 {
    let text = String::from_utf8_lossy(field).to_ascii_lowercase();
    let Some((_, after)) = text.split_once("total;dur=") else {
        return -1.0;
    };
    let end = after.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(after.len());
    after.get(..end).unwrap_or_default().parse().unwrap_or(-1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(strips_query: bool, url: &str, name: Option<&str>) -> String {
        let by_endpoint = ByEndpoint {
            only_names: false,
            strips_query,
            ignores_unnamed: false,
            namespace: "m".to_owned(),
            groups: true,
            endpoints: RefCell::default(),
        };
        let endpoint = by_endpoint.of(&Recorder::default(), "http://127.0.0.1:8080", url, name);
        endpoint.map_or_else(String::new, |endpoint| endpoint.label.clone())
    }

    #[test]
    fn labels() {
        for (strips, url, name, expect) in [
            (
                false,
                "http://127.0.0.1:8080/item?token={{ token }}",
                Some("item by token"),
                "/item?token={{ token }} (item by token)",
            ),
            (true, "http://127.0.0.1:8080/item?token={{ token }}", None, "/item"),
            (true, "http://127.0.0.1:8080/users/{{ id }}", None, "/users/{{ id }}"),
            (true, "http://other:81/x", None, "other:81/x"),
            (true, "http://127.0.0.1:81/x", None, ":81/x"),
            (true, "http://127.0.0.1:8080", None, "/"),
            (true, "http://127.0.0.1:8080/a%20b", None, "/a b"),
            (true, "http://127.0.0.1:8080/a%zz", None, "/a%zz"),
        ] {
            assert_eq!(label(strips, url, name), expect);
        }
    }

    #[test]
    fn server_timings() {
        assert_eq!(server_timing_total(b"db;dur=3, total;dur=12.5"), 12.5);
        assert_eq!(server_timing_total(b"db;dur=3"), -1.0);
    }
}
