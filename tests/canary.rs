//! A canary from outside: two configurations that differ by one field, and the clients' own account of what they got.
// long: all cases share one kind of edge and one kind of client.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[path = "support/schema.rs"]
mod schema;
#[path = "canary/split.rs"]
mod split;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};

use needs::cases;
use serde_json::Value;
use split::*;
use support::within;

fn main() -> ExitCode {
    needs::run(cases![
        [] => the_counts_are_those_of_the_clients, a_cookie_chooses_for_each_request,
            an_argument_chooses_for_each_stream, sessions_of_stream_have_the_lane_of_their_address, sessions_that_fail_are_harm,
            gross_harm_is_rolled_back_before_ten_clients_are_harmed, a_promotion_keeps_connections_and_the_file_as_it_was_read,
            a_wrong_status_of_all_requests_is_harm, a_websocket_stays_where_it_is,
            an_origin_that_never_answers_is_found_while_clients_still_wait, a_reload_and_a_death_end_a_canary, what_cannot_be_beside_is_refused_by_name,
            the_api_steers_and_reads_no_path, a_rehearsal_gives_nobody_the_new_configuration, the_end_is_waited_for_and_told,
            a_reload_is_told_to_the_receiver_without_a_command_that_waits,
            traffic_without_an_answer_is_refused, the_edge_says_beforehand_how_many_clients_it_needs, a_share_that_grows_takes_no_client_away,
            a_share_of_the_clients_gets_the_other_servers_and_all_accounts_are_equal, sessions_get_the_other_servers_by_their_address,
            a_release_that_fails_or_is_slow_is_rolled_back, a_promotion_has_the_text_in_force_until_the_file_is_read_again,
            the_servers_keep_their_health_and_their_connections, an_upstream_with_a_zone_keeps_what_it_knows,
            upstreams_that_cannot_be_exchanged_are_refused_by_name, both_configurations_share_connections_of_http2;
    ])
}

/// A running edge, and a second configuration.
struct Edge {
    keeper: Child,
    port: u16,
    stream: u16,
    room: PathBuf,
}

/// These edges have few clients.
const AT_ONCE: &[&str] = &["--look", "1s", "--anyway"];

/// The server of `http`; `LANE` is the name of the configuration.
const SERVER: &str = "location / { add_header X-Lane LANE; return 200 LANE; }";

impl Edge {
    fn start(name: &str, top: &str, server: &str) -> Edge {
        Edge::with(name, |room, port, stream| text(room, port, stream, top, server, "old"))
    }

    /// An edge with the text that is made of a room and of ports for http and stream.
    fn with(name: &str, text: impl Fn(&Path, u16, u16) -> String) -> Edge {
        let room = support::scratch(&format!("canary-{name}"));
        let (port, stream) = (support::free_port(), support::free_port());
        fs::write(room.join("old.conf"), text(&room, port, stream)).unwrap();
        let mut edge = Edge { keeper: spawn(&room), port, stream, room };
        within("the edge serves", || {
            assert!(edge.keeper.try_wait().unwrap().is_none(), "{}", edge.log());
            edge.room.join("pid").exists() && TcpStream::connect(("127.0.0.1", edge.port)).is_ok()
        });
        edge
    }

    /// Writes a configuration of this name, and returns its path.
    fn write(&self, name: &str, top: &str, server: &str) -> PathBuf {
        let path = self.room.join(format!("{name}.conf"));
        fs::write(&path, text(&self.room, self.port, self.stream, top, server, name)).unwrap();
        path
    }

    /// `weir canary` with these words, for this edge.
    fn canary(&self, words: &[&str]) -> Output {
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        weir.arg("canary").args(words).arg("-c").arg(self.room.join("old.conf")).env("WEIR_LANG", "en");
        weir.output().unwrap()
    }

    /// The same, which succeeds with these words in its output.
    fn does(&self, words: &[&str], says: &str) {
        let output = self.canary(words);
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(says), "{words:?}: {said}\n{}", self.log());
    }

    fn begin(&self, file: &Path, more: &[&str]) {
        let file = file.to_str().unwrap();
        let at_once = if more.contains(&"--look") { &AT_ONCE[2..] } else { AT_ONCE };
        self.does(&[&[file], at_once, more].concat(), "of the clients");
        within("both workers have it", || self.state()["workers"] == 2);
    }

    fn state(&self) -> Value {
        let output = self.canary(&["status", "--json"]);
        let state = serde_json::from_slice(&output.stdout).unwrap_or_default();
        // Before the first canary there is no state.
        if state != Value::Null {
            schema::valid("canary", &state);
        }
        state
    }

    fn log(&self) -> String {
        fs::read_to_string(self.room.join("error.log")).unwrap_or_default()
    }

    fn client(&self, ip: &str) -> Client {
        let mut to = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        // A request is written in parts: the kernel must not wait with the second one.
        to.set_nodelay(true).unwrap();
        write!(to, "PROXY TCP4 {ip} 127.0.0.1 1 80\r\n").unwrap();
        Client { from: BufReader::new(to.try_clone().unwrap()), to }
    }
}

fn spawn(room: &Path) -> Child {
    let mut keeper = Command::new(env!("CARGO_BIN_EXE_weir"));
    keeper.args(["edge", "-e"]).arg(room.join("error.log")).arg("-c").arg(room.join("old.conf"));
    keeper.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn text(room: &Path, port: u16, stream: u16, top: &str, server: &str, name: &str) -> String {
    let room = room.display();
    let server = server.replace("LANE", name);
    format!(
        "daemon off; worker_processes 2; pid {room}/pid; error_log {room}/error.log notice; dashboard off; {top}
         events {{ }}
         stream {{ server {{ listen 127.0.0.1:{stream}; return {name}; }} }}
         http {{ access_log off; server {{ listen 127.0.0.1:{port} proxy_protocol; http2 on; {server} }} }}\n"
    )
}

impl Drop for Edge {
    fn drop(&mut self) {
        Command::new("kill").arg(self.keeper.id().to_string()).status().unwrap();
        self.keeper.wait().unwrap();
        if !std::thread::panicking() {
            fs::remove_dir_all(&self.room).unwrap();
        }
    }
}

/// A client with a connection.
struct Client {
    to: TcpStream,
    from: BufReader<TcpStream>,
}

impl Client {
    /// The status and the body of the next request; `None` if the connection is closed.
    fn get(&mut self, fields: &str) -> Option<(u16, String)> {
        self.ask("/", fields)
    }

    /// The same, of this target.
    fn ask(&mut self, target: &str, fields: &str) -> Option<(u16, String)> {
        write!(self.to, "GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").ok()?;
        let (mut line, mut status, mut length) = (String::new(), 0, 0);
        loop {
            line.clear();
            if self.from.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let lower = line.trim().to_ascii_lowercase();
            if let Some(rest) = lower.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().unwrap();
            } else if let Some(rest) = lower.strip_prefix("content-length: ") {
                length = rest.parse().unwrap();
            } else if lower.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body).ok()?;
        Some((status, String::from_utf8(body).unwrap()))
    }
}

fn ip(number: usize) -> String {
    format!("10.0.{}.{}", number / 250, number % 250 + 1)
}

fn the_counts_are_those_of_the_clients() {
    const CLIENTS: usize = 120;
    let edge = Edge::start("counts", "", SERVER);
    edge.begin(&edge.write("new", "", SERVER), &["--share", "30%"]);
    let mut own: HashMap<String, (u64, u64)> = HashMap::new();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|number| edge.client(&ip(number))).collect();
    let mut lanes = vec![String::new(); CLIENTS];
    for round in 0..5 {
        for (client, lane) in clients.iter_mut().zip(&mut lanes) {
            let (status, body) = client.get("").unwrap();
            assert_eq!(status, 200);
            assert!(round == 0 || *lane == body, "a client changes its lane: {lane} {body}");
            *lane = body;
            own.entry(lane.clone()).or_default().1 += 1;
        }
    }
    lanes.into_iter().for_each(|lane| own.entry(lane).or_default().0 += 1);
    let counted = |state: &Value, lane: &str| {
        let of = |name| state[lane][name].as_u64().unwrap_or(0);
        (of("clients"), of("requests"))
    };
    // The windows close when the clients have sent nothing for 10 s.
    within("all clients are counted", || counted(&edge.state(), "old").0 + counted(&edge.state(), "new").0 == 120);
    let state = edge.state();
    assert_eq!((counted(&state, "old"), counted(&state, "new")), (own["old"], own["new"]));
    assert!((10..=65).contains(&own["new"].0), "{own:?}");
    assert_eq!(state["clients_skipped"], 0);
    let number = |name: &str| state[name].as_f64().unwrap();
    assert!(number("evidence") < number("evidence_limit"), "{state}");
}

/// The cookies `sid=0` to `sid=39` by the lane that they get on one connection.
fn by_cookie(client: &mut Client) -> Vec<String> {
    (0..40).map(|number| client.get(&format!("Cookie: sid={number}\r\n")).unwrap().1).collect()
}

fn a_cookie_chooses_for_each_request() {
    let edge = Edge::start("cookie", "", SERVER);
    edge.begin(&edge.write("new", "", SERVER), &["--share", "50%", "--key", "cookie:sid"]);
    let first = by_cookie(&mut edge.client("10.0.0.1"));
    let second = by_cookie(&mut edge.client("10.0.0.2"));
    assert_eq!(first, second, "the cookie alone decides");
    let count = first.iter().filter(|lane| *lane == "new").count();
    assert!((6..=34).contains(&count), "{count}");
    assert_eq!(edge.client("10.0.0.1").get("").unwrap().1, "old", "a client without the key");
    within("requests without the key are counted", || edge.state()["requests_without_key"] == 1);
}

fn an_argument_chooses_for_each_stream() {
    let room = support::scratch("canary-certificate");
    let (certificate, key) = support::certificate(&room);
    let port = support::free_port();
    let server = format!(
        "listen 127.0.0.1:{port} ssl; ssl_certificate {}; ssl_certificate_key {}; {SERVER}",
        certificate.display(),
        key.display()
    );
    let edge = Edge::start("streams", "", &server);
    edge.begin(&edge.write("new", "", &server), &["--share", "50%", "--key", "$arg_sid"]);
    // One connection for all of them.
    let lanes = |flag: &str| -> Vec<String> {
        let url = format!("https://127.0.0.1:{port}/?sid=[10-29]");
        let output = Command::new("curl").args(["-sk", flag, "-w", "\n", &url]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    let (http1, http2) = (lanes("--http1.1"), lanes("--http2"));
    assert_eq!((http1.len(), &http1), (20, &http2));
    assert!(http1.contains(&"new".to_owned()) && http1.contains(&"old".to_owned()), "{http1:?}");
    fs::remove_dir_all(&room).unwrap();
}

fn sessions_of_stream_have_the_lane_of_their_address() {
    let edge = Edge::start("sessions", "", SERVER);
    edge.begin(&edge.write("new", "", SERVER), &["--share", "50%"]);
    let lane = |number: usize| {
        let from = format!("127.0.0.{number}");
        let url = format!("http://127.0.0.1:{}/", edge.stream);
        let output = Command::new("curl").args(["-s", "--http0.9", "--interface", &from, &url]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let first: Vec<String> = (2..26).map(lane).collect();
    assert!(first.iter().all(|lane| lane == "new" || lane == "old"), "{first:?}");
    assert!(first.contains(&"new".to_owned()) && first.contains(&"old".to_owned()), "{first:?}");
    assert_eq!((2..26).map(lane).collect::<Vec<_>>(), first);
}

fn sessions_that_fail_are_harm() {
    let old = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = old.local_addr().unwrap().port();
    std::thread::spawn(move || old.incoming().for_each(|stream| drop(stream.unwrap().write_all(b"old"))));
    let edge = Edge::start("fails", "", SERVER);
    let text = fs::read_to_string(edge.room.join("old.conf")).unwrap();
    let stream = |port: u16, name: &str| {
        let path = edge.room.join(format!("{name}.conf"));
        fs::write(&path, text.replace("return old;", &format!("proxy_pass 127.0.0.1:{port};"))).unwrap();
        path
    };
    stream(port, "old");
    Command::new("kill").args(["-HUP", &edge.keeper.id().to_string()]).status().unwrap();
    let ask = |number: usize| {
        let (from, url) = (format!("127.0.1.{}", number % 250 + 1), format!("http://127.0.0.1:{}/", edge.stream));
        let output = Command::new("curl").args(["-s", "--http0.9", "--interface", &from, &url]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    within("the reload", || ask(0) == "old");
    // Nobody listens there.
    edge.begin(&stream(support::free_port(), "new"), &["--share", "50%"]);
    let mut number = 0;
    within("the canary is rolled back", || {
        number += 1;
        ask(number);
        edge.state()["phase"] == "rolled_back"
    });
    assert_eq!((&edge.state()["reason"], &edge.state()["harm"]), (&Value::from("harm"), &Value::from("errors")));
    assert!((0..30).all(|number| ask(number) == "old"));
}

fn gross_harm_is_rolled_back_before_ten_clients_are_harmed() {
    let edge = Edge::start("harm", "", SERVER);
    let bad = edge.write("new", "", "location / { return 503 LANE; }");
    edge.begin(&bad, &["--share", "20%"]);
    let mut harmed = 0;
    let mut number = 0;
    within("the canary is rolled back", || {
        for _ in 0..10 {
            number += 1;
            harmed += usize::from(edge.client(&ip(number)).get("").is_some_and(|(status, _)| status == 503));
        }
        edge.state()["phase"] == "rolled_back"
    });
    let state = edge.state();
    assert_eq!((&state["reason"], &state["harm"]), (&Value::from("harm"), &Value::from("errors")));
    assert!(harmed <= 10, "{harmed} clients were harmed");
    // A client whose request was under way at the decision is not counted.
    assert!((4..=harmed).contains(&(state["new"]["clients"].as_u64().unwrap() as usize)), "{harmed} {state}");
    assert_eq!(edge.canary(&["status"]).status.code(), Some(1));
    assert!(edge.log().contains("chance shows as much in 1 of"), "{}", edge.log());
    (0..100).for_each(|number| assert_eq!(edge.client(&ip(number)).get("").unwrap().0, 200));
}

fn a_wrong_status_of_all_requests_is_harm() {
    let edge = Edge::start("refuses", "", SERVER);
    edge.begin(&edge.write("new", "", "location / { return 404; }"), &["--share", "30%"]);
    for number in 0..200 {
        let mut client = edge.client(&ip(number));
        (0..3).for_each(|_| assert!(client.get("").is_some()));
    }
    // The windows close when the clients have sent nothing for 10 s.
    within("the canary is rolled back", || edge.state()["phase"] == "rolled_back");
    assert_eq!(edge.state()["harm"], "refused");
    edge.does(&["status"], "got a status from 400 to 499");
}

fn a_promotion_keeps_connections_and_the_file_as_it_was_read() {
    let edge = Edge::start("promote", "", SERVER);
    let new = edge.write("new", "", SERVER);
    edge.begin(&new, &["--share", "10%"]);
    let mut clients: Vec<Client> = (0..50).map(|number| edge.client(&ip(number))).collect();
    let mut new_lanes = || clients.iter_mut().filter_map(|client| client.get("")).filter(|got| got.1 == "new").count();
    let found = new_lanes();
    assert!(found < 25, "{found}");
    // Nobody has judged what the file says now.
    fs::write(&new, "broken").unwrap();
    edge.does(&["promote"], "was promoted: somebody asked for it");
    // Each worker takes a configuration when it has time.
    within("the promotion", || new_lanes() == 50);
    edge.does(&["status"], "still has the old configuration, which the next reload reads");
    edge.does(&["rollback"], "no canary runs");
    Command::new("kill").args(["-HUP", &edge.keeper.id().to_string()]).status().unwrap();
    within("the reload", || new_lanes() == 0);
}

/// An origin that answers each connection once, by the configuration that its request names in `X-Lane`. The result is its port.
fn origin(answers: fn(&str, &mut BufReader<TcpStream>, &mut TcpStream)) -> u16 {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = origin.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in origin.incoming() {
            let mut to = stream.unwrap();
            std::thread::spawn(move || {
                let mut from = BufReader::new(to.try_clone().unwrap());
                let (mut line, mut lane) = (String::new(), String::new());
                while line != "\r\n" {
                    line.clear();
                    if from.read_line(&mut line).unwrap_or(0) == 0 {
                        return;
                    }
                    if let Some(name) = line.strip_prefix("X-Lane: ") {
                        lane = name.trim().to_owned();
                    }
                }
                answers(&lane, &mut from, &mut to);
            });
        }
    });
    port
}

fn an_origin_that_never_answers_is_found_while_clients_still_wait() {
    let port = origin(|lane, from, to| {
        if lane == "new" {
            let _ = from.read(&mut [0]);
        }
        let _ = write!(to, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
    let server = format!(
        "location / {{ proxy_pass http://127.0.0.1:{port}; proxy_read_timeout 1h; proxy_set_header X-Lane LANE; }}"
    );
    let edge = &Edge::start("hang", "", &server);
    let new = edge.write("new", "", &server);
    std::thread::scope(|scope| {
        let terms = ["--share", "50%", "--look", "8s", "--key", "$http_user"];
        let begun = scope.spawn(move || edge.begin(&new, &terms));
        within("the look", || edge.state()["phase"] == "looking" && edge.state()["workers"] == 2);
        let mut client = edge.client("10.0.0.1");
        (0..250).for_each(|number| assert_eq!(client.get(&format!("User: {number}\r\n")).unwrap().0, 200));
        begun.join().unwrap();
    });
    let mut clients: Vec<Client> = (0..200).map(|_| edge.client("10.0.0.1")).collect();
    for (client, number) in clients.iter_mut().zip(1000..) {
        write!(client.to, "GET / HTTP/1.1\r\nHost: a\r\nUser: {number}\r\n\r\n").unwrap();
    }
    within("the canary is rolled back", || edge.state()["phase"] == "rolled_back");
    let state = edge.state();
    assert_eq!(state["reason"], "harm");
    assert!(["slower", "p50", "p95", "p99"].iter().any(|name| state["harm"] == *name), "{state}");
}

fn a_websocket_stays_where_it_is() {
    let port = origin(|lane, from, to| {
        write!(to, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n").unwrap();
        let mut byte = [0];
        while from.read_exact(&mut byte).is_ok() {
            to.write_all(lane.as_bytes()).unwrap();
        }
    });
    let server = format!(
        "location / {{ proxy_pass http://127.0.0.1:{port}; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; \
         proxy_set_header Connection upgrade; proxy_set_header X-Lane LANE; }}"
    );
    let edge = Edge::start("websocket", "", &server);
    edge.begin(&edge.write("new", "", &server), &["--share", "50%"]);
    let mut sockets: Vec<Client> = (0..24)
        .map(|number| {
            let mut client = edge.client(&ip(number));
            assert_eq!(client.get("Connection: Upgrade\r\nUpgrade: x\r\n").unwrap().0, 101);
            client
        })
        .collect();
    let mut echo = || -> Vec<String> {
        let one = |client: &mut Client| {
            client.to.write_all(b"x").unwrap();
            let mut lane = [0; 3];
            client.from.read_exact(&mut lane).unwrap();
            String::from_utf8(lane.to_vec()).unwrap()
        };
        sockets.iter_mut().map(one).collect()
    };
    let first = echo();
    assert!(first.contains(&"new".to_owned()) && first.contains(&"old".to_owned()), "{first:?}");
    edge.does(&["rollback"], "was rolled back: somebody asked for it");
    assert_eq!(echo(), first);
    Command::new("kill").args(["-HUP", &edge.keeper.id().to_string()]).status().unwrap();
    within("the reload", || edge.log().contains("reconfiguring"));
    assert_eq!(echo(), first);
}

fn a_reload_and_a_death_end_a_canary() {
    let edge = Edge::start("ends", "", SERVER);
    let new = edge.write("new", "", SERVER);
    let all_old = || (0..30).all(|number| edge.client(&ip(number)).get("").is_some_and(|got| got.1 == "old"));
    edge.begin(&new, &["--share", "99%"]);
    within("clients have the new configuration", || !all_old());
    Command::new("kill").args(["-HUP", &edge.keeper.id().to_string()]).status().unwrap();
    within("the reload ends it", || edge.state()["reason"] == "reload");
    assert!(all_old());
    edge.begin(&new, &["--share", "99%"]);
    within("clients have the new configuration", || !all_old());
    let children = format!("/proc/{0}/task/{0}/children", edge.keeper.id());
    let server = fs::read_to_string(children).unwrap();
    Command::new("kill").args(["-KILL", server.trim()]).status().unwrap();
    within("the death ends it", || edge.state()["reason"] == "died");
    within("another server serves", || TcpStream::connect(("127.0.0.1", edge.port)).is_ok() && all_old());
    within("the log says so", || edge.log().contains("was rolled back: the server ended"));
    edge.begin(&new, &["--share", "99%", "--for", "1s"]);
    within("its time ends", || edge.state()["phase"] == "undecided");
    assert_eq!(edge.canary(&["status"]).status.code(), Some(2));
    assert!(all_old());
}

fn what_cannot_be_beside_is_refused_by_name() {
    let edge = Edge::start("refused", "", SERVER);
    let refused = |top: &str, server: &str, says: &str| {
        let file = edge.write("new", top, server);
        let output = edge.canary(&[file.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(says), "{said}");
    };
    refused("", &format!("listen 127.0.0.1:{}; {SERVER}", support::free_port()), "is not among them");
    refused("worker_processes 3;", SERVER, "\"worker_processes\" directive is duplicate");
    refused("", "location / { retrun 200; }", "unknown directive \"retrun\"");
    refused(
        "",
        "proxy_cache off; location / { proxy_store /nowhere/x; proxy_pass http://127.0.0.1:1; }",
        "may not write",
    );
    assert_eq!(edge.canary(&["status"]).status.code(), Some(1));
    edge.begin(&edge.write("new", "", SERVER), &[]);
    refused("", SERVER, "another canary runs");
    edge.does(&["rollback"], "was rolled back");
}

fn the_api_steers_and_reads_no_path() {
    // Only a direct client of this machine may write.
    let port = support::free_port();
    let server =
        format!("listen 127.0.0.1:{port}; {SERVER} location /api/ {{ api write=on; allow 127.0.0.1; deny all; }}");
    let edge = Edge::start("api", "", &server);
    let call = |method: &str, body: &str| {
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let length = body.len();
        let head = format!(
            "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close"
        );
        write!(client, "{method} /api/weir/canary HTTP/1.1\r\n{head}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse::<u16>().unwrap(), serde_json::from_str::<Value>(body).unwrap_or_default())
    };
    assert_eq!(call("GET", ""), (200, serde_json::json!({ "canary": null })));
    assert_eq!(call("POST", r#"{"roll_back":true}"#).0, 404);
    edge.begin(&edge.write("new", "", &server), &["--share", "10%"]);
    assert_eq!(call("POST", r#"{"file":"/etc/passwd"}"#).0, 400);
    assert_eq!(call("PATCH", r#"{"share":2}"#).0, 409);
    assert_eq!(call("PATCH", r#"{"share":0.99}"#).0, 200);
    let new_lanes = || (0..30).filter(|number| edge.client(&ip(*number)).get("").unwrap().1 == "new").count();
    within("the share of 99 %", || new_lanes() > 25);
    let (status, value) = call("POST", r#"{"promote":true}"#);
    assert_eq!((status, &value["canary"]["phase"]), (200, &Value::from("promoting")));
    within("the promotion", || call("GET", "").1["canary"]["phase"] == "promoted");
    within("all have it", || new_lanes() == 30);
}

fn both_configurations_share_connections_of_http2() {
    // The origin answers with the number of the connection.
    let port = support::free_port();
    let origin =
        Edge::start("h2-origin", "", &format!("listen 127.0.0.1:{port}; location / {{ return 200 $connection; }}"));
    let server = format!("location / {{ proxy_pass http://127.0.0.1:{port}; proxy_http_version 2; }}");
    let edge = Edge::start("h2", "", &server);
    let connections =
        || -> BTreeSet<String> { (0..30).map(|number| edge.client(&ip(number)).get("").unwrap().1).collect() };
    let before = connections();
    edge.begin(&edge.write("new", "", &server), &["--share", "99%"]);
    let after = connections();
    assert!(after.is_subset(&before), "{before:?} {after:?}\n{}", origin.log());
}

fn a_rehearsal_gives_nobody_the_new_configuration() {
    let edge = Edge::start("rehearsal", "", SERVER);
    let new = edge.write("new", "", SERVER);
    let file = new.to_str().unwrap();
    edge.does(
        &[&[file, "--share", "99%", "--aa", "2s"], AT_ONCE].concat(),
        "a rehearsal with the old configuration alone",
    );
    assert!((0..30).all(|number| edge.client(&ip(number)).get("").unwrap().1 == "old"));
    within("the canary", || edge.state()["phase"] == "running");
    within("workers have it", || {
        edge.client("10.9.9.9").get("").is_some()
            && (0..30).any(|number| edge.client(&ip(number)).get("").unwrap().1 == "new")
    });
    edge.does(&["rollback"], "was rolled back");
    edge.does(&[file, "--share", "99%", "--aa", "1h"], "a rehearsal");
    edge.does(&["rollback"], "was rolled back");
    assert!((0..30).all(|number| edge.client(&ip(number)).get("").unwrap().1 == "old"));
}

fn the_end_is_waited_for_and_told() {
    let edge = Edge::start("wait", "", SERVER);
    let bad = edge.write("new", "", "location / { return 503; }");
    let (url, told) = receiver(2);
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.arg("canary").arg(&bad).args(["--share", "50%", "--wait", "--json", "--notify", &url]).args(AT_ONCE);
    let waits = weir.arg("-c").arg(edge.room.join("old.conf")).stdout(Stdio::piped()).spawn().unwrap();
    let mut number = 0;
    within("the decision", || {
        number += 1;
        edge.client(&ip(number)).get("");
        edge.state()["phase"] == "rolled_back"
    });
    let output = waits.wait_with_output().unwrap();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &printed["reason"]), (Some(1), &Value::from("harm")));
    let told = told.join().unwrap();
    assert_eq!((&told[0]["phase"], &told[1]["phase"]), (&Value::from("running"), &Value::from("rolled_back")));
    assert_eq!(told[1]["sentence"], printed["sentence"]);
}

/// A receiver of so many decisions, which it gives back.
fn receiver(count: usize) -> (String, std::thread::JoinHandle<Vec<Value>>) {
    let receiver = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://user:secret@{}/hook", receiver.local_addr().unwrap());
    let one = move || {
        let (mut to, _) = receiver.accept().unwrap();
        let (mut from, mut line, mut length) = (BufReader::new(to.try_clone().unwrap()), String::new(), 0);
        while line != "\r\n" {
            line.clear();
            from.read_line(&mut line).unwrap();
            if let Some(rest) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = rest.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body).unwrap();
        write!(to, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").unwrap();
        serde_json::from_slice::<Value>(&body).unwrap()
    };
    (url, std::thread::spawn(move || (0..count).map(|_| one()).collect()))
}

fn a_reload_is_told_to_the_receiver_without_a_command_that_waits() {
    let edge = Edge::start("news", "", SERVER);
    let (url, told) = receiver(2);
    edge.begin(&edge.write("new", "", SERVER), &["--notify", &url]);
    Command::new("kill").args(["-HUP", &edge.keeper.id().to_string()]).status().unwrap();
    let told = told.join().unwrap();
    assert_eq!((&told[0]["phase"], &told[1]["reason"]), (&Value::from("running"), &Value::from("reload")));
    assert!(!told[1].to_string().contains("secret") && !edge.log().contains("secret"));
    let refused = edge.canary(&[edge.room.join("new.conf").to_str().unwrap(), "--notify", "file:///etc/passwd"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no URL"));
}

fn traffic_without_an_answer_is_refused() {
    let edge = Edge::start("unanswered", "", SERVER);
    let new = edge.write("new", "", SERVER);
    let refused = |more: &[&str], says: &str, traffic: &mut dyn FnMut()| {
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        weir.arg("canary").arg(&new).args(["--share", "99%", "--look", "6s", "-c"]).arg(edge.room.join("old.conf"));
        let waits = weir.args(more).env("WEIR_LANG", "en").stdout(Stdio::piped()).spawn().unwrap();
        within("the look", || edge.state()["phase"] == "looking" && edge.state()["workers"] == 2);
        traffic();
        let output = waits.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("did not begin: ") && said.contains(says), "{said}");
        assert_eq!((output.status.code(), &edge.state()["phase"]), (Some(2), &Value::from("undecided")));
        assert!((0..30).all(|number| edge.client(&ip(number)).get("").unwrap().1 == "old"));
    };
    refused(&[], "about 0 clients are expected within 31 d, and an answer needs 200", &mut || ());
    let mut one = edge.client("10.0.0.1");
    let mut many = || (0..150).for_each(|_| assert!(one.get("").is_some()));
    refused(&[], "one client sends 100.0 % of the requests", &mut many);
    refused(&["--key", "cookie:sid"], "100.0 % of the requests have no cookie:sid", &mut many);
    let mut some = || (0..9).for_each(|number| assert!(edge.client(&ip(number)).get("").is_some()));
    refused(&["--for", "2s"], "clients are expected within 2 s", &mut some);
}

fn the_edge_says_beforehand_how_many_clients_it_needs() {
    let edge = Edge::start("announced", "", SERVER);
    let new = edge.write("new", "", SERVER);
    let file = new.to_str().unwrap();
    std::thread::scope(|scope| {
        let begun = scope.spawn(|| edge.canary(&[file, "--share", "50%", "--key", "$http_user", "--look", "4s"]));
        within("the look", || edge.state()["phase"] == "looking" && edge.state()["workers"] == 2);
        let mut client = edge.client("10.0.0.1");
        (0..240).for_each(|number| assert!(client.get(&format!("User: {}\r\n", number % 80)).is_some()));
        let output = begun.join().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.code() == Some(0) && said.contains("8 of 10 such canaries are decided within"), "{said}");
    });
    let state = edge.state();
    assert_eq!((&state["look"]["clients"], &state["look"]["requests"]), (&Value::from(80), &Value::from(240)));
    let needs = state["look"]["needs"].as_array().unwrap();
    assert_eq!(
        needs.iter().map(|need| need["question"].as_str().unwrap()).collect::<Vec<_>>(),
        ["no_harm", "failures", "10_percent_slower", "30_percent_slower"]
    );
    assert!(needs[1]["clients"].as_u64().is_some_and(|clients| clients > 100), "{state}");
    assert!(edge.log().contains("8 of 10 such canaries are decided within"), "{}", edge.log());
    edge.does(&["rollback"], "was rolled back");
}

fn a_share_that_grows_takes_no_client_away() {
    let edge = Edge::start("grows", "", SERVER);
    edge.begin(&edge.write("new", "", SERVER), &["--share", "10%,50%", "--pause", "1s"]);
    let mut clients: Vec<Client> = (0..100).map(|number| edge.client(&ip(number))).collect();
    let mut lanes = || -> Vec<bool> { clients.iter_mut().map(|client| client.get("").unwrap().1 == "new").collect() };
    let first = lanes();
    within("the next share", || edge.state()["share"].as_f64().unwrap() > 0.4);
    let (count, mut second) = (|all: &[bool]| all.iter().filter(|one| **one).count(), Vec::new());
    within("half of the clients have it", || {
        second = lanes();
        count(&second) > 30
    });
    assert!(first.iter().zip(&second).all(|(before, after)| !before || *after));
    assert!(count(&first) < 25, "{}", count(&first));
    edge.does(&["share", "5%"], "5.0 % of the clients");
    assert!(count(&lanes()) <= count(&first));
}
