#![allow(clippy::unwrap_used)]
use weir_meter::live::Timestamp;

use super::*;

/// 2026-11-22T20:09:17Z.
const AT: u64 = 1_795_378_157_000;
const ID: &str = "0123456789abcdef0123456789abcdef";

fn sample(number: u64, at: u64, ids: &[&str]) -> ErrorSample {
    ErrorSample {
        number,
        at: Timestamp(at),
        request: "GET /api/cart".to_owned(),
        took_us: 500_000,
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..ErrorSample::default()
    }
}

fn tail(text: &str) -> Tail {
    Tail { bytes: text.as_bytes().to_vec(), is_whole: true, modified_ms: AT as i64 + 3000 }
}

fn found(text: &str, samples: &[&ErrorSample]) -> Logs {
    let mut logs = Logs::default();
    logs.add("app.log", "app", Ok(tail(text)), samples, 0);
    logs
}

#[test]
fn an_id_is_sure_and_time_is_a_guess() {
    let text = format!(
        "2026-11-22T20:09:10Z before\n2026-11-22T20:09:16.800Z order 7 failed\n    at Shop.cart (shop.js:9)\n    at next\n\
         2026-11-22T20:09:17.100Z fine\n2026-11-22T20:09:30Z late, request_id={ID}.\n"
    );
    let (by_id, by_time) = (sample(2, AT, &[ID]), sample(1, AT, &[]));
    let logs = found(&text, &[&by_id, &by_time]);
    assert_eq!(logs.logs[0].note, None);
    let [one, other] = logs.found.as_slice() else { panic!("{logs:?}") };
    assert_eq!((one.sample, one.by, one.entries.len()), (2, By::Id, 1));
    assert_eq!((other.sample, other.by, other.entries.len()), (1, By::Time, 2));
    assert_eq!(other.entries[0].lines().count(), 3, "a trace stays with its line");
}

#[test]
fn ids_are_found_in_what_frameworks_write() {
    let wanted = sample(1, AT, &[ID, "req-77-abcd"]);
    for line in [
        format!("{{\"time\":{AT},\"trace_id\":\"{ID}\"}}"),
        format!("[{ID}] boom"),
        format!("traceparent: 00-{ID}-0123456789abcdef-01"),
        "X-Request-ID: req-77-abcd".to_owned(),
    ] {
        let logs = found(&format!("unrelated\n{line}\n"), &[&wanted]);
        assert_eq!(logs.found.first().map(|found| found.by), Some(By::Id), "{line}");
    }
    assert!(!is_id(b"short") && !is_id(b"with a space") && is_id(ID.as_bytes()));
}

#[test]
fn a_zone_that_is_not_said_is_told_by_the_last_change() {
    // Nine hours ahead of UTC: Seoul's time, without a zone in the text.
    let logs = found("2026-11-23 05:09:16.900 failed\n2026-11-23 05:09:20.000 last\n", &[&sample(1, AT, &[])]);
    assert_eq!(logs.found[0].entries, ["2026-11-23 05:09:16.900 failed"]);
    // The file's last change does not fit any zone, so this machine's zone is used.
    let mut old = tail("2026-11-22 21:09:16 failed\n");
    old.modified_ms = AT as i64 + 400_000;
    let mut logs = Logs::default();
    logs.add("app.log", "", Ok(old), &[&sample(1, AT, &[])], HOUR_MS);
    assert_eq!(logs.found.len(), 1);
}

#[test]
fn times_without_a_day_go_back_over_midnight() {
    let text = "23:59:59.000 before\n00:00:30.000 after\n";
    let at = Timestamp::of_civil([2026, 11, 22], [23, 59, 59]).unwrap().0;
    let mut tail = tail(text);
    tail.modified_ms = Timestamp::of_civil([2026, 11, 23], [0, 0, 30]).unwrap().0 as i64;
    let mut logs = Logs::default();
    logs.add("app.log", "", Ok(tail), &[&sample(1, at, &[])], 0);
    assert_eq!(logs.found[0].entries, ["23:59:59.000 before"]);
}

#[test]
fn of_many_lines_the_telling_ones_are_shown() {
    let mut text = String::new();
    for n in 0..100 {
        text.push_str(&format!("2026-11-22T20:09:17Z debug {n}\n"));
    }
    text.push_str("2026-11-22T20:09:17Z ERROR in /api/cart\n");
    for n in 0..100 {
        text.push_str(&format!("2026-11-22T20:09:17Z debug {n}\n"));
    }
    let logs = found(&text, &[&sample(1, AT, &[])]);
    let shown = &logs.found[0];
    assert_eq!((shown.entries.len(), shown.more), (ENTRIES_SHOWN_MAX, 191));
    assert!(shown.entries.iter().any(|line| line.contains("/api/cart")));
}

#[test]
fn what_hinders_is_said_and_all_is_bounded() {
    let wanted = sample(1, AT, &[]);
    assert!(
        found("no time\nnone here\n", &[&wanted]).logs[0].note.as_ref().unwrap().en().contains("cannot read the time")
    );
    assert!(found("", &[&wanted]).logs[0].note.as_ref().unwrap().en().contains("empty"));
    let mut late = tail("cut\n2026-11-22T20:09:19Z x\n");
    late.is_whole = false;
    let mut logs = Logs::default();
    logs.add("app.log", "", Ok(late), &[&wanted], 0);
    assert!(logs.logs[0].note.as_ref().unwrap().en().contains("are earlier"));
    let many: Vec<ErrorSample> = (0..20).map(|number| sample(number, AT, &[])).collect();
    let many: Vec<&ErrorSample> = many.iter().collect();
    let line = format!("2026-11-22T20:09:17Z {}\n", "x".repeat(3000));
    let mut logs = Logs::default();
    for _ in 0..2 {
        logs.add("app.log", "", Ok(tail(&line.repeat(100))), &many, 0);
    }
    let bytes: usize = logs.found.iter().flat_map(|found| &found.entries).map(String::len).sum();
    assert!(bytes <= ANSWER_BYTES_MAX);
    assert_eq!(logs.found.iter().map(|found| found.entries.len() + found.more).sum::<usize>(), 2 * 20 * 100);
    let lines = "x\n".repeat(ENTRIES_MAX + 100);
    assert_eq!(entries(&tail(&lines)).len(), ENTRIES_MAX);
}

mod mutate {
    use super::*;

    /// Lines of any program, container or unit: what is shown is bounded, one text each, and without a secret.
    #[test]
    fn lines_of_programs() {
        let with_id = format!(
            "{{\"time\":{AT},\"trace_id\":\"{ID}\",\"password\":\"hunter22\"}}\nAuthorization: Bearer hunter22\n"
        );
        let seeds = [
            with_id,
            "2026-11-22T20:09:16.800Z order 7 failed\n    at Shop.cart (shop.js:9)\n2026-11-22T20:09:17.100Z fine\n"
                .to_owned(),
            "Nov 22 20:09:16 host app[7]: error: no\n20:09:17.5 warn\n[22/Nov/2026:20:09:17 +0000] x\n".to_owned(),
        ];
        let words = [
            "\n",
            "\r",
            "\x1b[31m",
            "\x1b",
            "9999-99-99T99:99:99Z",
            "0000-01-01 00:00:00",
            "9223372036854775807",
            "-99:99",
            "+2500",
            "23:59:60",
            "\0",
            "\u{e9}",
            "error",
            ID,
            "password=hunter22",
            "\"",
            "=",
        ];
        let samples = [sample(1, AT, &[ID]), sample(2, AT, &[]), sample(3, 0, &[]), sample(4, u64::MAX, &[])];
        let samples: Vec<&ErrorSample> = samples.iter().collect();
        weir_mutate::mutate(&seeds, &words, |bytes| {
            for is_whole in [true, false] {
                for modified_ms in [AT as i64, 0] {
                    let mut logs = Logs::default();
                    logs.add("f", "", Ok(Tail { bytes: bytes.to_vec(), is_whole, modified_ms }), &samples, HOUR_MS);
                    for found in &logs.found {
                        assert!(found.entries.len() <= ENTRIES_SHOWN_MAX);
                        assert!(found.entries.iter().all(|entry| entry.len() <= 8 * plain::ENTRY_BYTES_MAX));
                        assert!(!found.entries.iter().any(|entry| entry.contains(['\0', '\x1b', '\r'])), "{found:?}");
                    }
                }
            }
        });
    }
}
