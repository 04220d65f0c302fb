//! Outputs that no other test makes, against the published schemas; and that the schemas refuse what they do not name.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[path = "support/schema.rs"]
mod schema;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Output, Stdio};

use needs::cases;
use serde_json::{Value, json};
use weir_meter::live::{Canary, Snapshot};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

fn main() -> ExitCode {
    needs::run(cases![
        [] => every_schema_is_listed_printed_and_explained, no_member_may_have_any_value, unknown_and_missing_members_are_refused, the_state_of_an_edge_has_its_shape, a_full_state_has_its_shape, runs_of_the_lab_have_their_shape;
    ])
}

fn weir(words: &[&str], room: &Path) -> Output {
    Command::new(WEIR).args(words).current_dir(room).env("WEIR_LANG", "en").stdin(Stdio::null()).output().unwrap()
}

fn json_of(output: &Output) -> Value {
    let said = || String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said()))
}

fn every_schema_is_listed_printed_and_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/schemas");
    let listed = weir(&["schema"], &root);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let page = fs::read_to_string(root.join("README.md")).unwrap();
    let mut files = 0;
    for entry in fs::read_dir(&root).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".json") else { continue };
        files += 1;
        assert!(
            listed.lines().any(|line| line.split_whitespace().next() == Some(name)),
            "{name} is not listed: {listed}"
        );
        assert!(page.contains(&format!("({name}.json)")), "the page does not name {name}");
        // A schema that refers to something that is not there cannot be compiled.
        schema::errors(name, &json!({}));
    }
    assert_eq!(listed.lines().count(), files);
    assert_eq!(weir(&["schema", "nothing"], &root).status.code(), Some(2));
}

/// Whether a schema says nothing about its value.
fn is_any(schema: &Value) -> bool {
    const SAYS: [&str; 8] = ["type", "$ref", "enum", "const", "anyOf", "allOf", "properties", "then"];
    *schema == json!(true)
        || schema.as_object().is_some_and(|members| !members.keys().any(|name| SAYS.contains(&name.as_str())))
}

/// The places below a schema at which any value is valid.
fn open_places(schema: &Value, way: &str, found: &mut Vec<String>) {
    let mut below = Vec::new();
    for (name, value) in schema.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("properties" | "$defs", Value::Object(members)) => {
                below.extend(members.iter().map(|(member, one)| (format!("{way}/{member}"), one)));
            }
            ("prefixItems" | "anyOf" | "allOf", Value::Array(list)) => {
                below.extend(list.iter().map(|one| (format!("{way}/{name}"), one)));
            }
            ("items" | "additionalProperties", one) => below.push((format!("{way}/{name}"), one)),
            _ => {}
        }
    }
    for (way, one) in below {
        if is_any(one) {
            found.push(way.clone());
        }
        open_places(one, &way, found);
    }
}

fn no_member_may_have_any_value() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/schemas");
    let mut found = Vec::new();
    for entry in fs::read_dir(&root).unwrap().flatten().filter(|entry| entry.path().extension().is_some()) {
        let text = fs::read_to_string(entry.path()).unwrap();
        let Ok(schema) = serde_json::from_str::<Value>(&text) else { continue };
        open_places(&schema, &entry.file_name().to_string_lossy(), &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
    let mut seen = Vec::new();
    let open = json!({"properties": {"a": {}, "b": {"items": {"description": "d"}}}, "additionalProperties": true});
    open_places(&open, "", &mut seen);
    assert_eq!(seen, ["/a", "/b", "/b/items", "/additionalProperties"]);
}

fn unknown_and_missing_members_are_refused() {
    let room = support::scratch("schemas-doctor");
    fs::write(room.join("n.conf"), "http { server { listen 80; location /a { alias /b/; } } }\n").unwrap();
    let report = json_of(&weir(&["doctor", "n.conf", "--no-host", "--json"], &room));
    schema::valid("doctor", &report);
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut report = report.clone();
        change(&mut report);
        schema::errors("doctor", &report).len()
    };
    assert!(changed(&|report| report["colour"] = json!("red")) > 0, "an unknown member of the report");
    assert!(changed(&|report| report["findings"][0]["colour"] = json!("red")) > 0, "an unknown member of a finding");
    assert!(
        changed(&|report| report["findings"][0]["region"]["colour"] = json!(1)) > 0,
        "an unknown member of a region"
    );
    assert!(changed(&|report| report["findings"][0]["level"] = json!("loud")) > 0, "an unknown level");
    assert!(changed(&|report| drop(report.as_object_mut().unwrap().remove("version"))) > 0, "no version");
    assert!(changed(&|report| report["version"] = json!(2)) > 0, "another version");
    let against = json_of(&weir(&["doctor", "n.conf", "--no-host", "--json", "--against", "n.conf"], &room));
    schema::valid("doctor", &against);
    let line = "2026/11/30 10:00:00 [error] 1#1: *1 connect() failed (111: Connection refused) while connecting to upstream, client: 1.2.3.4, server: _, request: \"GET / HTTP/1.1\", upstream: \"http://127.0.0.1:3000/\", host: \"shop\"\n";
    fs::write(room.join("error.log"), line.repeat(3)).unwrap();
    let asked = ["doctor", "502", "n.conf", "--no-host", "--json", "--error-log", "error.log"];
    let asked = json_of(&weir(&asked, &room));
    schema::valid("doctor", &asked);
    assert_eq!(asked["error_log"]["messages"][0]["count"], 3, "{asked}");
    fs::remove_dir_all(&room).unwrap();
}

/// A process that is killed at the end of the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn the_state_of_an_edge_has_its_shape() {
    let room = support::scratch("schemas-status");
    let [port, api, app] = [(); 3].map(|()| support::free_port());
    let conf = format!(
        "master_process off;\ndaemon off;\npid nginx.pid;\nerror_log error.log;\nworker_processes 1;\nevents {{ }}\nhttp {{\n    access_log off;\n    upstream app {{ zone app 64k; server 127.0.0.1:{app}; }}\n    server {{ listen 127.0.0.1:{port}; status_zone shop; location / {{ proxy_pass http://app; }} }}\n    server {{ listen 127.0.0.1:{api}; location /api {{ api; }} }}\n}}\n"
    );
    fs::write(room.join("e.conf"), conf).unwrap();
    let place = room.display().to_string();
    let mut edge = Command::new(WEIR);
    edge.args(["edge", "-p", &place, "-c", "e.conf", "-e", "error.log"]).current_dir(&room);
    let _edge = Killed(edge.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    support::within("the edge answers", || std::net::TcpStream::connect(("127.0.0.1", api)).is_ok());
    // A refused connection makes an error, and a request counts in its zone.
    weir(&["load", &format!("http://127.0.0.1:{port}/"), "-n", "5", "-c", "1", "-q"], &room);
    let url = format!("http://127.0.0.1:{api}/api");
    let state = json_of(&weir(&["status", &url, "--json"], &room));
    schema::valid("status", &state);
    assert!(state["http"]["server_zones"]["shop"].is_object(), "{state}");
    fs::remove_dir_all(&room).unwrap();
}

/// The example has a value in each optional member, and a running edge does not.
fn a_full_state_has_its_shape() {
    for (name, text) in
        [("status", Snapshot::example().to_json()), ("canary", serde_json::to_string(&Canary::default()).unwrap())]
    {
        let mut state: Value = serde_json::from_str(&text).unwrap();
        state["version"] = json!(1);
        schema::valid(name, &state);
    }
}

fn runs_of_the_lab_have_their_shape() {
    let room = support::scratch("schemas-lab");
    let [edge, app] = [(); 2].map(|()| support::free_port());
    for (name, more) in [("a.conf", ""), ("b.conf", "keepalive 8;")] {
        let conf = format!(
            "worker_processes 1;\nevents {{ }}\nhttp {{\n    access_log off;\n    upstream app {{ server 127.0.0.1:{app}; {more} }}\n    server {{ listen 127.0.0.1:{edge}; location / {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }}\n}}\n"
        );
        fs::write(room.join(name), conf).unwrap();
    }
    let tiny = ["--block", "500ms", "--warmup", "500ms", "--noisy", "--json"];
    let lab = |words: &[&str]| {
        let output = weir(&[&["lab"], words, &tiny[..]].concat(), &room);
        let run = json_of(&output);
        schema::valid("lab", &run);
        run
    };
    let ab = lab(&["ab", "a.conf", "b.conf", "/", "--rate", "100", "-c", "4", "--pairs", "1", "--metric", "p50"]);
    assert_eq!((&ab["kind"], &ab["version"]), (&json!("ab"), &json!(1)));
    let aa = lab(&["ab", "--aa", "a.conf", "/", "--rate", "100", "-c", "4", "--pairs", "1", "--metric", "p50"]);
    assert_eq!(aa["kind"], "aa");
    let why = lab(&["why", "a.conf", "/", "--rate", "200", "-c", "4"]);
    assert_eq!(why["kind"], "why");
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut run = why.clone();
        change(&mut run);
        schema::errors("lab", &run).len()
    };
    assert_eq!(changed(&|_| {}), 0);
    assert!(changed(&|run| run["environment"]["colour"] = json!("red")) > 0, "an unknown member of the environment");
    assert!(changed(&|run| run["tried"] = json!({"name": "helps"})) > 0, "a try without its sentence");
    assert!(changed(&|run| run["elasticities"] = json!([{"name": "CPU", "value": "1"}])) > 0, "a text as a figure");
    assert!(changed(&|run| run["verify"] = json!(["weir"])) > 0, "a list as a command");
    let again = json_of(&weir(&["lab", "report", ab["id"].as_str().unwrap(), "--json"], &room));
    schema::valid("lab", &again);
    assert_eq!(again, ab);
    fs::remove_dir_all(&room).unwrap();
}
