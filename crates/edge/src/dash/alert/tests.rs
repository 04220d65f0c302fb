//! Tests: alerts against receivers that work, fail, are slow, or are not there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use weir_dash::verdict::State;
use weir_words::Language;

use super::*;

const SHORT: Patience = Patience { timeout: Duration::from_millis(300), pauses: [Duration::from_millis(20); 3] };
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const BROKEN: &str = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";

/// A receiver with this URL and short patience.
pub fn receiver(url: &str) -> Receiver {
    Receiver {
        url: Url::parse(url).unwrap(),
        form: Form::Json,
        after: Duration::ZERO,
        interval: None,
        from: State::Near,
        name: "edge-1".to_owned(),
        language: Language::English,
        trusted: Vec::new(),
        tls: Err("the test speaks no TLS".to_owned()),
        patience: SHORT,
    }
}

/// Answers one connection after the other with these texts; gives the requests.
fn serve(answers: Vec<&'static str>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/secret/path?key=x", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let one = |answer: &str| {
            let (mut stream, _) = listener.accept().unwrap();
            let request = request(&mut stream);
            stream.write_all(answer.as_bytes()).unwrap();
            request
        };
        answers.into_iter().map(one).collect()
    });
    (url, served)
}

fn request(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    loop {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap();
        all.extend_from_slice(&bytes[..count]);
        let text = String::from_utf8_lossy(&all).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
        if body.len() >= length.parse().unwrap() {
            return text;
        }
    }
}

fn outcome(receiver: &Receiver) -> Result<(), String> {
    let (receiver, wanted) = (receiver.clone(), Arc::new(()));
    // A thread is a worker once.
    let tried = move || {
        let until = Arc::downgrade(&wanted);
        let _wanted = wanted;
        worker::block_on(
            async move { deliver(&receiver, b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", &until).await },
        )
    };
    std::thread::spawn(tried).join().unwrap().unwrap()
}

#[test]
fn a_try_that_fails_is_repeated_and_a_refusal_is_not() {
    let (url, served) = serve(vec![BROKEN, OK]);
    assert_eq!(outcome(&receiver(&url)), Ok(()));
    assert_eq!(served.join().unwrap().len(), 2);
    let (url, served) = serve(vec!["HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"]);
    assert_eq!(outcome(&receiver(&url)), Err("it answered with status 404 after 1 try".to_owned()));
    served.join().unwrap();
    let (url, served) = serve(vec![BROKEN; 4]);
    assert_eq!(outcome(&receiver(&url)), Err("it answered with status 503 after 4 tries".to_owned()));
    served.join().unwrap();
}

#[test]
fn a_silent_or_absent_receiver_takes_bounded_time_and_no_secret_is_told() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let begun = Instant::now();
    let why = outcome(&receiver(&format!("http://user:pw@127.0.0.1:{port}/secret"))).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(why.starts_with("recv() failed") && why.ends_with("(127.0.0.1) after 4 tries"), "{why}");
    drop(silent);
    let why = outcome(&receiver(&format!("http://127.0.0.1:{port}/secret"))).unwrap_err();
    assert!(why.contains("failed (111: Connection refused) after 4 tries") && !why.contains("secret"), "{why}");
    let why = outcome(&receiver("http://no-such-host.invalid/secret")).unwrap_err();
    assert!(why.starts_with("no-such-host.invalid could not be resolved") && !why.contains("secret"), "{why}");
    let https = outcome(&receiver(&format!("https://127.0.0.1:{port}/")));
    assert!(https.unwrap_err().contains("Connection refused"));
}

fn verdict(state: State) -> Verdict {
    Verdict { state, ..Verdict::default() }
}

/// From the verdict of a second to the request at the receiver, twice on one thread.
#[test]
fn a_change_of_the_verdict_reaches_the_receiver() {
    let (url, served) = serve(vec![OK, OK]);
    let alerts = Alerts::default();
    alerts.set(&[Arc::new(receiver(&url))], None).unwrap();
    for (state, at) in [(State::Healthy, 1000), (State::Failing, 2000), (State::Failing, 3000), (State::Healthy, 4000)]
    {
        alerts.observe(&verdict(state), at);
    }
    let requests = served.join().unwrap();
    assert!(requests[0].starts_with("POST /secret/path?key=x HTTP/1.1\r\nHost: 127.0.0.1:"), "{}", requests[0]);
    assert!(requests[0].contains("\"event\":\"begins\"") && requests[1].contains("\"event\":\"ends\""), "{requests:?}");
}

#[test]
fn a_password_in_the_url_is_a_field_of_the_request() {
    let mut receiver = receiver("http://ann:pw@am.test:9093");
    receiver.form = Form::Alertmanager;
    let alert = receiver.alarm().observe(&verdict(State::Near), 1000, true).unwrap();
    let text = String::from_utf8(super::request(&receiver, &alert)).unwrap();
    assert!(text.starts_with("POST /api/v2/alerts HTTP/1.1\r\nHost: am.test:9093\r\n"), "{text}");
    assert!(text.contains("\r\nAuthorization: Basic YW5uOnB3\r\n"), "{text}");
}

/// A receiver that hangs costs the observer nothing: the queue fills, and alerts are dropped.
#[test]
fn a_full_queue_and_a_full_hour_stop_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let alerts = Alerts::default();
    let mut slow = receiver(&format!("http://{}/", silent.local_addr().unwrap()));
    slow.patience.timeout = Duration::from_secs(5);
    let slow = Arc::new(slow);
    alerts.set(std::slice::from_ref(&slow), None).unwrap();
    let begun = Instant::now();
    for second in 0..4 * AN_HOUR_MAX as u64 {
        let state = if second % 2 == 0 { State::Failing } else { State::Healthy };
        alerts.observe(&verdict(state), second * 1000);
    }
    assert!(begun.elapsed() < Duration::from_secs(4), "the observer waited {:?}", begun.elapsed());
    assert_eq!(lock(&alerts.0)[0].sent.len(), AN_HOUR_MAX);
    // The next hour has room again.
    alerts.observe(&verdict(State::Failing), HOUR_MS + 500_000);
    assert_eq!(lock(&alerts.0)[0].sent.len(), 1);
    // A reload that changes nothing keeps what was told; another one begins anew.
    alerts.set(&[Arc::new((*slow).clone())], None).unwrap();
    assert_eq!(lock(&alerts.0)[0].sent.len(), 1);
    let other = Receiver { name: "edge-2".to_owned(), ..(*slow).clone() };
    alerts.set(&[Arc::new(other)], None).unwrap();
    assert_eq!(lock(&alerts.0)[0].sent.len(), 0);
}
