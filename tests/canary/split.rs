//! A canary of the origins: the same configuration with the names of two upstreams exchanged, and the origins' own account.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::support::within;
use super::{AT_ONCE, Client, Edge, ip};

/// An application that answers with its name.
struct Origin {
    address: String,
    status: AtomicUsize,
    delay_ms: AtomicU64,
    requests: AtomicUsize,
    connections: AtomicUsize,
}

impl Origin {
    fn start(name: &'static str) -> Arc<Origin> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = Arc::new(Origin {
            address: listener.local_addr().unwrap().to_string(),
            status: AtomicUsize::new(200),
            delay_ms: AtomicU64::new(0),
            requests: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
        });
        let own = origin.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, own) = (stream.unwrap(), own.clone());
                own.connections.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || own.answer(stream, name));
            }
        });
        origin
    }

    fn answer(&self, mut to: TcpStream, name: &str) {
        let mut from = BufReader::new(to.try_clone().unwrap());
        let mut line = String::new();
        while from.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            if line == "\r\n" {
                self.requests.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(self.delay_ms.load(Ordering::SeqCst)));
                let status = self.status.load(Ordering::SeqCst);
                if status == 0 {
                    return; // without an answer
                }
                let length = name.len();
                if write!(to, "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{name}").is_err() {
                    return;
                }
            }
            line.clear();
        }
    }

    fn seen(&self) -> (usize, usize) {
        (self.connections.load(Ordering::SeqCst), self.requests.load(Ordering::SeqCst))
    }
}

/// The servers of `app`, then those of `app_next`.
fn upstreams(old: &str, new: &str) -> String {
    format!("upstream app {{\n {old} }}\nupstream app_next {{\n {new} }}\n")
}

fn server(origin: &Origin) -> String {
    format!("server {};", origin.address)
}

/// An edge that names `app` everywhere, but for `/next`, with these upstreams in a file of their own.
fn start(name: &str, upstreams: &str) -> Edge {
    Edge::with(name, |room, port, stream| {
        fs::write(room.join("upstreams"), upstreams).unwrap();
        let room = room.display();
        format!(
            "daemon off; worker_processes 2; pid {room}/pid; error_log {room}/error.log notice; dashboard off; events {{ }}
             stream {{ include {room}/upstreams; server {{ listen 127.0.0.1:{stream}; proxy_pass app; }} }}
             http {{ access_log off; include {room}/upstreams; proxy_http_version 1.1; proxy_set_header Connection '';
               server {{ listen 127.0.0.1:{port} proxy_protocol; location / {{ proxy_pass http://app; }}
                 location /next {{ proxy_pass http://app_next; }} }} }}\n"
        )
    })
}

fn begin(edge: &Edge, more: &[&str]) {
    edge.does(&[&["--split", "app=app_next"], AT_ONCE, more].concat(), "app=app_next has");
    within("both workers have it", || edge.state()["workers"] == 2);
}

fn signal(edge: &Edge, name: &str, pid: &str) {
    assert!(Command::new("kill").args([name, pid]).status().unwrap().success(), "{}", edge.log());
}

/// How many of 30 clients get the new origin, each by a connection of its own.
fn new_clients(edge: &Edge) -> usize {
    let get = |number| edge.client(&ip(number)).get("").is_some_and(|(status, body)| (status, &*body) == (200, "new"));
    (0..30).filter(|number| get(*number)).count()
}

pub fn a_share_of_the_clients_gets_the_other_servers_and_all_accounts_are_equal() {
    const CLIENTS: usize = 120;
    let (old, new) = (Origin::start("old"), Origin::start("new"));
    let edge = start("split", &upstreams(&server(&old), &server(&new)));
    assert_eq!(new_clients(&edge), 0);
    let before = old.seen().1;
    begin(&edge, &["--share", "30%"]);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|number| edge.client(&ip(number))).collect();
    let round = |clients: &mut Vec<Client>| -> Vec<String> {
        let get = |client: &mut Client| client.get("").filter(|got| got.0 == 200).unwrap().1;
        clients.iter_mut().map(get).collect()
    };
    let lanes = round(&mut clients);
    (0..4).for_each(|_| assert_eq!(round(&mut clients), lanes, "a client stays with its servers"));
    let of = |name: &str| lanes.iter().filter(|lane| *lane == name).count();
    assert!((10..=65).contains(&of("new")), "{lanes:?}");
    assert_eq!((old.seen().1 - before, new.seen().1), (of("old") * 5, of("new") * 5));
    within("all clients are counted", || {
        let state = edge.state();
        let counted = |lane: &str| (state[lane]["clients"].as_u64(), state[lane]["requests"].as_u64());
        let own = |name: &str| (Some(of(name) as u64), Some(of(name) as u64 * 5));
        counted("old") == own("old") && counted("new") == own("new")
    });
    edge.does(&["rollback"], "app=app_next was rolled back: somebody asked for it");
    within("all have the old one", || new_clients(&edge) == 0);
}

pub fn sessions_get_the_other_servers_by_their_address() {
    let (old, new) = (Origin::start("old"), Origin::start("new"));
    let edge = start("split-sessions", &upstreams(&server(&old), &server(&new)));
    begin(&edge, &["--share", "50%"]);
    let url = format!("http://127.0.0.1:{}/", edge.stream);
    let get = |number: usize| {
        let from = format!("127.0.0.{number}");
        String::from_utf8(Command::new("curl").args(["-s", "--interface", &from, &url]).output().unwrap().stdout)
            .unwrap()
    };
    let first: Vec<String> = (2..26).map(get).collect();
    assert!(first.contains(&"new".to_owned()) && first.contains(&"old".to_owned()), "{first:?}");
    assert_eq!((2..26).map(get).collect::<Vec<_>>(), first);
}

pub fn a_release_that_fails_or_is_slow_is_rolled_back() {
    let (old, new) = (Origin::start("old"), Origin::start("new"));
    let edge = start("split-harm", &upstreams(&server(&old), &server(&new)));
    new.status.store(500, Ordering::SeqCst);
    begin(&edge, &["--share", "20%"]);
    let (mut harmed, mut number) = (0, 0);
    within("the failing one is rolled back", || {
        for _ in 0..10 {
            number += 1;
            harmed += usize::from(edge.client(&ip(number)).get("").unwrap().0 == 500);
        }
        edge.state()["phase"] == "rolled_back"
    });
    assert_eq!((&edge.state()["harm"], new.seen().1), (&Value::from("errors"), harmed));
    assert!(harmed <= 10, "{harmed} clients were harmed");
    (0..100).for_each(|number| assert_eq!(edge.client(&ip(number)).get("").unwrap().1, "old"));
    new.status.store(200, Ordering::SeqCst);
    new.delay_ms.store(20, Ordering::SeqCst);
    begin(&edge, &["--share", "50%"]);
    let each = |number| {
        let mut client = edge.client(&ip(number));
        (0..5).for_each(|_| drop(client.get("").unwrap()));
    };
    (0..120).for_each(each);
    // The windows close when the clients have sent nothing for 10 s. The next clients are compared with these latencies.
    within("the old latencies are known", || edge.state()["old"]["requests"].as_u64().unwrap() > 200);
    (120..240).for_each(each);
    within("the slow one is rolled back", || edge.state()["phase"] == "rolled_back");
    let harm = edge.state()["harm"].clone();
    assert!(["slower", "p50", "p95", "p99"].iter().any(|name| harm == *name), "{harm}");
    assert_eq!(new_clients(&edge), 0);
}

/// The text in force is another one than that of the file: the canary and everything after it have the text in force.
pub fn a_promotion_has_the_text_in_force_until_the_file_is_read_again() {
    let (old, new) = (Origin::start("old"), Origin::start("new"));
    let text = upstreams(&server(&old), &server(&new));
    let edge = start("split-promotion", &text);
    let path = edge.room.join("upstreams");
    let mut kept: Vec<Client> = (0..20).map(|number| edge.client(&ip(number))).collect();
    let mut all = |name: &str| kept.iter_mut().all(|client| client.get("").unwrap().1 == name);
    assert!(all("old"));
    fs::write(&path, upstreams(&server(&new), &server(&old))).unwrap();
    begin(&edge, &["--share", "10%"]);
    fs::write(&path, &text).unwrap();
    let path = path.display();
    let places = format!("exchange the names \"app\" and \"app_next\" in {path}:1, {path}:3");
    edge.does(&["promote"], "app=app_next was promoted: somebody asked for it");
    within("the promotion", || all("new"));
    edge.does(&["status"], &places);
    assert_eq!(edge.state()["file"], "app=app_next");
    let direct = |target: &str| edge.client(&ip(1)).ask(target, "").unwrap().1;
    assert_eq!((direct("/"), direct("/next")), ("new".to_owned(), "old".to_owned()));

    // A server that takes the place of one that died has the promoted text.
    let children = format!("/proc/{0}/task/{0}/children", edge.keeper.id());
    signal(&edge, "-KILL", fs::read_to_string(&children).unwrap().trim());
    within("another server serves", || {
        TcpStream::connect(("127.0.0.1", edge.port)).is_ok() && new_clients(&edge) == 30
    });

    // The same canary again leads back: the names are exchanged in the text in force.
    begin(&edge, &["--share", "99%"]);
    within("most clients have the old one again", || new_clients(&edge) < 10);
    edge.does(&["rollback"], "was rolled back");
    within("the promoted text", || new_clients(&edge) == 30);
    begin(&edge, &["--share", "99%"]);
    signal(&edge, "-HUP", &edge.keeper.id().to_string());
    within("the reload ends it", || edge.state()["reason"] == "reload");
    within("the text of the file", || new_clients(&edge) == 0);
}

/// The health and the idle connections of a server belong to the server, whatever its upstream is called.
pub fn the_servers_keep_their_health_and_their_connections() {
    let (old, new, dead) = (Origin::start("old"), Origin::start("new"), Origin::start("dead"));
    let late = Origin::start("new");
    dead.status.store(0, Ordering::SeqCst);
    let failing = |origin: &Origin| format!("server {} max_fails=1 fail_timeout=1h;", origin.address);
    let next = format!("{} {} {}", failing(&dead), failing(&late), server(&new));
    let edge = start("split-health", &upstreams(&server(&old), &next));
    for number in 0..40 {
        let (status, body) = edge.client(&ip(number)).ask("/next", "").unwrap();
        assert_eq!((status, &*body), (200, "new"));
    }
    let before = (dead.seen(), new.seen().0);
    begin(&edge, &["--share", "99%"]);
    assert!(new_clients(&edge) > 20);
    assert_eq!((dead.seen(), new.seen().0), before, "nobody asks the dead server, and nobody connects again");
    late.status.store(0, Ordering::SeqCst);
    assert!(new_clients(&edge) > 20);
    let before = (dead.seen(), late.seen());
    edge.does(&["promote"], "was promoted");
    within("the promotion", || new_clients(&edge) == 30);
    assert_eq!((dead.seen(), late.seen()), before, "what the second configuration has learned stays");
}

pub fn upstreams_that_cannot_be_exchanged_are_refused_by_name() {
    let (old, new) = (Origin::start("old"), Origin::start("new"));
    let down = server(&new).replace(';', " down;");
    let edge = start("split-refused", &upstreams(&server(&old), &down));
    let refused = |words: &[&str], code: i32, says: &str| {
        let output = edge.canary(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(code) && said.contains(says), "{words:?}: {said}");
    };
    refused(&["--split", "app=app_nxt"], 1, "no \"upstream app_nxt\": did you mean \"app_next\"?");
    refused(&["--split", "app=app_next"], 1, "\"app_next\" has no server that may serve");
    refused(&["--split", "app=APP"], 2, "two different upstreams");
    refused(&["--split", "app"], 2, "two different upstreams");
    refused(&["/new.conf", "--split", "app=app_next"], 2, "cannot be used with");
    refused(&["status"], 1, "has had no canary");
    fs::write(edge.room.join("upstreams"), upstreams(&server(&old), &server(&new))).unwrap();
    signal(&edge, "-HUP", &edge.keeper.id().to_string());
    within("the reload", || edge.log().contains("reconfiguring"));
    begin(&edge, &["--share", "99%"]);
    refused(&["--split", "app=app_next"], 1, "another canary runs");
}

/// Groups with a `zone` can change while the edge runs.
pub fn an_upstream_with_a_zone_keeps_what_it_knows() {
    let (old, new, dead) = (Origin::start("old"), Origin::start("new"), Origin::start("dead"));
    dead.status.store(0, Ordering::SeqCst);
    let next = format!("zone next 64k; server {} max_fails=1 fail_timeout=1h; {}", dead.address, server(&new));
    let edge = start("split-zone", &upstreams(&format!("zone app 64k; {}", server(&old)), &next));
    (0..40).for_each(|number| assert_eq!(edge.client(&ip(number)).ask("/next", "").unwrap().1, "new"));
    let before = (dead.seen(), new.seen().0);
    begin(&edge, &["--share", "99%"]);
    assert!(new_clients(&edge) > 20);
    assert_eq!((dead.seen(), new.seen().0), before, "nobody asks the dead server, and nobody connects again");
}
