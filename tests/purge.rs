//! Purges over several edges, with a real redis-server between them (Debian's `redis-server`).
//!
//! The test has its own origin: each answer contains a version, so an edge's answer shows its age. The durations of
//! purges and rejoins are printed, never asserted.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[path = "purge/net.rs"]
mod net;
#[path = "purge/stage.rs"]
mod stage;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::process::ExitCode;
use std::time::Instant;

use needs::{Need, cases};
use net::Namespaces;
use stage::{Edge, Origin, Redis, Room};
use support::within;

/// Number of pages whose tags are `news` and `page-N`.
const PAGES: usize = 9;

fn main() -> ExitCode {
    needs::run(cases![
        [Need::Program("redis-server")] => a_restart_replays_or_doubts, a_reload_keeps_the_log_or_changes_it;
        [Need::Program("redis-server"), Need::Namespaces] => three_edges_and_one_of_them_cut_off;
        [] => the_api_says_what_to_write;
    ])
}

fn three_edges_and_one_of_them_cut_off() {
    let net = Namespaces::new();
    let room = Room::new("purge-netns");
    let mut redis = Redis::start(&net.gateway, &room);
    let origin = Origin::start(&net.gateway);
    let edges = ["a", "b", "c"].map(|name| room.edge(name, &redis, &origin).inside(&net));
    let edges = edges.map(Edge::start);
    let [a, b, c] = &edges;
    a.until_edges(3);

    // All connected: the API answers when all three edges have the new page, and no other page has changed.
    for (what, gone, stays) in [
        (["--tag", "news"], "/n/1", "/other"),
        (["--key", "/other"], "/other", "/n/1"),
        (["--prefix", "/n/"], "/n/2", "/other"),
        (["--all", "--json"], "/other", ""),
    ] {
        for (edge, page) in edges.iter().flat_map(|edge| ["/n/1", "/n/2", "/other"].map(|page| (edge, page))) {
            edge.get(page);
        }
        let version = origin.publish();
        let begun = Instant::now();
        let (code, said) = a.purge(&what);
        let answered = begun.elapsed();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("3 of 3 edges") || said.contains("\"applied\":\"everywhere\""), "{said}");
        for edge in &edges {
            assert_eq!(edge.get(gone), version, "{what:?} at {}", edge.name);
            assert!(stays.is_empty() || edge.get(stays) < version, "{what:?} at {}", edge.name);
        }
        println!("{what:?}: answered after {answered:?}, all fresh after {:?}: {}", begun.elapsed(), said.trim());
    }

    // One edge is cut off: the others are fresh, the answer names it, and it keeps serving. After its return, all
    // purged pages are fresh there.
    let pages: Vec<String> = (0..PAGES).map(|page| format!("/n/{page}")).collect();
    let old = origin.version();
    edges.iter().for_each(|edge| pages.iter().for_each(|page| assert_eq!(edge.get(page), old)));
    net.cut("c");
    let version = origin.publish();
    let (code, said) = a.purge(&["--tag", "page-0"]);
    assert!(code == Some(3) && said.contains("2 of 3 edges") && said.contains("not yet: c"), "{code:?} {said}");
    for page in 1..PAGES {
        let (kind, name) = match page % 3 {
            0 => ("--key", format!("/n/{page}")),
            1 => ("--prefix", format!("/n/{page}")),
            _ => ("--tag", format!("page-{page}")),
        };
        assert_eq!(a.post(&[kind, &name]), 202, "{page}");
    }
    for edge in [a, b] {
        pages.iter().for_each(|page| assert_eq!(edge.get(page), version, "{page} at {}", edge.name));
    }
    pages.iter().for_each(|page| assert_eq!(c.get_inside(page), old, "{page} at c"));
    net.join("c");
    let healed = Instant::now();
    within("c is fresh again", || c.get("/n/0") == version);
    println!("cut off: fresh {:?} after the link was back", healed.elapsed());
    within("c has caught up", || c.is_up_to_date());
    pages.iter().for_each(|page| assert_eq!(c.get(page), version, "{page} at c: a purge was lost"));
    assert_eq!(c.get("/other"), old, "what nobody purged stays");
    assert_eq!(c.log_lines("weir cannot reach the purge log"), 1);
    assert_eq!(c.log_lines("weir is connected again to"), 1);

    // Cut off so long that the stream has lost entries: the edge fetches everything again.
    net.cut("c");
    let version = origin.publish();
    a.post(&["--tag", "page-7"]);
    redis.say("XTRIM weir:purges MAXLEN 1");
    net.join("c");
    within("c doubts all it has", || c.get("/other") == version);
    pages.iter().for_each(|page| assert_eq!(c.get(page), version, "{page} at c"));
    assert_eq!(c.log_lines("so weir soft-purges everything"), 1);

    // Redis dies: all edges keep serving, and a purge reports that it cannot be logged.
    redis.kill();
    for edge in &edges {
        for page in &pages {
            edge.get(page);
        }
    }
    origin.publish();
    let (code, said) = a.purge(&["--tag", "page-1"]);
    assert!(code == Some(4) && said.contains("purged on this edge only"), "{code:?} {said}");
    let (code, said) = a.purge(&["--tag", "page-1", "--local"]);
    assert!(code == Some(0) && said.contains("on this edge only"), "{code:?} {said}");
    // Redis is back and empty: the edges cannot know which purges they missed.
    redis.restart();
    let version = origin.publish();
    for edge in &edges {
        within("all is doubted", || edge.get("/other") == version);
        assert_eq!(edge.log_lines("no longer has the entry"), if edge.name == "c" { 2 } else { 1 });
    }
    a.until_edges(3);
    assert_eq!(a.purge(&["--all"]).0, Some(0));
}

fn a_restart_replays_or_doubts() {
    let room = Room::new("purge-restart");
    let redis = Redis::start("127.0.0.1", &room);
    let origin = Origin::start("127.0.0.1");
    let a = room.edge("a", &redis, &origin).start();
    let mut b = room.edge("b", &redis, &origin).start();
    a.until_edges(2);
    let old = origin.version();
    let pages = ["/n/1", "/n/2", "/n/3", "/key", "/prefix/1", "/other"];
    pages.iter().for_each(|page| assert_eq!(b.get(page), old));
    b.until_on_disk(pages.len());
    b.end();
    // The edge removed its name: no purge waits for it.
    let version = origin.publish();
    for what in [["--tag", "page-1"], ["--key", "/key"], ["--prefix", "/prefix/"], ["--tag", "page-3"]] {
        assert_eq!(a.post(&what), 200);
    }
    let mut b = b.start();
    within("the purges are replayed", || b.get("/n/3") == version);
    for page in ["/n/1", "/key", "/prefix/1"] {
        assert_eq!(b.get(page), version, "{page}: a purge was lost");
    }
    for page in ["/n/2", "/other"] {
        assert_eq!(b.get(page), old, "{page}: nobody purged it");
    }
    b.end();
    // Without its state file, the edge cannot know which purges it missed.
    std::fs::remove_file(b.state()).unwrap();
    let version = origin.publish();
    let b = b.start();
    pages.iter().for_each(|page| assert_eq!(b.get(page), version, "{page}"));
}

fn a_reload_keeps_the_log_or_changes_it() {
    let room = Room::new("purge-reload");
    let redis = Redis::start("127.0.0.1", &room);
    let origin = Origin::start("127.0.0.1");
    let [a, mut b] = ["a", "b"].map(|name| room.edge(name, &redis, &origin).start());
    a.until_edges(2);
    b.reload(|text| text.replace("keys_zone=one:1m", "keys_zone=two:1m").replace("proxy_cache one", "proxy_cache two"));
    within("the zone of the new configuration is there", || b.state_of_api().contains("\"two\""));
    let old = origin.version();
    assert_eq!((b.get("/n/1"), b.log_lines("weir is connected to")), (old, 1));
    let version = origin.publish();
    assert_eq!(a.post(&["--tag", "news"]), 200);
    assert_eq!(b.get("/n/1"), version);
    // A new name: the old one is removed, so the edge is not counted twice.
    b.reload(|text| text.replace("edge=b", "edge=bee"));
    within("b goes by its new name", || a.state_of_api().contains("\"bee\"") && !a.state_of_api().contains("\"b\""));
    assert_eq!(a.post(&["--tag", "news"]), 200);
}

fn the_api_says_what_to_write() {
    let room = Room::new("purge-api");
    let origin = Origin::start("127.0.0.1");
    let a = room.alone("a", &origin).start();
    let old = origin.version();
    assert_eq!(a.get("/n/1"), old);
    for (request, status, words) in [
        ("POST /purge HTTP/1.1\r\nContent-Length: 0\r\n", 400, "the body is not JSON"),
        (
            "POST /purge HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n",
            400,
            "the body names nothing to purge",
        ),
        (
            "POST /purge HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n",
            200,
            "\"applied\":\"everywhere\"",
        ),
        ("POST /purge HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", 415, "send Content-Type: application/json"),
        ("POST /purge HTTP/1.1\r\nContent-Length: 70000\r\n", 413, "larger than 65536 bytes"),
        ("PUT /purge HTTP/1.1\r\nContent-Length: 0\r\n", 405, "purge with POST"),
        ("POST /purge HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\nContent-Length: 0\r\n", 403, "another site"),
        ("GET /purge HTTP/1.1\r\n", 200, "\"zones\":[\"one\"]"),
    ] {
        let body = match request {
            request if request.contains("chunked") => "13\r\n{\"tag\":\"elsewhere\"}\r\n0\r\n\r\n",
            request if request.contains("Length: 2") => "{}",
            _ => "",
        };
        let (said, text) = a.talk(&format!("{request}Host: h\r\nConnection: close\r\n\r\n{body}"));
        assert!(said == status && text.contains(words), "{request}: {said} {text}");
    }
    let (code, said) = a.purge(&["--tag", "x", "--zone", "nowhere"]);
    assert!(code == Some(1) && said.contains("no zone has the name \"nowhere\"; zones: one"), "{code:?} {said}");
    assert_eq!(a.get("/n/1"), old, "nothing of that purged anything");
    let version = origin.publish();
    let (code, said) = a.purge(&["--tag", "news", "page-1", "--soft", "--zone", "one"]);
    assert!(code == Some(0) && said.starts_with("soft-purged tags news page-1 in zone one: 1 of 1 edges, "), "{said}");
    assert_eq!(a.get("/n/1"), version);
    let (code, said) = a.purge(&[]);
    assert!(code == Some(0) && said.contains("no purge log"), "{code:?} {said}");
}
