//! Scripts from recordings.

use weir_recording::model::{
    Beginning, Ending, Losses, RecordedAnswer, RecordedBody, RecordedExchange, RecordedField, RecordedMessage,
    RecordedText, RecordedVersion, RecordingPart,
};
use weir_recording::write::RecordingWriter;

use super::{from_file, wish};
use crate::script::{ScriptDocument, is_yaml};
use crate::traffic::{MadeScript, Wish};

fn field(name: &str, value: &str) -> RecordedField {
    RecordedField { name: name.into(), value: RecordedText::plain(value) }
}

/// An exchange of a client; `line` is `GET /path 200`, and `set` a cookie that the answer sets.
fn exchange(at_ms: u64, client: u64, line: &str, fields: &[(&str, &str)], set: &str) -> RecordedExchange {
    let words: Vec<&str> = line.split(' ').collect();
    let mut all = vec![field("host", "Shop.test"), field("user-agent", &format!("browser {}", client % 2))];
    all.extend(fields.iter().map(|(name, value)| field(name, value)));
    let set: Vec<RecordedField> = (!set.is_empty()).then(|| field("set-cookie", set)).into_iter().collect();
    RecordedExchange {
        at_us: at_ms * 1000,
        client,
        connection: client,
        version: RecordedVersion::Http11,
        is_tls: false,
        port: 80,
        method: words[0].into(),
        target: RecordedText::plain(words[1]),
        fields: all.into(),
        body: RecordedBody::default(),
        answer: Some(RecordedAnswer {
            status: words[2].parse().unwrap(),
            fields: set.into(),
            body: RecordedBody::default(),
        }),
        is_cut: false,
        took_us: 250_000,
        tries: Vec::new(),
        cache: None,
        generation: 1,
        location: 0,
        tunnel: 0,
    }
}

fn with_body(exchange: RecordedExchange, body: &str) -> RecordedExchange {
    let kept = Some(RecordedText::plain(body));
    RecordedExchange { body: RecordedBody { length: body.len() as u64, hash: None, kept }, ..exchange }
}

fn over(version: RecordedVersion, exchange: RecordedExchange) -> RecordedExchange {
    RecordedExchange { version, ..exchange }
}

fn beginning(share_ppm: u32) -> Beginning {
    let unix_us = 1_795_629_600_000_000;
    Beginning { unix_us, program: "weir/0.1.0".to_owned(), share_ppm, key_id: 7, has_bodies: true }
}

/// A recording with these parts.
fn recording(share_ppm: u32, parts: impl IntoIterator<Item = RecordingPart>) -> Vec<u8> {
    let mut writer = RecordingWriter::new(Vec::new(), &beginning(share_ppm)).unwrap();
    parts.into_iter().for_each(|part| writer.put(&part).unwrap());
    writer.finish().unwrap()
}

fn part(exchange: RecordedExchange) -> RecordingPart {
    RecordingPart::Exchange(Box::new(exchange))
}

fn ending(exchanges: u64, lost: Losses) -> RecordingPart {
    RecordingPart::Ending(Ending { at_us: 1, exchanges, recorded: exchanges - lost.all(), lost })
}

fn from(wish: &Wish, bytes: &[u8]) -> Result<MadeScript, String> {
    from_file(wish, "a.rec", bytes)
}

/// 40 sessions, one each 5 s: a page, and an order after 3 s.
fn orders() -> Vec<RecordingPart> {
    let mut parts = Vec::new();
    for n in 0..40 {
        let accept = [("accept", "text/html"), ("cookie", &*format!("lang=ko; seen={}", n % 4))];
        parts.push(part(exchange(n * 5_000, n, "GET /items/17 200", &accept, "sid=a; Path=/")));
        let fields = [("content-type", "application/json"), ("cookie", "sid=hash; lang=en")];
        let mut order = exchange(n * 5_000 + 3_250, n, "POST /orders 302", &fields, "");
        order.target.hidden.push((0, 1));
        parts.push(part(with_body(order, &format!(r#"{{"item":{n},"note":"{{{{ $env.HOME }}}}"}}"#))));
    }
    parts
}

#[test]
fn a_session_has_its_fields_its_cookies_and_its_bodies() {
    let lost = Losses { queue: 2, size: 1, ..Losses::default() };
    let made = from(&wish(), &recording(1_000_000, orders().into_iter().chain([ending(83, lost)]))).unwrap();
    let row = |name: &str| format!("{{{{ s1_{name} }}}}");
    for text in [
        "fields: [s1_user_agent, s1_cookie_seen, s1_body]".to_owned(),
        format!(
            "      - get: {{ url: \"/items/17\", headers: {{ accept: \"text/html\", user-agent: \"{}\" }}, cookie: {{ \"lang\": \"ko; Path=/\", \"seen\": \"{}\" }} }}\n",
            row("user_agent"),
            row("cookie_seen")
        ),
        // The cookie `sid` comes from the target, and `lang` keeps its first value.
        format!(
            "      - think: \"3s\"\n      - post: {{ url: \"/orders\", headers: {{ content-type: \"application/json\", user-agent: \"{}\" }}, cookie: {{ \"lang\": \"ko; Path=/\" }}, body: \"{}\", followRedirect: false }}\n",
            row("user_agent"),
            row("body")
        ),
    ] {
        assert!(made.script.contains(&text), "{text}\n{}", made.script);
    }
    let rows: Vec<&str> = made.rows[0].1.lines().collect();
    assert_eq!(rows[0], "user_agent,cookie_seen,body");
    assert_eq!(rows[1], r#"browser 0,0; Path=/,"{""item"":0,""note"":""{\u007b $env.HOME }}""}""#);
    assert_eq!(rows.len(), 41);
    for note in [
        "80 requests in 40 sessions, from 2026-11-25T18:00:00",
        "a.rec is a recording with 80 of 83 requests. Lost: 2 because the queue was full, 1 because the file had its largest size, 0 ",
        "These are the requests for the host shop.test. The script sends this name as Host.",
        "40 requests have hashes in the places of secrets",
    ] {
        assert!(made.notes.iter().any(|own| own.starts_with(note)), "{note}: {:#?}", made.notes);
    }
    assert!(!made.notes.iter().any(|note| note.contains("A log")), "{:#?}", made.notes);
    ScriptDocument::read("mix.yml", &made.script).unwrap();
}

#[test]
fn a_cookie_that_a_session_lacks_is_not_sent() {
    let mut parts = orders();
    let visits = (40..60).map(|n| {
        [exchange(n * 5_000, n, "GET /items/17 200", &[], "sid=b"), {
            exchange(n * 5_000 + 3_250, n, "POST /orders 302", &[("cookie", "sid=hash")], "")
        }]
    });
    parts.extend(visits.flatten().map(part));
    let made = from(&wish(), &recording(1_000_000, parts)).unwrap();
    let rows: Vec<&str> = made.rows[0].1.lines().collect();
    assert_eq!(rows[0], "accept,user_agent,cookie_lang,cookie_seen,content_type,body");
    assert_eq!(rows[60], ",browser 1,; Path=/-; Max-Age=0,; Path=/-; Max-Age=0,,");
    assert!(!made.script.contains("\"sid\""), "{}", made.script);
}

#[test]
fn a_share_of_the_clients_can_become_the_load_of_all() {
    let bytes = recording(100_000, orders());
    let made = from(&wish(), &bytes).unwrap();
    assert!(made.script.contains("arrivalCount"), "{}", made.script);
    let arrivals = |made: &MadeScript| -> u64 {
        let counts = made.script.lines().filter_map(|line| line.split("arrivalCount: ").nth(1)?.split(',').next());
        counts.map(|count| count.parse::<u64>().unwrap()).sum()
    };
    assert_eq!(arrivals(&made), 40);
    assert!(made.notes.iter().any(|note| note.starts_with("The recording has 10.0 % of the clients")));
    assert!(made.notes.iter().any(|note| note.starts_with("a.rec: the recorder did not end in order")));
    let made = from(&Wish { all_clients: true, ..wish() }, &bytes).unwrap();
    assert_eq!(arrivals(&made), 400);
    assert!(made.notes.iter().any(|note| note.contains("10.00 times as many arrivals")), "{:?}", made.notes);
}

#[test]
fn requests_use_the_versions_of_the_clients() {
    let one = |n: u64| {
        let version = [RecordedVersion::Http11, RecordedVersion::Http2, RecordedVersion::Http3][n as usize % 3];
        part(over(version, exchange(n * 1_000, n, "GET /a 200", &[], "")))
    };
    let bytes = recording(1_000_000, (0..30).map(one));
    let plain = from(&wish(), &bytes).unwrap();
    assert!(!plain.script.contains("http2"), "{}", plain.script);
    assert!(plain.notes.iter().any(|note| note.starts_with("33.3 % of the requests came over HTTP/2")));
    let made = from(&Wish { target: "https://127.0.0.1:1".to_owned(), ..wish() }, &bytes).unwrap();
    for text in [
        "  http: { http3: true, defaults: { headers: { host: \"shop.test\" } } }\n",
        "GET /a (HTTP/2)",
        "http2: true }",
        "http2: false }",
    ] {
        assert!(made.script.contains(text), "{text}\n{}", made.script);
    }
    assert_eq!(made.script.matches("  - get:").count(), 3, "{}", made.script);
}

#[test]
fn a_websocket_is_a_scenario_with_its_messages() {
    let mut parts = vec![part(exchange(0, 1, "GET /chat 200", &[], ""))];
    for (at_ms, text, is_of_client) in [(1_500, "hello", true), (1_700, "welcome", false), (3_500, "bye", true)] {
        let content = RecordedBody { length: 5, hash: None, kept: Some(RecordedText::plain(text)) };
        let at_us = at_ms * 1000;
        parts.push(RecordingPart::Message(RecordedMessage {
            at_us,
            tunnel: 9,
            is_of_client,
            is_binary: false,
            content,
        }));
    }
    let fields = [("upgrade", "websocket"), ("sec-websocket-protocol", "v1, v2"), ("cookie", "sid=h")];
    let opened = exchange(500, 1, "GET /ws?room=1 101", &fields, "");
    parts.push(part(RecordedExchange { tunnel: 9, took_us: 4_000_000, ..opened }));
    // Without its messages it is left out.
    parts.push(part(exchange(600, 2, "GET /ws?room=2 101", &[], "")));
    let made = from(&wish(), &recording(1_000_000, parts)).unwrap();
    let flow = "    engine: ws\n    weight: 5000\n    flow:\n      \
        - connect: { target: \"{{ target }}/ws?room=1\", headers: { user-agent: \"browser 1\", host: \"shop.test\", cookie: \"sid=h\" }, subprotocols: [\"v1\", \"v2\"] }\n      \
        - think: \"1s\"\n      - send: \"hello\"\n      - think: \"2s\"\n      - send: \"bye\"\n      - think: \"1s\"\n";
    assert!(made.script.contains(flow), "{flow}\n{}", made.script);
    for note in ["1 WebSockets are arrivals and scenarios of their own", "1 WebSockets are left out"] {
        assert!(made.notes.iter().any(|own| own.starts_with(note)), "{note}: {:#?}", made.notes);
    }
}

#[test]
fn conditions_and_ranges_are_routes_of_their_own() {
    let fields = |n: u64| [&[][..], &[("if-none-match", "\"v1\"")], &[("range", "bytes=0-99")]][n as usize % 3];
    let all = (0..30).map(|n| part(exchange(n * 1_000, n, "GET /film.mp4 206", fields(n), "")));
    let made = from(&wish(), &recording(1_000_000, all)).unwrap();
    for text in ["GET /film.mp4 (condition)  (asset)", "GET /film.mp4 (range)", "if-none-match: \"\\\"v1\\\"\""] {
        assert!(made.script.contains(text), "{text}\n{}", made.script);
    }
}

#[test]
fn a_bad_recording_is_refused_by_name() {
    let whole = recording(1_000_000, orders());
    let refused = |bytes: &[u8]| from(&wish(), bytes).unwrap_err();
    let cut = refused(whole.get(..whole.len() - 9).unwrap());
    assert!(cut.starts_with("a.rec: the recording ends within the frame at byte "), "{cut}");
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    assert!(refused(&damaged).starts_with("a.rec: the frame at byte "), "{}", refused(&damaged));
    // A file that does not begin as a recording is a log.
    assert!(refused(b"recorded by hand\n").contains("no line has the form"));
    let newer = whole.iter().enumerate().map(|(at, byte)| if at == 8 { 99 } else { *byte });
    let newer = refused(&newer.collect::<Vec<u8>>());
    assert!(newer.contains("has version"), "{newer}");
    // Requests that a client cannot send again, and one for another host.
    let odd = recording(
        1_000_000,
        [part(exchange(0, 1, "get:x /a 200", &[], "")), part(exchange(0, 1, "GET * 200", &[], ""))],
    );
    assert_eq!(refused(&odd), "there is no request that can be sent again");
    let other = from(&Wish { host: Some("other.test".to_owned()), ..wish() }, &whole).unwrap_err();
    assert_eq!(other, "there is no request for the host other.test");
}

#[test]
fn a_recording_may_be_compressed_and_stand_beside_a_log() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, &recording(1_000_000, orders())).unwrap();
    assert!(from(&wish(), &gzip.finish().unwrap()).unwrap().script.contains("/items/17"));
}

mod mutate {
    use super::*;

    /// Values of clients: no script has a template of theirs, and each can be read.
    #[test]
    fn recorded_values() {
        let seeds = ["a=b", "{\"a\":{\"b\":{}}}", "text/html", "x; Path=/", "a,b\r\n\"c\"", "/p?q={{ $env.HOME }}"];
        let words = [
            "{{",
            "}}",
            "{{ $env.HOME }}",
            "{",
            ";",
            "=",
            "\"",
            "\n",
            "\0",
            "\u{2028}",
            "#",
            ": ",
            "- ",
            "'",
            "%",
            ",",
        ];
        weir_mutate::mutate(&seeds, &words, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let mut one =
                exchange(0, 1, "POST /a 200", &[("cookie", &text), ("accept", &text), ("range", &text)], &text);
            one.target = RecordedText::plain([b"/", bytes].concat());
            let mut again = one.clone();
            (again.at_us, again.took_us) = (u64::MAX, u64::MAX);
            let content = RecordedBody { length: 5, hash: None, kept: Some(RecordedText::plain(bytes)) };
            let message = RecordedMessage { at_us: 7, tunnel: 3, is_of_client: true, is_binary: false, content };
            let tunnel = RecordedExchange { tunnel: 3, ..exchange(0, 2, "GET /ws 101", &[("cookie", &text)], "") };
            let parts = [part(with_body(one, &text)), part(again), RecordingPart::Message(message), part(tunnel)];
            let made = from(&wish(), &recording(1_000_000, parts)).unwrap();
            assert!(is_yaml(&made.script), "{}", made.script);
            let code = made.script.lines().filter(|line| !line.trim_start().starts_with('#'));
            let all = code.chain(made.rows.iter().flat_map(|(_, rows)| rows.lines()));
            for line in all {
                let own = line.replace("{{ s", "").replace("{{ target }}", "");
                assert!(!own.contains("{{"), "{line}");
            }
            ScriptDocument::read("mix.yml", &made.script).unwrap();
        });
    }
}
