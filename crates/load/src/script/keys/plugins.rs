//! Keys of plugins.

use super::object::{Object, no, nothing, partly, yes};

pub(crate) const PLUGINS: Object = Object {
    path: "config.plugins",
    about: "The plugins to run, by name.",
    is_open: true,
    keys: &[
        yes("ensure", "checks of the whole run"),
        yes("expect", "checks of answers"),
        yes("metrics-by-endpoint", "metrics for each URL; always runs"),
        yes("apdex", "the Apdex score"),
        yes("fake-data", "functions that make up data"),
        partly(
            "publish-metrics",
            "weir sends every period to Prometheus, OpenTelemetry, StatsD, Telegraf or Datadog's agent; it sends no traces",
        ),
        no(
            "slack",
            "weir posts nothing; use the exit code or the JSON report",
            "아무것도 게시하지 않습니다. 종료 코드나 JSON 보고서를 쓰세요",
        ),
        no(
            "memory-inspector",
            "`weir load` does not measure processes; `weir lab` does",
            "`weir load`는 프로세스를 측정하지 않습니다. `weir lab`을 쓰세요",
        ),
    ],
};

pub(crate) const ENSURE: Object = Object {
    path: "config.plugins.ensure",
    about: "Checks of the whole run; `config.ensure` takes precedence. If a check fails, the exit code is 1.",
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
        nothing("suppressOutput", "the checks are always printed", "검사 결과는 항상 출력합니다"),
    ],
};

pub(crate) const ENSURE_CONDITION: Object = Object {
    path: "config.plugins.ensure.conditions[]",
    about: "A check.",
    is_open: false,
    keys: &[
        yes("expression", "the condition over the metrics, in the language of `ifTrue`"),
        yes("strict", "with `false`, a failed check does not fail the run"),
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
        yes("expectDefault200", "`true` checks for 200 in a request without checks"),
        yes("useOnlyRequestNames", "errors name the request, not its URL"),
    ],
};

pub(crate) const BY_ENDPOINT: Object = Object {
    path: "config.plugins.metrics-by-endpoint",
    about: "Metrics for each URL.",
    is_open: false,
    keys: &[
        yes("useOnlyRequestNames", "weir uses the request's name instead of its URL"),
        yes("stripQueryString", "URLs without query"),
        yes("ignoreUnnamedRequests", "only requests with a name"),
        yes("metricsNamespace", "the default is `plugins.metrics-by-endpoint`"),
        yes("groupDynamicURLs", "URLs as written, before weir fills in templates; the default is `true`"),
        yes("suppressOutput", "not on the console, only in the JSON report"),
    ],
};

pub(crate) const APDEX: Object = Object {
    path: "config.plugins.apdex",
    about: "The Apdex score; `config.apdex` takes precedence.",
    is_open: false,
    keys: &[yes("threshold", "milliseconds; the default is 500")],
};

pub(crate) const PUBLISH: Object = Object {
    path: "config.plugins.publish-metrics[]",
    about: "The receivers of every period of the report. For a type that is not listed under `type`, weir sends nothing and prints a warning.",
    is_open: false,
    keys: &[
        partly(
            "type",
            "`prometheus`, `open-telemetry`, `statsd`, `influxdb-statsd`, or `datadog` without `apiKey`; weir does not support the APIs of vendors",
        ),
        yes("pushgateway", "prometheus: the URL of the Pushgateway; required"),
        yes("ca", "prometheus: a file of authorities to trust"),
        yes(
            "prefix",
            "the prefix of every name: `artillery` for prometheus, `artillery.` for the others, which use UDP",
        ),
        yes("tags", "a list of `name:value`; weir sends it with every metric"),
        yes("host", "UDP: the default is `127.0.0.1`"),
        yes("port", "UDP: the default is 8125"),
        yes("includeOnly", "UDP: only metrics with these beginnings of names"),
        yes("excluded", "UDP: no metrics with these beginnings of names; weir ignores it beside `includeOnly`"),
        yes(
            "event",
            "UDP: `send`, `title`, `text`, `tags` and similar keys of the event that weir sends at start and end",
        ),
        partly(
            "metrics",
            "open-telemetry: `exporter` (`otlp-http` or `otlp-proto`, not `otlp-grpc`), `endpoint`, `headers`, `meterName`, `attributes`, `includeOnly`, `exclude`",
        ),
        yes("serviceName", "open-telemetry: the default is `Artillery-test`"),
        yes("resourceAttributes", "open-telemetry: attributes of the resource"),
        no("traces", "spans are not sent", "스팬은 보내지 않습니다"),
        no("appKey", "weir does not support the APIs of vendors", "업체별 API는 지원하지 않습니다"),
    ],
};
