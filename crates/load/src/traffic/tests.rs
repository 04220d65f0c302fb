#![allow(clippy::unwrap_used)]
use std::io::{Cursor, Read};

use weir_conf::log_format::Format;
use weir_words::Language;

use crate::script::ScriptDocument;

use super::*;

mod recorded;

fn wish() -> Wish {
    Wish {
        format: None,
        host: None,
        without_assets: false,
        minutes: None,
        speed: 1.0,
        all_clients: false,
        target: "http://127.0.0.1:1".to_owned(),
        stem: Some("/x/mix".to_owned()),
        language: Language::English,
    }
}

fn line(client: &str, second: u64, request: &str, status: u16) -> String {
    format!(
        "{client} - - [26/Nov/2026:{:02}:{:02}:{:02} +0000] \"{request} HTTP/1.1\" {status} 5 \"-\" \"a\"\n",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

fn from(wish: &Wish, text: &[u8]) -> Result<MadeScript, String> {
    from_file(wish, "a.log", text)
}

fn from_file(wish: &Wish, name: &str, bytes: &[u8]) -> Result<MadeScript, String> {
    let source: Box<dyn Read> = Box::new(Cursor::new(bytes.to_vec()));
    make(wish, vec![(name.to_owned(), source)])
}

/// Sessions of two requests with a pause of 3 s, one each 10 s.
fn pairs() -> String {
    let pair = |n: u64| {
        let client = format!("10.0.{}.{}", n / 250, n % 250);
        let first = line(&client, n * 10, &format!("GET /users/{}", 17 + n % 9), 200);
        first + &line(&client, n * 10 + 3, &format!("POST /users/{}/buy?n={}", 17 + n % 9, n % 3), 302)
    };
    (0..300).map(pair).collect()
}

#[test]
fn a_session_becomes_a_scenario_with_its_values_and_its_pauses() {
    let made = from(&wish(), pairs().as_bytes()).unwrap();
    for part in [
        "    - { duration: 2994, arrivalCount: 300, name: \"1: 2026-11-26T00:00:00.000Z\" }\n",
        "    - { path: \"mix.1.csv\", fields: [s1_id, s1_n], skipHeader: true, cast: false }\n",
        "  - name: \"1: GET /users/:id, POST /users/:id/buy?n=:n\"\n    weight: 10000\n",
        "      - get: { url: \"/users/{{ s1_id }}\" }\n      - think: \"3s\"\n      - post: { url: \"/users/{{ s1_id }}/buy?n={{ s1_n }}\", followRedirect: false }\n",
    ] {
        assert!(made.script.contains(part), "{part}\n{}", made.script);
    }
    assert_eq!(made.rows[0].0, "/x/mix.1.csv");
    assert!(made.rows[0].1.starts_with("id,n\n17,0\n18,1\n19,2\n20,0\n"), "{}", made.rows[0].1);
    assert_eq!(made.rows[0].1.lines().count(), 301);
    assert!(made.notes.iter().any(|note| note.starts_with("300 requests with POST")), "{:?}", made.notes);
    // Twice as fast; rows inside the script.
    let made = from(&Wish { speed: 2.0, stem: None, ..wish() }, pairs().as_bytes()).unwrap();
    for part in [
        "duration: 1497, arrivalCount: 300",
        "think: \"1500ms\"",
        "url: \"/users/{{ s1.id }}\"",
        "  variables:\n    s1:\n      - { id: \"17\", n: \"0\" }\n",
    ] {
        assert!(made.script.contains(part), "{part}\n{}", made.script);
    }
    // A tenth of the time at the same rate.
    let made = from(&Wish { minutes: Some(5), ..wish() }, pairs().as_bytes()).unwrap();
    assert!(made.script.contains("duration: 300, arrivalCount: 30,"), "{}", made.script);
}

#[test]
fn gzip_is_read_and_lines_that_are_no_requests_are_counted() {
    let text = format!(
        "{}garbage \u{1}\n{}",
        pairs(),
        line("10.1.1.1", 5, "PROPFIND /x", 207) + &line("10.1.1.1", 6, "LOOP /x", 207)
    );
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
    let made = from(&wish(), &gzip.finish().unwrap()).unwrap();
    for note in [
        "1 of 603 lines are no request",
        "  a.log:601: garbage \\u{1} (the line does not have the text \" - \" where the format needs it)",
        "1 requests have a method",
    ] {
        assert!(made.notes.iter().any(|own| own.starts_with(note)), "{note}: {:?}", made.notes);
        assert!(made.script.contains(&format!("# {note}")));
    }
    assert!(made.script.contains("      - propfind: { url: \"/x\""), "{}", made.script);
    assert!(from(&wish(), b"x\ny\n").unwrap_err().contains("no line has the form"));
    assert!(from(&wish(), b"").unwrap_err().contains("no request"));
    let long = format!("{}{}", "x".repeat(LINE_BYTES_MAX * 2), pairs());
    assert!(from(&wish(), long.as_bytes()).unwrap().notes.iter().any(|note| note.starts_with("1 of 600 lines")));
}

#[test]
fn one_address_for_all_requests_is_named() {
    let notes = |text: &str| from(&wish(), text.as_bytes()).unwrap().notes.join("\n");
    let proxied = |client: &str, second| {
        line("10.0.0.9", second, "GET /", 200).trim_end().to_owned() + &format!(" \"{client}\"\n")
    };
    let hint = "All requests come from the address 10.0.0.9";
    assert!(notes(&(proxied("-", 1) + &proxied("-", 2))).contains(hint));
    // The last field of nginx.org's `main` has the client.
    let main = notes(&(proxied("1.1.1.1", 1) + &proxied("1.1.1.2, 10.0.0.8", 2)));
    assert!(!main.contains(hint) && main.contains("2 sessions") && main.contains("has the format main"), "{main}");
    let none = "{\"time\":1,\"url\":\"/a\"}\n{\"time\":2,\"url\":\"/a\"}\n";
    assert!(notes(none).contains("The lines do not have the client's address"));
}

#[test]
fn a_day_gives_its_busiest_hour_and_a_host_can_be_chosen() {
    let format = Format::read(&["$remote_addr $host [$time_iso8601] \"$request\" $status"]).unwrap();
    let one = |second: u64, host: &str| {
        let (hour, minute) = (second / 3600, second / 60 % 60);
        format!(
            "1.1.1.{} {host} [2026-11-26T{hour:02}:{minute:02}:{:02}+00:00] \"GET /{host} HTTP/1.1\" 200\n",
            second % 250,
            second % 60
        )
    };
    let quiet = (0..20).map(|hour| one(hour * 3600, "a.test"));
    let busy = (0..600).map(|n| one(7 * 3600 + n * 6, "a.test"));
    let other = (0..10).map(|n| one(n * 60, "b.test:80"));
    let text: String = quiet.chain(busy).chain(other).collect();
    let wish = Wish { format: Some(format), ..wish() };
    let made = from(&wish, text.as_bytes()).unwrap();
    assert!(made.notes.iter().any(|note| note.starts_with("The traffic covers 19.0 hours")), "{:?}", made.notes);
    assert!(made.notes.iter().any(|note| note.starts_with("10 requests for other hosts")), "{:?}", made.notes);
    assert!(made.script.contains("GET /a.test"), "{}", made.script);
    let made = from(&Wish { host: Some("b.test".to_owned()), ..wish.clone() }, text.as_bytes()).unwrap();
    assert!(made.script.contains("url: \"/b.test:80\"") && !made.script.contains("/a.test"));
    assert!(from(&Wish { host: Some("c".to_owned()), ..wish }, text.as_bytes()).is_err());
}

#[test]
fn an_address_gets_the_name_of_the_host() {
    let format = Format::read(&["$remote_addr $host [$time_iso8601] \"$request\" $status"]).unwrap();
    let made = |host: &str, target: &str| {
        let line = format!("1.1.1.1 {host} [2026-11-26T00:00:00+00:00] \"GET /a HTTP/1.1\" 200\n");
        let wish = Wish { format: Some(format.clone()), target: target.to_owned(), ..wish() };
        from(&wish, line.as_bytes()).unwrap()
    };
    for (host, target, is_sent) in [
        ("shop.test", "http://127.0.0.1:8080", true),
        ("shop.test", "https://[::1]:8080", true),
        ("shop.test", "http://localhost", true),
        ("shop.test", "https://shop.test", true),
        // A copy of the shop has a name of its own.
        ("shop.test", "https://copy.test", false),
        ("10.0.0.9", "http://127.0.0.1", false),
        ("localhost", "http://127.0.0.1", false),
        ("a{{b}}", "http://127.0.0.1", false),
    ] {
        let made = made(host, target);
        let sent = format!("  http: {{ defaults: {{ headers: {{ host: \"{host}\" }} }} }}\n");
        assert_eq!(made.script.contains(&sent), is_sent, "{host} {target}: {}", made.script);
        assert_eq!(made.notes.iter().any(|note| note.contains("as Host")), is_sent, "{:?}", made.notes);
        ScriptDocument::read("mix.yml", &made.script).unwrap();
    }
}

#[test]
fn no_line_panics() {
    let mut random = fastrand::Rng::with_seed(1);
    let base = pairs();
    for _ in 0..300 {
        let mut bytes = base.as_bytes().get(..2_000).unwrap().to_vec();
        for _ in 0..random.usize(1..60) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        let made = from(&Wish { stem: None, ..wish() }, &bytes);
        let is_script = |made: MadeScript| crate::script::is_yaml(&made.script);
        assert!(made.is_err() || made.is_ok_and(is_script));
    }
}

mod mutate {
    use super::*;

    /// Lines of logs: the script is no larger than its bound, and it never has a template that a client wrote.
    #[test]
    fn logs() {
        let combined = line("10.0.0.1", 1, "GET /a?b={{ c }}", 200) + &line("10.0.0.1", 4, "POST /\\x22\\xe4", 302);
        let json = "{\"time_iso8601\":\"2026-11-26T00:00:01+00:00\",\"remote_addr\":\"a\",\"request_uri\":\"/x\",\"status\":\"200\"}\n";
        let seeds = [
            combined.clone(),
            json.to_owned(),
            combined.repeat(3),
            pairs().lines().take(12).collect::<Vec<_>>().join("\n"),
        ];
        let words = [
            "\"",
            " ",
            "[",
            "]",
            "\n",
            "{{ $env.HOME }}",
            "{{",
            "}}",
            "\\x0a",
            "\\u0000",
            "/",
            "?",
            "&",
            "=",
            "-",
            "0",
            "99999",
            "Feb/2026",
            "+2500",
            "\0",
            "é",
            "'",
            ": ",
            "\r\n",
            "{\"request\":\"GET / HTTP/1.1\"}",
        ];
        weir_mutate::mutate(&seeds, &words, |bytes| {
            let Ok(made) = from(&wish(), bytes) else { return };
            assert!(made.script.len() <= 20_000 + 200 * bytes.len(), "{} of {}", made.script.len(), bytes.len());
            // Comments show lines of the log as they are, and no template is read there.
            let mut code = made.script.lines().filter(|line| !line.trim_start().starts_with('#'));
            assert!(!code.any(|line| line.contains("{{ $env")), "{}", made.script);
            crate::script::ScriptDocument::read("x.yml", &made.script).unwrap();
        });
    }
}
