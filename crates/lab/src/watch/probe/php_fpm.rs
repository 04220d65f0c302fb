//! PHP-FPM's workers, from the status page of a pool (`pm.status_path`), asked over FastCGI.
//!
//! A pool whose workers are all busy answers this page late: it needs a worker as well. `pm.status_listen` gives the page
//! a process of its own. <https://www.php.net/manual/en/install.fpm.configuration.php>

use serde::Deserialize;
use weir_wire::fastcgi::{
    END_OF_STDIN, FastCgiDecoder, FastCgiEvent, begin_params, end_params, push_begin, push_param,
};

use super::detail::{Detail, shown};
use super::program::Probe;
use super::slow_log;
use super::ways::{Reading, ask, url};
use crate::said::say;

/// The page in JSON. Names are PHP-FPM's.
#[derive(Deserialize)]
struct Page {
    #[serde(rename = "process manager")]
    manager: String,
    #[serde(rename = "accepted conn")]
    accepted: f64,
    #[serde(rename = "listen queue")]
    queue: f64,
    #[serde(rename = "idle processes")]
    idle: f64,
    #[serde(rename = "active processes")]
    active: f64,
    #[serde(rename = "max children reached")]
    reached: f64,
    #[serde(rename = "slow requests", default)]
    slow: f64,
}

/// A worker, of the page with `full`.
#[derive(Deserialize)]
struct Worker {
    state: String,
    /// µs.
    #[serde(rename = "request duration", default)]
    duration: f64,
    #[serde(rename = "request method", default)]
    method: String,
    #[serde(rename = "request uri", default)]
    uri: String,
    #[serde(default)]
    script: String,
}

/// The group of the scripts of busy workers; the longest time of a request so far, µs.
pub const SCRIPT: &str = "script";
/// The group of their requests.
pub const REQUEST: &str = "request";
/// The group of the places of scripts at which the slow log found them.
pub const PLACE: &str = "place";

/// Takes a reading. The place is `HOST:PORT`, with an optional `/PATH`, or the socket's path, with an optional `:/PATH`.
pub fn read(probe: &Probe, detail: &mut Detail) -> Result<Reading, String> {
    let (at, path) = place(&probe.at);
    let path = path.unwrap_or_else(|| "/status".to_owned());
    let request = request(&path).ok_or_else(|| format!("{at}: the path {path} is too long"))?;
    let body = body(&ask(&at, &request)?).ok_or_else(|| format!("{at}: the answer is not FastCGI"))?;
    let colon = if at.starts_with('/') { ":" } else { "" };
    let found = of(&body).ok_or_else(|| {
        format!("{at}: no status page at {path}: write pm.status_path = {path} into the pool, or --probe php-fpm={at}{colon}/PATH")
    })?;
    match workers(&body) {
        Some(all) => all.iter().for_each(|worker| noted(worker, &path, detail)),
        None => detail.lack(say!(PHP_FPM_LACKS_WORKERS)),
    }
    match slow_log::places(probe.pid) {
        Some(all) => all.iter().for_each(|(place, count)| detail.total(PLACE, place, &[*count])),
        None => detail.lack(say!(PHP_FPM_LACKS_SLOW_LOG)),
    }
    Ok(found)
}

fn workers(page: &str) -> Option<Vec<Worker>> {
    let page: serde_json::Value = serde_json::from_str(page).ok()?;
    Vec::deserialize(page.get("processes")?).ok()
}

/// Notes the request of a busy worker. The query of its address may have secrets.
fn noted(worker: &Worker, page: &str, detail: &mut Detail) {
    let uri = worker.uri.split('?').next().unwrap_or_default();
    if worker.state != "Running" || uri == page {
        return;
    }
    let script = shown(&worker.script);
    detail.see(SCRIPT, &script);
    detail.see(REQUEST, &shown(&format!("{} {uri}", worker.method)));
    if detail.looks > 1 {
        detail.largest(SCRIPT, &script, worker.duration);
    }
}

/// The address or the socket's path, and the path of the page if there is one.
fn place(at: &str) -> (String, Option<String>) {
    if !at.starts_with('/') {
        return url(at);
    }
    match at.split_once(":/") {
        Some((socket, page)) => (socket.to_owned(), Some(format!("/{page}"))),
        None => (at.to_owned(), None),
    }
}

fn request(path: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    push_begin(&mut out, false);
    let at = begin_params(&mut out);
    let params =
        [("REQUEST_METHOD", "GET"), ("SCRIPT_NAME", path), ("SCRIPT_FILENAME", path), ("QUERY_STRING", "full&json")];
    for (name, value) in params {
        push_param(&mut out, name.as_bytes(), value.as_bytes());
    }
    end_params(&mut out, at).ok()?;
    out.extend_from_slice(&END_OF_STDIN);
    Some(out)
}

/// The bytes after the head of the answer.
fn body(records: &[u8]) -> Option<String> {
    let (mut decoder, mut at, mut text) = (FastCgiDecoder::new(), 0, Vec::new());
    loop {
        match decoder.next(records, &mut at).ok()? {
            FastCgiEvent::Stdout { start, end } => text.extend_from_slice(records.get(start..end)?),
            FastCgiEvent::Stderr { .. } | FastCgiEvent::Closed => {}
            FastCgiEvent::End | FastCgiEvent::NeedMore => break,
        }
    }
    let text = String::from_utf8_lossy(&text);
    text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

fn of(page: &str) -> Option<Reading> {
    let page: Page = serde_json::from_str(page).ok()?;
    let mut found: Reading = [
        ("accepted", page.accepted),
        ("active", page.active),
        ("queue", page.queue),
        ("reached", page.reached),
        ("slow", page.slow),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    // The page does not have the limit. Unless the pool is static, "no idle worker" can mean that the next one is about
    // to start; only a pool that has reached its limit is known to be full.
    if page.manager == "static" || page.reached > 0.0 {
        found.extend([("busy".to_owned(), page.active), ("idle".to_owned(), page.idle)]);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read, Write};

    use super::*;
    use crate::watch::probe::kind;

    #[test]
    fn a_busy_worker_has_a_script_and_no_secret() {
        let page = r#"{"processes": [
            {"pid": 7, "state": "Running", "request duration": 52000, "request method": "GET", "request uri": "/x.php?token=s3cret", "script": "/srv/x.php"},
            {"pid": 8, "state": "Running", "request duration": 12000, "request method": "GET", "request uri": "/x.php", "script": "/srv/x.php"},
            {"pid": 9, "state": "Running", "request uri": "/status?full&json", "script": "-"},
            {"pid": 9, "state": "Idle", "request uri": "/x.php", "script": "/srv/x.php"}]}"#;
        let mut detail = Detail::default();
        for _ in 0..3 {
            detail.begin();
            workers(page).unwrap().iter().for_each(|worker| noted(worker, "/status", &mut detail));
        }
        assert_eq!(detail.mean(SCRIPT), [("/srv/x.php".to_owned(), 4.0)]);
        assert_eq!(detail.mean(REQUEST), [("GET /x.php".to_owned(), 4.0)]);
        assert_eq!(detail.most(SCRIPT, "/srv/x.php"), Some(52_000.0));
        assert!(workers("{}").is_none());
    }

    fn page(manager: &str, reached: u32) -> String {
        format!(
            r#"{{"pool":"www","process manager":"{manager}","start time":1,"start since":9,"accepted conn":40,"listen queue":7,
            "max listen queue":9,"listen queue len":511,"idle processes":0,"active processes":5,"total processes":5,
            "max active processes":5,"max children reached":{reached},"slow requests":2}}"#
        )
    }

    #[test]
    fn a_pool_is_full_only_if_its_limit_is_known() {
        let found = of(&page("static", 0)).unwrap();
        assert_eq!((found["busy"], found["idle"], found["queue"], found["slow"]), (5.0, 0.0, 7.0, 2.0));
        assert_eq!(of(&page("ondemand", 0)).unwrap().get("busy"), None);
        assert_eq!(of(&page("dynamic", 1)).unwrap()["busy"], 5.0);
        assert_eq!(of("File not found.\n"), None);
    }

    #[test]
    fn a_place_has_an_address_or_a_socket_and_a_path() {
        let is = |at: &str, path: Option<&str>| (at.to_owned(), path.map(str::to_owned));
        assert_eq!(place("/run/php/a.sock"), is("/run/php/a.sock", None));
        assert_eq!(place("/run/php/a.sock:/fpm"), is("/run/php/a.sock", Some("/fpm")));
        assert_eq!(place("127.0.0.1:9000/s"), is("127.0.0.1:9000", Some("/s")));
    }

    #[test]
    fn a_socket_is_asked_over_fastcgi() {
        let at = std::env::temp_dir().join(format!("weir-fpm-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&at);
        let listener = std::os::unix::net::UnixListener::bind(&at).unwrap();
        let pool = std::thread::Builder::new().spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = [0; 1024];
            let count = stream.read(&mut heard).unwrap();
            let text = format!("Content-type: application/json\r\n\r\n{}", page("static", 0));
            let mut answer = vec![1, 6, 0, 1];
            answer.extend_from_slice(&(text.len() as u16).to_be_bytes());
            answer.extend_from_slice(&[0, 0]);
            answer.extend_from_slice(text.as_bytes());
            answer.extend_from_slice(&[1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            stream.write_all(&answer).unwrap();
            String::from_utf8_lossy(heard.get(..count).unwrap()).into_owned()
        });
        let probe = Probe {
            kind: kind("php-fpm").unwrap(),
            process: String::new(),
            pid: 0,
            at: at.display().to_string(),
            dir: "/".into(),
        };
        let mut detail = Detail::default();
        assert_eq!(read(&probe, &mut detail).unwrap()["busy"], 5.0);
        assert!(detail.lacks.len() == 2 && detail.lacks[1].contains("request_slowlog_timeout"), "{:?}", detail.lacks);
        let heard = pool.unwrap().join().unwrap();
        assert!(heard.contains("SCRIPT_NAME/status") && heard.contains("QUERY_STRINGfull&json"), "{heard}");
        let _ = std::fs::remove_file(&at);
    }

    mod mutate {
        use super::*;
        /// The answer of a pool, or of something else: a page that is read, or none.
        #[test]
        fn answers() {
            let page = b"Content-Type: application/json\r\n\r\n{\"process manager\":\"static\",\"active processes\":1}";
            let mut record = vec![1, 6, 0, 1, 0, page.len() as u8, 0, 0];
            record.extend_from_slice(page);
            let words: [&[u8]; 5] =
                [b"\r\n\r\n", &[1, 3, 0, 1, 0, 8, 0, 0], &[1, 7, 0, 1, 0, 1, 0, 0], &[255, 255], b"1e999"];
            weir_mutate::mutate(&[record], &words, |records| {
                if let Some(page) = body(records) {
                    assert!(page.len() <= 3 * records.len());
                    let _ = (of(&page), workers(&page));
                }
            });
        }
    }
}
