//! The closed loop over loopback, against a small server made with the standard library.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// The server must not depend on the tested code.
#![allow(clippy::disallowed_methods)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use weir_load::quick::{QuickRun, run};
use weir_load::{Report, RequestFailure};

/// The server's action for the nth request, counted from 0.
type Script = fn(&mut TcpStream, usize) -> bool;

/// Answers until the script returns false; threads end with their connections.
fn serve(script: Script) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, seen) = (stream.unwrap(), seen.clone());
            thread::spawn(
                move || {
                    while read_head(&mut stream) && script(&mut stream, seen.fetch_add(1, Ordering::SeqCst)) {}
                },
            );
        }
    });
    address
}

fn read_head(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return false;
        }
        head.extend(byte);
    }
    assert!(head.starts_with(b"GET /x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:"), "{}", String::from_utf8_lossy(&head));
    true
}

fn load(address: SocketAddr, connections: usize, requests: u64) -> Report {
    run(&QuickRun {
        url: format!("http://{address}/x?y=1"),
        connections,
        threads: 2,
        duration: Duration::from_secs(60),
        requests_max: Some(requests),
        timeout: Duration::from_millis(300),
        ..QuickRun::default()
    })
    .unwrap()
}

fn failures(report: &Report) -> Vec<(RequestFailure, u64)> {
    report.failures.iter().map(|(&failure, &count)| (failure, count)).collect()
}

#[test]
fn every_framing_is_read_to_its_end() {
    let address = serve(|stream, n| {
        let chunked: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n";
        let length: &[u8] = b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        let none: &[u8] = b"HTTP/1.1 204 No\r\n\r\n";
        let close: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nabc";
        let (answer, goes_on) = match n % 4 {
            0 => (chunked, true),
            1 => (length, true),
            2 => (none, true),
            _ => (close, false),
        };
        stream.write_all(answer).is_ok() && goes_on
    });
    let report = load(address, 4, 40);
    assert_eq!((report.requests, failures(&report)), (40, vec![]));
    assert_eq!((report.response.count(), report.threads), (40, 2));
    assert!(report.received_bytes > 40 * 20 && report.rate() > 0.0);
    assert!(report.response.quantile(0.5) <= report.response.max());
}

#[test]
fn errors_have_their_names() {
    let address = serve(|stream, n| {
        let answer: &[u8] = match n {
            0 => b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
            1 => b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
            2 => b"",
            3 => b"rubbish",
            4 => b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            _ => b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
        };
        stream.write_all(answer).is_ok() && matches!(n, 0 | 5..)
    });
    let report = load(address, 1, 7);
    let expect = vec![
        (RequestFailure::Closed, 2),
        (RequestFailure::Invalid, 2),
        (RequestFailure::Status(404), 2),
        (RequestFailure::Status(503), 1),
    ];
    assert_eq!((report.requests, failures(&report)), (3, expect));
    assert_eq!(report.errors(), 7);
}

#[test]
fn silence_is_a_timeout() {
    let address = serve(|stream, _| stream.read(&mut [0]).is_err());
    let report = load(address, 1, 2);
    assert_eq!((report.requests, failures(&report)), (0, vec![(RequestFailure::Timeout, 2)]));
}

#[test]
fn nobody_there_is_a_connect_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let report = load(address, 3, 9);
    assert_eq!((report.requests, failures(&report)), (0, vec![(RequestFailure::Connect, 9)]));
}

#[test]
fn the_time_ends_it_too() {
    let address = serve(|stream, _| stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_ok());
    let quick = QuickRun {
        url: format!("http://{address}/x?y=1"),
        connections: 2,
        duration: Duration::from_millis(100),
        ..QuickRun::default()
    };
    let report = run(&quick).unwrap();
    assert!(report.requests > 0 && report.errors() == 0 && report.elapsed >= quick.duration);
}
