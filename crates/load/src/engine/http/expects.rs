//! The expect plugin, as a worker keeps it (artillery.md §5.2).

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::IsTerminal;

use crate::expect::CheckResult;
use crate::record::{MetricId, Recorder};
use crate::value::Value;

/// The output mode of the expect plugin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectFormat {
    Pretty,
    PrettyError,
    Json,
    Silent,
}

/// The expect plugin (artillery.md §5.2).
pub(super) struct Expects {
    pub(super) format: ExpectFormat,
    pub(super) default_200: bool,
    pub(super) fails: bool,
    pub(super) only_names: bool,
    pub(super) is_coloured: bool,
    pub(super) ok: MetricId,
    pub(super) failed: MetricId,
    /// `.ok.TYPE` and `.failed.TYPE` by outcome and type.
    pub(super) kinds: RefCell<Vec<(bool, Cow<'static, str>, MetricId)>>,
}

impl Expects {
    pub(super) fn new(options: &Value, recorder: &Recorder) -> Expects {
        let option = |name: &str| match options {
            Value::Map(map) => map.get(name).cloned().unwrap_or_default(),
            _ => Value::Undefined,
        };
        let is = |name: &str| matches!(&*option(name).to_text(), "true");
        let format = Some(option("formatter")).filter(Value::is_truthy).unwrap_or_else(|| option("outputFormat"));
        Expects {
            format: match &*format.to_text() {
                "json" => ExpectFormat::Json,
                "silent" => ExpectFormat::Silent,
                "prettyError" => ExpectFormat::PrettyError,
                _ => ExpectFormat::Pretty,
            },
            default_200: is("expectDefault200"),
            fails: option("reportFailuresAsErrors").is_truthy(),
            only_names: is("useOnlyRequestNames"),
            is_coloured: std::io::stdout().is_terminal(),
            ok: recorder.metric("plugins.expect.ok"),
            failed: recorder.metric("plugins.expect.failed"),
            kinds: RefCell::new(Vec::new()),
        }
    }

    pub(super) fn count(&self, recorder: &Recorder, outcome: &CheckResult) {
        recorder.count(if outcome.ok { self.ok } else { self.failed }, 1);
        let known =
            self.kinds.borrow().iter().find(|(ok, kind, _)| *ok == outcome.ok && *kind == outcome.kind).map(|k| k.2);
        let metric = known.unwrap_or_else(|| {
            let word = if outcome.ok { "ok" } else { "failed" };
            let metric = recorder.metric(&format!("plugins.expect.{word}.{}", outcome.kind));
            self.kinds.borrow_mut().push((outcome.ok, outcome.kind.clone(), metric));
            metric
        });
        recorder.count(metric, 1);
    }

    /// The line for a request that failed before there was anything to check.
    pub(super) fn error(&self, name: &str) -> String {
        match self.format {
            ExpectFormat::Json => {
                let error = Value::from(name).to_json().unwrap_or_default();
                format!("{{\"ok\":false,\"error\":{error}}}")
            }
            _ if self.is_coloured => format!("\u{1b}[31mError:\u{1b}[39m {name}"),
            _ => format!("Error: {name}"),
        }
    }
}
