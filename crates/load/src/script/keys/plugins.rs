//! Keys of plugins.

use super::{Object, no, nothing, yes};

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
        no("publish-metrics", "nothing is sent yet; `--prometheus ADDR` serves the numbers, `-o` writes them"),
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
