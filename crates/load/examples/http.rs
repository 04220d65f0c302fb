//! `cargo run --release -p weir-load --example http -- URL [-c VUSERS] [-d SECONDS] [-think SECONDS] [-bare]`: the http
//! engine without the rest of a run, for bench/: virtual users that ask again and again, with a capture and a check
//! unless `-bare`, and what one of them costs in memory.
#![allow(clippy::expect_used, clippy::panic)]

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use weir_load::capture::{Capture, Extract};
use weir_load::engine::http::step;
use weir_load::plan::{Body, Engine, HttpConfig, Plan, Plugins, Request, Scenario, WsConfig};
use weir_load::template::{Template, Tree};
use weir_load::value::{Map, Value};
use weir_load::vars::Names;
use weir_load::vuser::Vuser;
use weir_load::worker::Worker;
use weir_net::{clock, timer, worker};

/// As in weir itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let (mut target, mut vusers, mut seconds, mut think, mut is_bare) = (String::new(), 64, 3.0, 0.0, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|text| text.parse::<f64>().ok()).expect("a number");
        match arg.as_str() {
            "-c" => vusers = number() as usize,
            "-d" => seconds = number(),
            "-think" => think = number(),
            "-bare" => is_bare = true,
            _ => target = arg,
        }
    }
    weir_net::process::raise_nofile().expect("descriptors");
    let (plan, request) = plan(target.trim_end_matches('/'), is_bare);
    let before = resident_kib();
    worker::block_on(async move {
        let shared = Rc::new(new_worker(plan));
        let request = Rc::new(request);
        let end = clock::precise() + Duration::from_secs_f64(seconds);
        for _ in 0..vusers {
            let vuser = shared.vuser(Some(0), clock::precise());
            worker::spawn(live(vuser, request.clone(), end, Duration::from_secs_f64(think)));
        }
        timer::sleep(Duration::from_secs_f64(seconds * 0.9)).await;
        let connected = worker::live_sockets();
        let grown = resident_kib().saturating_sub(before);
        timer::sleep(Duration::from_secs_f64(seconds * 0.1 + 0.3)).await;
        let (mut counters, mut errors) = (0, 0);
        for window in shared.recorder.take(u64::MAX).windows {
            for (name, count) in window.counters {
                counters += if &*name == "http.codes.200" { count } else { 0 };
                errors += if name.starts_with("plugins.expect.failed") { count } else { 0 };
            }
        }
        println!(
            "{{\"requests\":{counters},\"errors\":{errors},\"connected\":{connected},\"bytes_per_vuser\":{}}}",
            grown * 1024 / (connected as u64).max(1)
        );
    })
    .expect("a worker");
}

fn new_worker(plan: Plan) -> Worker {
    let worker = Worker::new(Arc::new(plan), Arc::default(), std::sync::mpsc::channel().0, 1);
    worker.unwrap_or_else(|failed| panic!("{failed:?}"))
}

async fn live(mut vuser: Vuser, request: Rc<Request>, end: weir_net::Instant, think: Duration) {
    while clock::now() < end {
        if let Err(failed) = step(&mut vuser, &request).await {
            eprintln!("{failed:?}");
            return;
        }
        if !think.is_zero() {
            timer::sleep(think).await;
        }
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn plan(target: &str, is_bare: bool) -> (Plan, Request) {
    let mut names = Names::default();
    let slot = names.slot("token");
    let mut request = Request {
        method: "GET".to_owned(),
        url: Some(Template::parse("/", &mut names)),
        name: None,
        headers: Vec::new(),
        body: Body::None,
        query: None,
        cookies: Vec::new(),
        auth: None,
        gzip: None,
        follows: true,
        allow_get_body: false,
        captures: Vec::new(),
        matches: Vec::new(),
        expect: Vec::new(),
        before_request: Vec::new(),
        after_response: Vec::new(),
        if_true: None,
        probability: None,
        spec: Value::Undefined,
    };
    let mut plugins = Plugins::default();
    if !is_bare {
        let what = Extract::json(Template::parse("$.token", &mut names), true);
        request.captures = vec![Capture { what, slot, path: Vec::new(), strict: None }];
        request.expect = vec![("statusCode".to_owned(), Tree::parse(&Value::Number(200.0), &mut names))];
        plugins.expect = Some(Value::from(Map::from_iter([("formatter".into(), Value::from("silent"))])));
    }
    let scenario = Scenario {
        name: "0".into(),
        weight: 1,
        engine: Engine::Http,
        flow: Vec::new(),
        before_request: Vec::new(),
        after_response: Vec::new(),
        on_error: Vec::new(),
        socketio: None,
        spec: Value::Undefined,
    };
    let plan = Plan {
        file: "/s.yml".into(),
        dir: "/".into(),
        target: target.into(),
        phases: Vec::new(),
        scenarios: vec![scenario],
        before: None,
        after: None,
        socketio: Tree::parse(&Value::Undefined, &mut names),
        names: Arc::new(names),
        globals: Vec::new(),
        payloads: Vec::new(),
        variables: Vec::new(),
        http: HttpConfig::default(),
        ws: WsConfig::default(),
        tls: Map::default(),
        timeout: None,
        processor: None,
        plugins,
        files: Vec::new(),
        warnings: Vec::new(),
    };
    (plan, request)
}
