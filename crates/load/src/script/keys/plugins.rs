//! Keys of plugins.

use super::{Object, no, nothing, partly, yes};

pub(crate) const PLUGINS: Object = Object {
    path: "config.plugins",
    about: "What else is to run, by name.",
    is_open: true,
    keys: &[
        yes("ensure", "checks of the whole run"),
        yes("expect", "checks of answers"),
        yes("metrics-by-endpoint", "numbers for each URL; always runs"),
        yes("apdex", "the Apdex score"),
        yes("fake-data", "functions that make up data"),
        partly(
            "publish-metrics",
            "every period sent to Prometheus, OpenTelemetry, StatsD, Telegraf or Datadog's agent; no traces",
        ),
        no("slack", "nothing is posted; take the exit code, or the JSON report"),
        no("memory-inspector", "processes are not looked at; `weir lab` is"),
    ],
};

pub(crate) const ENSURE: Object = Object {
    path: "config.plugins.ensure",
    about: "Checks of the whole run; `config.ensure` counts first. A failed one makes the exit code 1.",
    is_open: false,
    keys: &[
        yes("thresholds", "a list of `METRIC: N`: the metric must be below"),
        yes("conditions", "a list of `expression` and `strict`"),
        yes("min", "of `http.response_time`, in ms, must be below"),
        yes("max", "of `http.response_time`, in ms, must be below"),
        yes("median", "of `http.response_time`, in ms, must be below"),
        yes("p95", "of `http.response_time`, in ms, must be below"),
        yes("p99", "of `http.response_time`, in ms, must be below"),
        yes("maxErrorRate", "per cent of virtual users that did not complete"),
        nothing("suppressOutput", "the checks are always printed"),
    ],
};

pub(crate) const ENSURE_CONDITION: Object = Object {
    path: "config.plugins.ensure.conditions[]",
    about: "A check.",
    is_open: false,
    keys: &[
        yes("expression", "what must be true, in the language of `ifTrue`, over the metrics"),
        yes("strict", "`false` does not fail the run"),
    ],
};

pub(crate) const EXPECT_OPTIONS: Object = Object {
    path: "config.plugins.expect",
    about: "Checks of answers.",
    is_open: false,
    keys: &[
        yes("outputFormat", "`pretty`, `json`, `prettyError` or `silent`"),
        yes("formatter", "the same"),
        yes("reportFailuresAsErrors", "`true` ends the virtual user"),
        yes("expectDefault200", "`true` checks for 200 where no check is written"),
        yes("useOnlyRequestNames", "errors name the request, not its URL"),
    ],
};

pub(crate) const BY_ENDPOINT: Object = Object {
    path: "config.plugins.metrics-by-endpoint",
    about: "Numbers for each URL.",
    is_open: false,
    keys: &[
        yes("useOnlyRequestNames", "the request's name stands for its URL"),
        yes("stripQueryString", "URLs without query"),
        yes("ignoreUnnamedRequests", "only requests with a name"),
        yes("metricsNamespace", "`plugins.metrics-by-endpoint` unless set"),
        yes("groupDynamicURLs", "URLs as written, before templates are filled in; `true` unless set"),
        yes("suppressOutput", "not on the console, only in the JSON report"),
    ],
};

pub(crate) const APDEX: Object = Object {
    path: "config.plugins.apdex",
    about: "The Apdex score; `config.apdex` counts first.",
    is_open: false,
    keys: &[yes("threshold", "milliseconds; 500 unless set")],
};

pub(crate) const PUBLISH: Object = Object {
    path: "config.plugins.publish-metrics[]",
    about: "Who is sent every period of the report. Of other types than those of `type` nothing is sent, with a warning.",
    is_open: false,
    keys: &[
        partly(
            "type",
            "`prometheus`, `open-telemetry`, `statsd`, `influxdb-statsd`, or `datadog` without `apiKey`; not the interfaces of vendors",
        ),
        yes("pushgateway", "prometheus: the URL of the Pushgateway; required"),
        yes("ca", "prometheus: a file of authorities to trust"),
        yes("prefix", "of every name: `artillery` for prometheus, `artillery.` for the others of UDP"),
        yes("tags", "a list of `name:value`, with every metric"),
        yes("host", "of UDP: `127.0.0.1` unless set"),
        yes("port", "of UDP: 8125 unless set"),
        yes("includeOnly", "of UDP: only metrics whose names begin so"),
        yes("excluded", "of UDP: no metrics whose names begin so; not heeded beside `includeOnly`"),
        yes("event", "of UDP: `send`, `title`, `text`, `tags` and their kin, said at start and end"),
        partly(
            "metrics",
            "open-telemetry: `exporter` (`otlp-http` or `otlp-proto`, not `otlp-grpc`), `endpoint`, `headers`, `meterName`, `attributes`, `includeOnly`, `exclude`",
        ),
        yes("serviceName", "open-telemetry: `Artillery-test` unless set"),
        yes("resourceAttributes", "open-telemetry: of the resource"),
        no("traces", "spans are not sent"),
        no("appKey", "the interfaces of vendors are not spoken"),
    ],
};
