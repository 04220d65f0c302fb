//! The memory of exchanges, and what changes with a location.

use super::*;
use crate::tests::{Site, Trail, finish, on_worker, whole};

#[test]
fn pipelined_bytes_begin_the_next_request_and_nothing_else_is_left() {
    for (text, left) in [("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b", &b"GET /b"[..]), ("GET / HTTP/1.0\r\n\r\n", b"")] {
        let text = text.to_owned();
        on_worker(async move {
            let (site, _conn, _client) = Site::open("server { listen 127.0.0.1:1; return 301 /x; }");
            let mut parts = Parts::default();
            let mut exchange = site.exchange_in(&mut parts, &text);
            exchange.slots.set(VariableId(0), b"x");
            finish(&mut exchange);
            drop(exchange);
            parts.next_request();
            let request = parts.request();
            assert_eq!((request.bytes.as_slice(), request.pipelined), (left, !left.is_empty()));
            let response = &parts.response;
            assert!(response.fields.iter().next().is_none() && response.status == StatusCode::default());
            assert!(parts.slots().get(VariableId(0)).is_none() && parts.uri.is_empty() && parts.request().used == 0);
        });
    }
}

#[test]
fn a_worker_keeps_small_memory_for_later_exchanges_and_no_more_than_its_limit() {
    on_worker(async {
        let (site, _conn, _client) = Site::open("server { listen 127.0.0.1:1; }");
        let worker = site.exchange(&whole("GET /")).worker.clone();
        let of = |bytes: usize| {
            let mut parts = Parts::default();
            parts.request().bytes.reserve_exact(bytes);
            parts
        };
        for (bytes, is_kept) in [(SPARE_BYTES_MAX, true), (SPARE_BYTES_MAX + 1, false)] {
            of(bytes).give_back(&worker);
            assert_eq!(Parts::lease(&worker).capacity() >= bytes, is_kept, "{bytes}");
        }
        (0..=SPARE_MAX).for_each(|_| of(10).give_back(&worker));
        let kept = (0..=SPARE_MAX).filter(|_| Parts::lease(&worker).capacity() > 0).count();
        assert_eq!(kept, SPARE_MAX);
    });
}

#[test]
fn another_location_takes_away_what_belongs_to_the_first() {
    on_worker(async {
        let (site, _conn, _client) = Site::open("server { listen 127.0.0.1:1; location /a { } }");
        let mut exchange = site.exchange(&whole("GET /a"));
        exchange.flags = Flags {
            is_forwarded: true,
            alias_takes_uri: true,
            knows_password: true,
            handler_lost: true,
            keeps_alive: true,
            ..Flags::default()
        };
        exchange.rare_mut().proxy_host = Some(b"a".to_vec());
        exchange.enter(exchange.conf.servers[0].root);
        let flags = exchange.flags;
        assert!(!(flags.is_forwarded || flags.alias_takes_uri || flags.knows_password || flags.handler_lost));
        assert!(flags.keeps_alive && exchange.rare().unwrap().proxy_host.is_none());
    });
}

#[test]
fn a_value_that_was_made_before_the_body_came_is_made_again() {
    fn made(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
        exchange.own.add(Trail(vec!["made"]));
        out.push(b'v');
        true
    }
    for (reads_body, is_read, kept) in [(false, false, true), (true, false, false), (true, true, true)] {
        on_worker(async move {
            let (conf, _) = crate::of_text("events {} http { server { listen 127.0.0.1:1; set $a $uri; } }");
            let mut conf = conf.unwrap();
            let id = conf.names.find("a").unwrap();
            conf.definitions[id.0 as usize] = Definition::Cached(made, Argument::default());
            conf.reads_body = vec![reads_body; conf.definitions.len()];
            let (site, _conn, _client) = Site::of(conf);
            let mut exchange = site.exchange(&whole("POST /|Content-Length: 1"));
            if is_read {
                exchange.body = RequestBody::Memory(b"x".to_vec());
            }
            let mut out = Vec::new();
            assert!(exchange.variable(id, &mut out) && exchange.variable(id, &mut out) && out == b"vv");
            assert_eq!(exchange.slots.get(id).is_some(), kept, "{reads_body} {is_read}");
        });
    }
}
