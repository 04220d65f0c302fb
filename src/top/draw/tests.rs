use serde_json::json;

use super::*;
use crate::top::screen::escaped;

fn document(requests: u64) -> Value {
    json!({
        "at": 1_795_363_200_000u64 + requests,
        "point": {"rps": 1240.0, "failed": 0, "p50": 2.1, "p99": 47.7, "active": 173, "cpu": 0.51},
        "past": [{"rps": 0.0, "failed": 0.0, "p99": 1.0}, {"rps": 50.0, "failed": 1.0, "p99": 1.0}, {"rps": 100.0, "failed": 0.0, "p99": 1.0}],
        "verdict": {"state": "near", "words": {"en": "Ports to 10.0.0.1:3000 (0.85) will be used up in 9 s", "ko": "업스트림 포트 (0.85) · 9초 뒤 한도 도달"}},
        "waterlines": [
            {"kind": "fds", "of": "", "object": {"en": "", "ko": ""}, "level": "fine", "unit": "count", "used": 47, "limit": 20000, "ratio": 0.00235, "trend": "flat", "name": {"en": "Open files", "ko": "열린 파일"}},
            {"kind": "ports", "of": "10.0.0.1:3000", "object": {"en": "10.0.0.1:3000", "ko": "10.0.0.1:3000"}, "level": "near", "unit": "count", "used": 24000, "limit": 28230, "ratio": 0.85, "trend": "rising", "eta_s": 9.0, "name": {"en": "Ports to", "ko": "업스트림 포트"}},
        ],
        "snapshot": {
            "http": {
                "server_zones": {"shop/example": {"responses": {"codes": {"200": 9 * requests, "404": 3, "502": requests / 4, "504": requests - requests / 4}}}},
                "upstreams": {"app": {"peers": [{"server": "10.0.0.1:3000", "state": "up", "active": 5, "requests": requests, "fails": 2}]}},
            },
            "weir": {
                "server_zones": {"shop/example": {"rate": 1240.0, "recent": {"p50_us": 2100, "p95_us": 9000, "p99_us": 47700}}},
                "errors": [
                    {"class": "502 connection refused", "title": {"en": "502 connection refused", "ko": "502 연결 거부"}, "kind": "failed", "count": requests / 10, "last": "2026-11-26T08:01:02.345Z"},
                    {"class": "limit_req", "title": {"en": "limit_req", "ko": "limit_req"}, "kind": "refused", "count": 7, "last": "2026-11-26T08:01:01.000Z"},
                ],
                "upstreams": {"app": [{"opened": 1, "reused": 99, "header": {"recent": {"p95_us": 480}}}]},
            },
        },
    })
}

fn drawn(
    doc: &Value,
    before: &Value,
    language: Language,
    choice: &Choice,
    has_keys: bool,
    columns: u16,
    rows: u16,
) -> String {
    let before = Some(before);
    text(&Screen { doc, before, language, trouble: None, choice, edges: &[], has_keys }, columns, rows).join("\n")
}

fn screen(columns: u16, rows: u16, language: Language) -> String {
    let (before, doc) = (document(0), document(1000));
    drawn(&doc, &before, language, &Choice::default(), false, columns, rows)
}

#[test]
fn a_screen_says_what_the_document_says() {
    let shown = screen(100, 40, Language::English);
    let lines: Vec<String> = shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert!(lines[0].starts_with("weir requests 1.2k/s failed 0/s p50 2.1 ms p99 47.7 ms"), "{shown}");
    assert!(lines[1].starts_with("▲ near a limit Ports to 10.0.0.1:3000 (0.85)"), "{shown}");
    assert!(
        lines[5].starts_with("▲ Ports to 10.0.0.1:3000")
            && lines[5].contains("85 % 24k / 28.2k")
            && lines[5].ends_with("in 9.0 s"),
        "{shown}"
    );
    assert!(lines[6].contains("Open files") && lines[6].ends_with("not rising"), "{shown}");
    let zone = lines.iter().find(|line| line.starts_with("shop/example")).cloned().unwrap_or_default();
    assert!(zone.contains("1.2k/s") && zone.contains("47.7 ms") && zone.ends_with("0/s 1k/s"), "{shown}");
    let peer = lines.iter().find(|line| line.starts_with("app 10.0.0.1:3000")).cloned().unwrap_or_default();
    assert!(peer.contains("99 %") && peer.contains("480 µs") && peer.ends_with("up"), "{shown}");
}

#[test]
fn a_verdict_is_never_cut_before_its_end() {
    let mut doc = document(1000);
    let words = "14 % of requests failed in 10 s: shop.example.org @app 502 ×3 · upstream unix:/run/shop/gunicorn.sock";
    doc["verdict"]["words"]["en"] = words.into();
    for columns in [100, 80] {
        let shown = drawn(&doc, &doc, Language::English, &Choice::default(), false, columns, 40);
        let joined = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(words), "{shown}");
    }
}

#[test]
fn errors_have_their_rate_and_the_past_is_a_line() {
    let shown = screen(100, 40, Language::English);
    assert!(shown.contains("requests ▁▅█  failed ▁█▁  p99 ███"), "{shown}");
    let error = shown.lines().find(|line| line.contains("502 connection refused")).unwrap_or_default();
    let words: Vec<&str> = error.split_whitespace().collect();
    assert_eq!(words, ["502", "connection", "refused", "·", "failed", "100/s", "100", "08:01:02"], "{shown}");
    assert!(shown.contains("limit_req · refused as configured"), "{shown}");
}

/// A document with so many servers, of which the last fails.
fn many(count: usize, failed: u64) -> Value {
    let mut doc = document(failed);
    let servers: serde_json::Map<String, Value> = (0..count)
        .map(|number| {
            let failed = if number + 1 == count { failed } else { 0 };
            (format!("s{number:02}"), json!({"responses": {"codes": {"200": 5, "500": failed}}}))
        })
        .collect();
    let times =
        servers.keys().map(|name| (name.clone(), json!({"rate": name.trim_start_matches('s').parse().unwrap_or(0.0)})));
    doc["snapshot"]["weir"]["server_zones"] = times.collect::<serde_json::Map<_, _>>().into();
    doc["snapshot"]["http"]["server_zones"] = servers.into();
    doc
}

#[test]
fn long_tables_scroll_sort_and_show_only_what_fails() {
    let (before, doc) = (many(40, 0), many(40, 3));
    let names = |choice: &Choice| {
        let shown = drawn(&doc, &before, Language::English, choice, true, 100, 30);
        let names = shown.lines().filter_map(|line| line.split(' ').next().filter(|name| name.starts_with('s')));
        (names.map(str::to_owned).collect::<Vec<_>>(), shown)
    };
    let with = |pane: Pane| Choice { panes: [pane, Pane::default(), Pane::default()], ..Choice::default() };
    let (busiest, shown) = names(&with(Pane::default()));
    assert_eq!(busiest[0], "s39", "{shown}");
    assert!(shown.contains(&format!("▸ ZONE  1–{}/40", busiest.len())) && shown.contains("ERROR"), "{shown}");
    assert!(shown.lines().last().is_some_and(|line| line.starts_with("q quit")), "{shown}");
    let (scrolled, _) = names(&with(Pane { first: 2, ..Pane::default() }));
    assert_eq!(scrolled[0], "s37");
    let (last, shown) = names(&with(Pane { first: usize::MAX, ..Pane::default() }));
    assert_eq!(last.last().map(String::as_str), Some("s00"), "{shown}");
    let (by_name, shown) = names(&with(Pane { by: Some(0), ..Pane::default() }));
    assert!(by_name[0] == "s00" && shown.contains("ZONE ▼"), "{shown}");
    let (turned, _) = names(&with(Pane { by: Some(0), is_turned: true, first: 0 }));
    assert_eq!(turned[0], "s39");
    let (failing, shown) = names(&Choice { only_failing: true, ..Choice::default() });
    assert_eq!(failing, ["s39"], "{shown}");
    assert!(!shown.contains("limit_req") && shown.contains("502 connection refused"), "{shown}");
}

#[test]
fn the_number_of_columns_is_that_of_the_tables() {
    let doc = document(1);
    let choice = Choice::default();
    let language = Language::English;
    let screen =
        Screen { doc: &doc, before: None, language, trouble: None, choice: &choice, edges: &[], has_keys: true };
    assert_eq!(tables::of(&screen).map(|listing| listing.heads.len()), tables::COLUMNS);
}

#[test]
fn rows_are_shared_among_the_tables() {
    assert_eq!(shares(10, [40, 2, 3]), [5, 2, 3]);
    assert_eq!(shares(2, [1, 1, 1]), [1, 1, 0]);
    assert_eq!(shares(99, [4, 0, 1]), [4, 0, 1]);
}

#[test]
fn it_is_said_in_korean_too() {
    let shown = screen(100, 40, Language::Korean);
    assert!(shown.contains("▲ 한도 근접  업스트림 포트 (0.85) · 9초 뒤 한도 도달"), "{shown}");
    for part in ["증가 없음", "재사용", "초당 요청", "1.2k/초", "9.0초", "정상"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("/s ") && !shown.contains(" up"), "{shown}");
}

#[test]
fn small_terminals_and_strange_documents_are_drawn() {
    for (columns, rows) in [(80, 24), (40, 10), (30, 5), (1, 1), (300, 100)] {
        for line in screen(columns, rows, Language::Korean).lines() {
            assert!(Span::raw(line).width() <= usize::from(columns), "{columns}x{rows}: {line}");
        }
    }
    assert!(
        screen(40, 10, Language::English).contains("Ports to"),
        "what is near its limit has a name on any terminal"
    );
    for doc in [
        json!(null),
        json!([]),
        json!({"waterlines": [null, 3], "snapshot": {"http": {"upstreams": {"a": {"peers": [null]}}}}}),
    ] {
        let (language, choice) = (Language::English, Choice::default());
        let screen = Screen {
            doc: &doc,
            before: Some(&doc),
            language,
            trouble: Some("gone"),
            choice: &choice,
            edges: &[],
            has_keys: true,
        };
        let lines = text(&screen, 80, 24);
        assert!(lines[0].contains("▲ gone") && lines[1].contains("no figures yet"), "{lines:?}");
    }
}

#[test]
fn numbers_are_short() {
    for (number, expected) in
        [(0.0, "0"), (7.25, "7.2"), (999.0, "999"), (999.7, "1k"), (28_230.0, "28.2k"), (5e12, "5000G")]
    {
        assert_eq!(short(Some(number)), expected);
    }
    for (ms, english, korean) in [
        (Some(0.43), "430 µs", "430 µs"),
        (None, "–", "–"),
        (Some(59_940.0), "59.9 s", "59.9초"),
        (Some(59_990.0), "1 min 0 s", "1분 0초"),
        (Some(150_000.0), "2 min 30 s", "2분 30초"),
        (Some(7_260_000.0), "2 h 1 min", "2시간 1분"),
        (Some(180_000_000.0), "2 d 2 h", "2일 2시간"),
    ] {
        let said = time(ms);
        assert_eq!((said.say(Language::English), said.say(Language::Korean)), (english, korean));
    }
    assert_eq!(escaped("a/b~c"), "a~1b~0c");
}
