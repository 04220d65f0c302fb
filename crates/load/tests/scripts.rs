//! Reads scripts from files into plans, as `weir load` does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use weir_load::plan::{Arrivals, Engine, Initial, LoopTimes, Plan, RequestBody, Step};
use weir_load::script::{Refusal, ScriptOptions, load};
use weir_load::value::Value;

/// A directory with files, removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn with(files: &[(&str, &str)]) -> Dir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("weir-script-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = Dir(std::env::temp_dir().join(name));
        for (name, text) in files {
            let path = dir.0.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    fn options(&self, files: &[&str]) -> ScriptOptions {
        ScriptOptions { files: files.iter().map(|name| self.0.join(name)).collect(), ..ScriptOptions::default() }
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn no_js(_: &Path) -> Result<Value, String> {
    Err("no JavaScript here".to_owned())
}

fn one(text: &str) -> Result<Plan, Refusal> {
    let dir = Dir::with(&[("a.yml", text)]);
    load(&dir.options(&["a.yml"]), &no_js)
}

fn flow(engine: &str, steps: &str) -> Result<Plan, Refusal> {
    one(&format!("config: {{target: 'http://h'}}\nscenarios: [{{engine: {engine}, flow: [{steps}]}}]"))
}

const BASE: &str = r#"config:
  target: http://a
  phases: [{duration: 5, arrivalRate: 1}, {duration: 6, arrivalRate: 2}]
  environments: {dev: {target: http://dev, phases: [{duration: 1, arrivalRate: 9}]}}
scenarios: [{name: one, flow: [{get: {url: /}}]}, {name: two, weight: 3, flow: [{log: x}]}]
"#;

/// The numbers of the requests of a flow, in order, with nested ones.
fn numbers(flow: &[Step]) -> Vec<usize> {
    let of = |step: &Step| match step {
        Step::Request(request) => vec![request.number.index()],
        Step::Loop(inner) => numbers(&inner.flow),
        Step::Parallel { steps, .. } => numbers(steps),
        _ => Vec::new(),
    };
    flow.iter().flat_map(of).collect()
}

#[test]
fn each_request_of_a_plan_has_a_number_of_its_own_below_their_count() {
    let text = "config: {target: 'http://h'}\nbefore: {flow: [{get: {url: /b}}]}\nafter: {flow: [{get: {url: /a}}]}\n\
                scenarios:\n- {flow: [{get: {url: /1}}, {loop: [{post: {url: /2}}, {parallel: [{get: {url: /3}}, \
                {get: {url: /4}}]}], count: 2}]}\n- {flow: [{get: {url: /1}}]}\n";
    let plan = one(text).unwrap();
    let mut all: Vec<usize> = plan.scenarios.iter().flat_map(|scenario| numbers(&scenario.flow)).collect();
    all.extend(plan.before.iter().chain(&plan.after).flat_map(|hook| numbers(&hook.flow)));
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(plan.requests.count(), all.len());
}

#[test]
fn files_environments_and_flags_are_merged_in_order() {
    let dir = Dir::with(&[
        ("a.yml", BASE),
        ("b.json", "{\"config\": {\"target\": \"http://b\", \"http\": {\"timeout\": 3}}}"),
    ]);
    let plan = load(&dir.options(&["a.yml", "b.json"]), &no_js).unwrap();
    assert_eq!((&*plan.target, plan.http.timeout.unwrap().as_secs(), plan.phases.len()), ("http://b", 3, 2));
    let mut options = dir.options(&["a.yml"]);
    options.config = Some(dir.0.join("b.json"));
    options.environment = Some("dev".to_owned());
    let plan = load(&options, &no_js).unwrap();
    // Lists are merged by index: the second phase stays.
    assert_eq!((&*plan.target, plan.phases.len()), ("http://dev", 2));
    assert_eq!(plan.phases[0].arrivals, Arrivals::Rate(9.0));
    assert!(plan.warnings.iter().any(|warning| warning.contains("entry by entry")), "{:?}", plan.warnings);
    options.target = Some("http://t".to_owned());
    options.overrides = Some("{\"config\": {\"phases\": [{\"duration\": 2, \"arrivalRate\": 4}]}}".to_owned());
    options.variables = Some("{\"v\": [1, 2], \"w\": 3}".to_owned());
    options.insecure = true;
    let plan = load(&options, &no_js).unwrap();
    assert_eq!((&*plan.target, plan.phases.len()), ("http://t", 1));
    assert_eq!(plan.tls.get("rejectUnauthorized"), Some(&Value::Bool(false)));
    assert!(matches!(&plan.variables[0].1, Initial::OneOf(values) if values.len() == 2));
    assert!(matches!(&plan.variables[1].1, Initial::Fixed(Value::Number(3.0))));
    options.solo = true;
    assert_eq!(load(&options, &no_js).unwrap().phases[0].arrivals, Arrivals::Count(1));
    options.environment = Some("nowhere".to_owned());
    let said = "WARNING: environment nowhere is set but is not defined in the script";
    assert!(load(&options, &no_js).unwrap().warnings.iter().any(|warning| warning == said));
}

#[test]
fn refusals_are_artillerys() {
    let dir = Dir::with(&[("a.yml", BASE), ("x.txt", ""), ("none.yml", "scenarios: []"), ("empty.yml", "")]);
    let refused = |change: &dyn Fn(&mut ScriptOptions), file: &str| {
        let mut options = dir.options(&[file]);
        change(&mut options);
        load(&options, &no_js).expect_err(file)
    };
    let nothing = |_: &mut ScriptOptions| {};
    let name = |name: &'static str| move |options: &mut ScriptOptions| options.scenario_name = Some(name.to_owned());
    for (refusal, start, exit) in [
        (refused(&nothing, "x.txt"), "Unknown file type ", 1),
        (refused(&nothing, "missing.yml"), "Error: ENOENT: no such file or directory, open '/", 1),
        (refused(&nothing, "none.yml"), "Error: No target specified and no environment chosen", 1),
        (refused(&name("three"), "a.yml"), "Error: Scenario three not found in script.", 11),
        (refused(&name("one|two"), "a.yml"), "Error: Multiple scenarios for one|two found in script.", 11),
        (refused(&|options| options.overrides = Some("{".to_owned()), "a.yml"), "Error: --overrides: ", 1),
        (
            refused(&|options| options.variables = Some("5".to_owned()), "a.yml"),
            "Error: --variables takes a JSON object",
            1,
        ),
    ] {
        assert!(refusal.text.starts_with(start) && refusal.exit == exit, "{refusal:?}");
    }
    assert!(refused(&nothing, "empty.yml").text.contains("a script must be an object"));
    let plan = |name: &str| {
        let mut options = dir.options(&["a.yml"]);
        options.scenario_name = Some(name.to_owned());
        load(&options, &no_js).unwrap().scenarios
    };
    assert_eq!((plan("^t").len(), &*plan("two")[0].name), (1, "two"));
}

#[test]
fn every_typing_error_is_named_in_one_run() {
    let script = "config:\n  targt: http://127.0.0.1:1\n  phases:\n    - duration: 1\n      arivalRate: 1\nscenarios:\n  - flwo: []\n  - flow:\n      - gett: {url: /}\n      - lop: [{get: {url: /}}]\n        count: 2\n";
    let dir = Dir::with(&[("a.yml", script)]);
    let refusal = load(&dir.options(&["a.yml"]), &no_js).unwrap_err();
    let told: Vec<&str> = refusal.warnings.iter().map(|warning| warning.en()).collect();
    let told = told.join("\n");
    for (typed, meant) in
        [("targt", "target"), ("arivalRate", "arrivalRate"), ("flwo", "flow"), ("gett", "get"), ("lop", "loop")]
    {
        let named = told
            .lines()
            .any(|line| line.contains(&format!("`{typed}`")) && line.contains(&format!("did you mean `{meant}`?")));
        assert!(named, "{typed}: {told}");
    }
    assert!(refusal.text.starts_with("Error: No target specified"), "{}", refusal.text);
    assert!(refusal.text.contains("\"scenarios[0].flow\" is required"), "{}", refusal.text);
    assert!(refusal.text.contains("\"scenarios[1].flow[1]\" must have 1 key"), "{}", refusal.text);
}

#[test]
fn a_tab_is_shown_on_its_own_line() {
    let dir = Dir::with(&[("a.yml", "config:\n  target: http://x\n\tphases: []\n")]);
    let refusal = load(&dir.options(&["a.yml"]), &no_js).unwrap_err();
    assert!(refusal.text.contains("a.yml:3:1: this is not YAML: a tab indents this line"), "{}", refusal.text);
    assert!(refusal.text.contains("3 | \tphases: []"), "{}", refusal.text);
}

/// The npm package's engine for Socket.IO 3 and 4 is weir's own; its other engines are for older versions.
#[test]
fn the_engine_of_socketios_package_is_weirs_own() {
    for engines in ["", "  engines: {socketio-v3: {}}\n"] {
        let script = |engine: &str| {
            format!(
                "config:\n  target: http://x\n{engines}scenarios:\n  - engine: {engine}\n    flow:\n      - emit: [a, b]\n        acknowledge: {{match: {{value: c}}}}\n"
            )
        };
        let dir = Dir::with(&[("a.yml", &script("socketio-v3")), ("b.yml", &script("socketio-v2"))]);
        let loaded = load(&dir.options(&["a.yml"]), &no_js).unwrap();
        assert!(matches!(loaded.scenarios[0].engine, Engine::SocketIo));
        assert!(loaded.warnings.iter().any(|warning| warning.en().contains("weir runs `socketio-v3`")));
        let text = load(&dir.options(&["b.yml"]), &no_js).unwrap_err().text;
        assert!(text.contains("write `engine: socketio`"), "{text}");
        // The hint about a forgotten engine appears only if `config.engines` does not include it.
        assert!(text.contains("Did you forget"), "{text}");
    }
}

#[test]
fn unknown_engines_end_as_artillery_does() {
    for (engine, why) in [("playwright", "no browser"), ("websocket", "`ws`"), ("kafka", "engines from npm")] {
        let refusal = flow(engine, "").unwrap_err();
        let what = format!(
            "Error: Failed to run scenario \"0\": unknown engine \"{engine}\". Did you forget to include it in \"config.engines.{engine}\"?\n"
        );
        assert!(refusal.text.starts_with(&what) && refusal.text.contains(why) && refusal.exit == 11, "{refusal:?}");
    }
}

#[test]
fn a_problem_shows_its_place() {
    let refusal = one("config:\n  target: x\nscenarios:\n  - flow:\n      - thnik: 1\n").unwrap_err();
    let seen = refusal.text.split_once("a.yml").unwrap().1;
    assert_eq!(
        seen,
        ":5:9: weir knows no step `thnik`; did you mean `think`?\n    5 |       - thnik: 1\n      |         ^\n"
    );
    let refusal = flow("http", "{'': {url: /}}").unwrap_err();
    assert!(refusal.text.contains("weir knows no step ``"), "{refusal:?}");
    let refusal = one("config: {target: x}\nscenarios:\n  - name: x\n").unwrap_err();
    assert!(
        refusal.text.starts_with("Scenario validation error: \"scenarios[0].flow\" is required\n  at "),
        "{refusal:?}"
    );
}

#[test]
fn unknown_keys_are_named() {
    let plan = one(
        "config: {target: x, htp: {}, http: {timeot: 5}}\nmore: 1\nx-mine: 1\n\
         scenarios: [{wieght: 2, flow: [{get: {url: /, followRedirects: false, http2: true, capture: {json: $.a, as: a, trict: 1}}}]}]",
    )
    .unwrap();
    for (name, near) in [
        ("`htp` is not a key of `config`", "`http`"),
        ("`timeot` is not a key of `config.http`", "`timeout`"),
        ("`more` is not a key of `script`", "no effect"),
        ("`wieght` is not a key of `scenarios[]`", "`weight`"),
        ("`followRedirects` is not a key of `flow[].get`", "`followRedirect`"),
        ("`trict` is not a key of `flow[].get.capture`", "`strict`"),
    ] {
        let is_said = plan.warnings.iter().any(|warning| warning.contains(name) && warning.contains(near));
        assert!(is_said, "{name}: {:#?}", plan.warnings);
    }
    // `http2` is a known key and causes no warning.
    assert_eq!(plan.warnings.len(), 6, "{:#?}", plan.warnings);
}

#[test]
fn steps_of_the_http_engine() {
    let plan = flow(
        "http",
        "[{think: 1}, {think: 500ms}], {loop: [{get: {url: /}}], count: '2-5'}, {loop: [], over: items}, {loop: [], over: a.b},\
         {parallel: [{get: {url: /}}], limit: 3}, {post: {url: /, json: {a: 1}, body: x}}, {post: {url: /, form: {a: 1}}},\
         {propfind: {url: /}}, {get: {url: /, expect: [{statusCode: 200}, {hasHeader: x, equals: [1, 1]}], headers: {A: 1, a: 2}}}",
    )
    .unwrap();
    let flow = &plan.scenarios[0].flow;
    assert!(matches!(&flow[0], Step::Think(think) if think.time.as_ref().is_ok_and(|time| time.as_secs() == 1)));
    assert!(matches!(&flow[1], Step::Think(think) if think.time.as_ref().is_ok_and(|time| time.as_millis() == 500)));
    assert!(matches!(&flow[2], Step::Loop(inner) if matches!(inner.times, LoopTimes::Range(2, 5)) && inner.from == 2));
    assert!(matches!(&flow[3], Step::Loop(inner) if matches!(inner.times, LoopTimes::OverVariable(_))));
    assert!(matches!(&flow[4], Step::Loop(inner) if matches!(inner.times, LoopTimes::OverPath(_))));
    assert!(matches!(&flow[5], Step::Parallel { steps, limit: 3 } if steps.len() == 1));
    assert!(
        matches!(&flow[6], Step::Request(request) if matches!(request.body, RequestBody::Json(_)) && request.method == "POST")
    );
    assert!(
        matches!(&flow[7], Step::Request(request) if matches!(&request.body, RequestBody::Form(form) if form.len() == 1))
    );
    assert!(matches!(&flow[8], Step::Request(request) if request.method == "PROPFIND"));
    let Step::Request(request) = &flow[9] else { panic!("{:?}", flow[9]) };
    let checks: Vec<&str> = request.expect.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((checks, request.headers.len()), (vec!["statusCode", "hasHeader", "equals"], 1));
}

#[test]
fn a_loop_needs_a_processor_for_its_function() {
    for (keys, is_ignored, is_endless) in
        [("count: 2", false, false), ("count: 2, whileTrue: f", true, false), ("whileTrue: f", true, true)]
    {
        let plan = flow("http", &format!("{{loop: [], {keys}}}")).unwrap();
        let says = |words: &str| plan.warnings.iter().any(|warning| warning.contains(words));
        assert_eq!((says("weir ignores `whileTrue`"), says("never end")), (is_ignored, is_endless), "{keys}");
        assert!(matches!(&plan.scenarios[0].flow[0], Step::Loop(inner) if inner.while_true.is_none()), "{keys}");
    }
    let script = "config: {target: x, processor: p.js}\nscenarios: [{flow: [{loop: [], whileTrue: f}]}]";
    let dir = Dir::with(&[("a.yml", script), ("p.js", "")]);
    let plan = load(&dir.options(&["a.yml"]), &no_js).unwrap();
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    assert!(matches!(&plan.scenarios[0].flow[0], Step::Loop(inner) if inner.while_true.as_deref() == Some("f")));
}

#[test]
fn steps_of_the_other_engines() {
    let plan = flow("ws", "{connect: 'ws://h'}, {send: hi}, {send: {payload: 1, match: {json: $.a, value: 1}}}, {wait: {capture: {json: $, as: x}}}").unwrap();
    let flow_ws = &plan.scenarios[0].flow;
    assert_eq!(plan.scenarios[0].engine, Engine::Ws);
    assert!(matches!(flow_ws[0], Step::Connect(_)) && matches!(flow_ws[1], Step::Send { then: None, .. }));
    assert!(matches!(&flow_ws[2], Step::Send { then: Some(take), .. } if take.matches.len() == 1));
    assert!(matches!(&flow_ws[3], Step::Wait(take) if take.captures.len() == 1));
    let plan = flow(
        "socketio",
        "{emit: [ev, a, b], acknowledge: {match: {value: 1}}}, {emit: {channel: ev, data: 1}, namespace: /n, response: {on: r, data: x}},\
         {get: {url: /}}, {think: 1}",
    )
    .unwrap();
    let flow_io = &plan.scenarios[0].flow;
    let Step::Emit(emit) = &flow_io[0] else { panic!("{:?}", flow_io[0]) };
    assert_eq!(emit.message.as_ref().unwrap().1.len(), 2);
    assert_eq!(emit.acknowledge.as_ref().unwrap().take.matches.len(), 1);
    assert!(matches!(&flow_io[1], Step::Emit(emit) if emit.response.is_some() && emit.namespace.is_some()));
    assert!(matches!(flow_io[2], Step::Request(_)) && matches!(flow_io[3], Step::Think(_)));
}

#[test]
fn payloads_and_files_stand_beside_the_script() {
    let script = "config: {target: x, payload: {path: data/u.csv, fields: [id, name]}}\n\
        scenarios: [{flow: [{post: {url: /, formData: {f: {fromFile: data/u.csv}}}}]}]";
    let dir = Dir::with(&[("s/a.yml", script), ("s/data/u.csv", "1,a\n2,b\n")]);
    let plan = load(&dir.options(&["s/a.yml"]), &no_js).unwrap();
    assert_eq!(plan.payloads[0].rows, vec![vec![1.0.into(), "a".into()], vec![2.0.into(), "b".into()]]);
    let Step::Request(request) = &plan.scenarios[0].flow[0] else { panic!("no request") };
    assert!(matches!(&request.body, RequestBody::Multipart { parts, .. } if parts.len() == 1));
    let dir = Dir::with(&[("a.yml", script)]);
    let refusal = load(&dir.options(&["a.yml"]), &no_js).unwrap_err();
    assert_eq!(refusal.text.matches("ENOENT").count(), 2, "{}", refusal.text);
}

#[test]
fn a_script_in_javascript_is_asked_for() {
    let dir = Dir::with(&[("a.js", "module.exports = {}")]);
    assert!(load(&dir.options(&["a.js"]), &no_js).unwrap_err().text.contains("a.js: no JavaScript here"));
    let export = |_: &Path| {
        let config = [("target".into(), "http://js".into())].into_iter().collect();
        let members = [
            ("config".into(), Value::Map(std::sync::Arc::new(config))),
            ("scenarios".into(), Value::List(Vec::new().into())),
        ];
        Ok(Value::Map(std::sync::Arc::new(members.into_iter().collect())))
    };
    assert_eq!(&*load(&dir.options(&["a.js"]), &export).unwrap().target, "http://js");
}

#[test]
fn the_summary_counts() {
    let text = one(BASE).unwrap().to_string();
    for line in [
        "2 phases, 11 s",
        "  unnamed: 6 s, 2 a second, 12 virtual users",
        "  two: http, 75 %, 1 step",
        "17 virtual users in all",
    ] {
        assert!(text.lines().any(|seen| seen == line), "{line}\n{text}");
    }
}

/// A script with many features, to be broken.
const RICH: &str = r#"config:
  target: "http://127.0.0.1:1"
  phases: [{duration: 5m, arrivalRate: 1, rampTo: 5, name: warm}, {pause: 1}, {duration: 0.5, arrivalCount: 3}]
  variables: {a: [1, 2], b: {c: 1}}
  http: {timeout: 5, pool: 10, defaults: {headers: {x: "{{ y }}"}, think: {jitter: "20%"}}, distributedTracing: {sampled: false}}
  plugins: {ensure: {thresholds: [{p99: 5}]}, expect: {}, publish-metrics: [{type: prometheus, pushgateway: "http://a:1"}]}
  environments: {e: {target: x}}
before: {flow: [{get: {url: /b}}]}
scenarios:
  - name: one
    weight: "{{ w }}"
    beforeScenario: [f, g]
    flow:
      - &get {get: {url: "/{{ $randomNumber(1, 5) }}", capture: [{json: $.a, as: a.b}, {regexp: "x(.)", group: 1, flags: i, as: r}]}}
      - [*get, {think: 0.5, jitter: 10}]
      - loop: [{post: {url: /, formData: {a: {value: 1}}, ifTrue: "a > 1", probability: 50}}]
        count: "1-3"
      - <<: *get
  - engine: ws
    flow: [{connect: {target: x}}, {send: {payload: 1, match: {json: $, value: 1}}}, {wait: {}}]
  - engine: socketio
    flow: [{emit: {channel: a, data: {b: 1}}, response: {on: x, data: y}, acknowledge: {data: 1}}]
"#;

#[test]
fn the_rich_script_is_good() {
    let plan = one(RICH);
    assert!(plan.is_ok() || plan.as_ref().is_err_and(|refusal| refusal.text.contains("no processor")), "{plan:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// A script broken in any way is either read, or refused with a text.
    #[test]
    fn broken_scripts_are_refused_not_fatal(
        edits in prop::collection::vec((0..RICH.len(), 0..12_usize, "[ \\n\\t:{}\\[\\],&*!<>|'\"#%0-9a-z-]{0,6}"), 1..6),
    ) {
        let mut text = RICH.to_owned();
        for (at, cut, insert) in edits {
            let at = at.min(text.len());
            let end = (at + cut).min(text.len());
            text.replace_range(at..end, &insert);
        }
        match one(&text) {
            Ok(plan) => prop_assert!(!plan.to_string().is_empty()),
            Err(refusal) => prop_assert!(refusal.text.ends_with('\n') && refusal.exit > 0),
        }
    }
}
