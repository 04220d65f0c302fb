//! Whether the hosts and the files of a run are known before it: a program that runs the script of a stranger asks that.

use crate::plan::{Connect, Flow, FormPart, Plan, RequestBody, Step};
use crate::template::Template;
use crate::value::Value;

/// A part of a plan that leads beyond the hosts that are allowed, or that only a run knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarReach {
    /// A host.
    Host,
    /// A file of a form.
    File,
    /// A receiver of metrics (`publish-metrics`).
    Metrics,
}

impl Plan {
    /// The first part that leads beyond. `may` says whether the host of a URL is allowed.
    ///
    /// An answer may still redirect a request to another host.
    pub fn reaches_beyond(&self, may: &dyn Fn(&str) -> bool) -> Option<FarReach> {
        if !may(&self.target) {
            return Some(FarReach::Host);
        }
        if !self.plugins.publish.is_empty() {
            return Some(FarReach::Metrics);
        }
        let hooks = self.before.iter().chain(&self.after).map(|hook| &hook.flow);
        let mut open: Vec<&Flow> = self.scenarios.iter().map(|scenario| &scenario.flow).chain(hooks).collect();
        while let Some(flow) = open.pop() {
            for step in flow {
                match step {
                    Step::Loop(inner) => open.push(&inner.flow),
                    Step::Parallel { steps, .. } => open.push(steps),
                    Step::Request(request) => {
                        if request.url.as_ref().is_some_and(|url| !is_near(url, may)) {
                            return Some(FarReach::Host);
                        }
                        if has_late_file(&request.body) {
                            return Some(FarReach::File);
                        }
                    }
                    Step::Connect(connect) if !connects_near(connect, may) => return Some(FarReach::Host),
                    Step::Connect(_)
                    | Step::Think(_)
                    | Step::Log(_)
                    | Step::Function(_)
                    | Step::Send { .. }
                    | Step::Wait(_)
                    | Step::Emit(_) => {}
                }
            }
        }
        None
    }
}

/// A URL that begins with a slash goes to the target.
fn is_near(url: &Template, may: &dyn Fn(&str) -> bool) -> bool {
    url.source().starts_with('/') || url.literal().is_some_and(may)
}

fn connects_near(connect: &Connect, may: &dyn Fn(&str) -> bool) -> bool {
    match connect {
        Connect::Url(url) => url.literal().is_some_and(may),
        Connect::Options(tree) => match tree.literal() {
            Some(Value::Map(options)) => options.get("target").is_none_or(|target| may(&target.to_string())),
            // Any other value stands for the target of the plan.
            Some(_) => true,
            None => false,
        },
        Connect::Function(_) => false,
    }
}

fn has_late_file(body: &RequestBody) -> bool {
    match body {
        RequestBody::Multipart { parts, .. } => parts.iter().any(|(_, part)| matches!(part, FormPart::FileNamed(..))),
        RequestBody::None | RequestBody::Json(_) | RequestBody::Raw(_) | RequestBody::Form(_) => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::script::{self, ScriptOptions};

    fn of(more: &str, engine: &str, step: &str) -> Option<FarReach> {
        let file = std::env::temp_dir().join(format!("weir-load-reach-{}.yml", std::process::id()));
        let text = format!(
            "config: {{target: 'http://127.0.0.1:1', phases: [{{duration: 1, arrivalRate: 1}}]{more}}}\n\
             scenarios: [{{engine: {engine}, flow: [{step}]}}]\n"
        );
        std::fs::write(&file, text).unwrap();
        let options = ScriptOptions { files: vec![file.clone()], ..ScriptOptions::default() };
        let plan = script::load(&options, &|_| Err("no code".to_owned())).unwrap();
        std::fs::remove_file(file).unwrap();
        plan.reaches_beyond(&|url| url.starts_with("http://127.0.0.1") || url.starts_with("ws://127.0.0.1"))
    }

    #[test]
    fn a_host_a_file_or_a_receiver_of_metrics_that_is_not_known_is_told() {
        for (step, expect) in [
            ("{get: {url: /a}}", None),
            ("{get: {url: '/{{ x }}'}}", None),
            ("{get: {url: 'http://127.0.0.1:1/a'}}", None),
            ("{get: {url: 'http://far.example/a'}}", Some(FarReach::Host)),
            // No `://`, and a host all the same.
            ("{get: {url: 'http:far.example'}}", Some(FarReach::Host)),
            ("{get: {url: '{{ host }}/a'}}", Some(FarReach::Host)),
            ("{parallel: [{get: {url: 'http://far.example/'}}]}", Some(FarReach::Host)),
            ("{loop: [{get: {url: 'http://far.example/'}}], count: 2}", Some(FarReach::Host)),
            ("{post: {url: /a, formData: {f: {fromFile: '{{ name }}'}}}}", Some(FarReach::File)),
        ] {
            assert_eq!(of("", "http", step), expect, "{step}");
        }
        let metrics = ", plugins: {publish-metrics: [{type: prometheus, pushgateway: 'http://127.0.0.1:9091'}]}";
        assert_eq!(of(metrics, "http", "{get: {url: /a}}"), Some(FarReach::Metrics));
        for (connect, expect) in [
            ("'ws://127.0.0.1:1/'", None),
            ("'ws://far.example/'", Some(FarReach::Host)),
            ("{target: 'ws://far.example/'}", Some(FarReach::Host)),
            ("{target: '{{ x }}'}", Some(FarReach::Host)),
            ("{headers: {a: b}}", None),
        ] {
            assert_eq!(of("", "ws", &format!("{{connect: {connect}}}")), expect, "{connect}");
        }
    }
}
