//! Tests reporters against receivers on loopback.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use super::*;
use crate::record::{Merger, Recorder};

/// A multiple of the length of a period.
const T: u64 = 1_795_186_840_000;

#[test]
fn a_pushgateway_gets_sums_of_counters_and_the_last_of_the_rest() {
    let (address, requests) = http(&[200, 202]);
    let json = format!(
        r#"{{"type": "prometheus", "pushgateway": "http://me:pw@{address}/up", "tags": ["a:x y", "b:1:\"2"]}}"#
    );
    let said = publish(&json, 2);
    assert_eq!(said, Vec::<String>::new());
    let requests: Vec<String> = requests.iter().take(2).map(|body| String::from_utf8(body).unwrap()).collect();
    let job = |request: &str| request.lines().next().unwrap().to_owned();
    assert!(requests[0].starts_with("POST /up/metrics/job/"), "{}", requests[0]);
    assert_eq!(job(&requests[0]), job(&requests[1]));
    assert!(requests[0].contains("\r\nAuthorization: Basic bWU6cHc=\r\n"), "{}", requests[0]);
    let labels = r#",a="x y",b="1:\"2""#;
    for (request, counted) in requests.iter().zip([2, 4]) {
        for line in [
            "# TYPE artillery_counters counter".to_owned(),
            format!(r#"artillery_counters{{metric="errors_etimedout_a:1"{labels}}} {counted}"#),
            format!(r#"artillery_rates{{metric="http_request_rate"{labels}}} 1"#),
            "# TYPE artillery_summaries gauge".to_owned(),
            format!(r#"artillery_summaries{{metric="http_response_time_p99"{labels}}} 5"#),
            format!(r#"artillery_summaries{{metric="http_response_time_count"{labels}}} 1"#),
        ] {
            assert!(request.lines().any(|seen| seen == line), "{line}\n{request}");
        }
    }
}

#[test]
fn statsd_gets_a_line_for_each_figure_and_events_around_them() {
    let (socket, port) = udp();
    publish(
        &format!(
            r#"{{"type": "datadog", "port": {port}, "tags": ["id:7"], "event": {{"title": "T", "tags": ["e:1"]}}}}"#
        ),
        1,
    );
    let lines = received(&socket);
    assert_eq!(lines[0], "_e{10,16}:Started: T|Target: http://a|p:low|t:info|#id:7,e:1");
    assert_eq!(lines[1], "artillery.errors.ETIMEDOUT a_1:2|c|#id:7");
    assert!(lines.contains(&"artillery.http.response_time.p95:5|g|#id:7".to_owned()), "{lines:?}");
    assert!(lines.contains(&"artillery.http.request_rate:1|g|#id:7".to_owned()), "{lines:?}");
    assert!(lines.last().unwrap().starts_with("_e{11,16}:Finished: T|"), "{lines:?}");
    // A counter, eleven figures, a rate, two events.
    assert_eq!(lines.len(), 15, "{lines:?}");
}

#[test]
fn telegraf_has_its_tags_in_the_name_and_no_events() {
    let (socket, port) = udp();
    publish(
        &format!(
            r#"{{"type": "influxdb-statsd", "port": "{port}", "prefix": "p.", "tags": ["id:7", "b:c"], "includeOnly": ["errors.", "http.request"]}}"#
        ),
        1,
    );
    let lines = received(&socket);
    assert_eq!(lines, ["p.errors.ETIMEDOUT_a_1,id=7,b=c:2|c", "p.http.request_rate,id=7,b=c:1|g"]);
}

#[test]
fn a_collector_gets_sums_of_each_period_and_gauges_as_json() {
    let (address, requests) = http(&[200, 200]);
    let json = format!(
        r#"{{"type": "open-telemetry", "serviceName": "shop", "metrics": {{"endpoint": "http://{address}/v1/metrics",
            "headers": {{"x-key": "k"}}, "attributes": {{"env": "it"}}, "exclude": ["http.request_rate"]}}}}"#
    );
    assert_eq!(publish(&json, 2), Vec::<String>::new());
    for request in requests.iter().take(2) {
        let text = String::from_utf8(request).unwrap();
        assert!(
            text.starts_with("POST /v1/metrics HTTP/1.1\r\nContent-Type: application/json\r\nx-key: k\r\n"),
            "{text}"
        );
        let json: serde_json::Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
        let of = &json["resourceMetrics"][0];
        assert_eq!(of["resource"]["attributes"][0]["key"], "service.name");
        assert_eq!(of["resource"]["attributes"][0]["value"]["stringValue"], "shop");
        let metrics = of["scopeMetrics"][0]["metrics"].as_array().unwrap();
        assert_eq!(metrics.len(), 12, "{metrics:?}");
        let sum = &metrics[0];
        assert_eq!(
            (sum["name"].as_str(), &sum["sum"]["aggregationTemporality"]),
            (Some("errors.ETIMEDOUT a:1"), &1.into())
        );
        let point = &sum["sum"]["dataPoints"][0];
        assert_eq!((&point["asDouble"], &point["attributes"][0]["key"]), (&2.0.into(), &"env".into()));
        assert_eq!(metrics[1]["gauge"]["dataPoints"][0]["asDouble"], 5.0);
    }
}

#[test]
fn protobuf_says_what_json_says() {
    let (address, requests) = http(&[200]);
    let metrics = format!(
        r#"{{"exporter": "otlp-proto", "endpoint": "http://{address}/", "attributes": {{"n": 300, "on": true, "x": 0.5}}}}"#
    );
    publish(&format!(r#"{{"type": "open-telemetry", "metrics": {metrics}}}"#), 1);
    let request = requests.recv().unwrap();
    let at = request.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    let inside = |of: &[u8], path: &[u64]| path.iter().fold(of.to_vec(), |of, field| message(&of, *field).remove(0));
    let scope = inside(&request[at..], &[1, 2]);
    let metrics = message(&scope, 2);
    assert_eq!(metrics.len(), 13);
    assert_eq!(inside(&metrics[0], &[1]), b"errors.ETIMEDOUT a:1");
    let sum = inside(&metrics[0], &[7]);
    assert_eq!((varint(&sum, 2), varint(&sum, 3)), (1, 1));
    let point = inside(&sum, &[1]);
    let double = |of: &[u8], field| f64::from_bits(fields(of).into_iter().find(|seen| seen.0 == field).unwrap().1);
    assert_eq!(double(&point, 4), 2.0);
    let attributes = message(&point, 7);
    assert_eq!(varint(&inside(&attributes[0], &[2]), 3), 300);
    assert_eq!(varint(&inside(&attributes[1], &[2]), 2), 1);
    assert_eq!(double(&inside(&attributes[2], &[2]), 4), 0.5);
    assert_eq!(inside(&attributes[3], &[1]), b"startTime");
    assert_eq!(double(&inside(&metrics[2], &[5, 1]), 4), 5.0);
}

#[test]
fn who_fails_is_named_once_and_counted_and_the_others_get_theirs() {
    let (address, _requests) = http(&[503, 200, 503]);
    let (socket, port) = udp();
    let reporters = [
        reporter(&format!(r#"{{"type": "prometheus", "pushgateway": "http://{address}"}}"#)),
        reporter(&format!(r#"{{"type": "statsd", "port": {port}, "event": {{"send": "false"}}}}"#)),
    ];
    let mut publisher = Publisher::start(&reporters, "http://a").unwrap().unwrap();
    publisher.started();
    let period = period();
    (0..3).for_each(|_| publisher.period(&period));
    let said = publisher.finish();
    let name = format!("prometheus at http://{address}");
    let once = format!("publish-metrics: {name}: the server answered 503 (weir prints this once; the run continues)");
    let all = format!("publish-metrics: 2 of 3 periods did not reach {name}: the server answered 503");
    assert_eq!(said, [once, all]);
    assert_eq!(received(&socket).len(), 3 * 13);
}

#[test]
fn a_queue_that_is_full_drops_and_counts() {
    let (queue, messages) = mpsc::sync_channel(PERIODS_MAX);
    let (_say, sentences) = mpsc::sync_channel(1);
    let (tell, tallies) = mpsc::sync_channel(1);
    let mut publisher = Publisher { queue, sentences, tallies, dropped: 0 };
    let period = period();
    (0..PERIODS_MAX + 3).for_each(|_| publisher.period(&period));
    tell.send(Vec::new()).unwrap();
    assert_eq!(publisher.finish(), ["publish-metrics: weir dropped 3 periods, because 60 were already waiting"]);
    assert_eq!(messages.iter().count(), PERIODS_MAX);
}

#[test]
fn nobody_to_send_to_is_no_thread() {
    assert!(Publisher::start(&[], "http://a").unwrap().is_none());
    let said = publish(r#"{"type": "prometheus", "pushgateway": "http://127.0.0.1:1"}"#, 1);
    assert!(said[0].contains("ECONNREFUSED"), "{said:?}");
}

/// One period: a counter of 2, a rate, a histogram with one value.
fn period() -> Period {
    let recorder = Recorder::at(T + 5);
    recorder.count(recorder.metric("errors.ETIMEDOUT a:1"), 2);
    recorder.rate(recorder.metric("http.request_rate"));
    recorder.sample(recorder.metric("http.response_time"), 5.0);
    let mut merger = Merger::default();
    merger.add(recorder.take(u64::MAX));
    merger.close(u64::MAX).first().unwrap().clone()
}

fn reporter(json: &str) -> Reporter {
    Reporter::read(&crate::value::parse_json(json.as_bytes()).unwrap()).unwrap()
}

/// Publishes the period this many times; returns the messages for the user.
fn publish(json: &str, times: usize) -> Vec<weir_words::Said> {
    let mut publisher = Publisher::start(&[reporter(json)], "http://a").unwrap().unwrap();
    publisher.started();
    let period = period();
    (0..times).for_each(|_| publisher.period(&period));
    publisher.finish()
}

fn udp() -> (UdpSocket, u16) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

/// All received lines. When the publisher has ended, all of them have arrived.
fn received(socket: &UdpSocket) -> Vec<String> {
    socket.set_nonblocking(true).unwrap();
    let mut lines = Vec::new();
    let mut buf = [0; 4096];
    while let Ok(len) = socket.recv(&mut buf) {
        assert!(len <= 1432);
        lines.extend(std::str::from_utf8(&buf[..len]).unwrap().split('\n').map(str::to_owned));
    }
    lines
}

/// A server that gives these answers, each on a new connection, and returns the requests.
fn http(statuses: &'static [u16]) -> (SocketAddr, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (give, requests) = mpsc::channel();
    worker::block_aside("receiver", move || {
        for status in statuses {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let mut request = Vec::new();
            let mut buf = [0; 4096];
            while !is_whole(&request) {
                let len = stream.read(&mut buf).unwrap();
                request.extend_from_slice(&buf[..len]);
            }
            stream.write_all(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n").as_bytes()).unwrap();
            let _ = give.send(request);
        }
    })
    .unwrap();
    (address, requests)
}

fn is_whole(request: &[u8]) -> bool {
    let Some(at) = request.windows(4).position(|end| end == b"\r\n\r\n") else { return false };
    let head = std::str::from_utf8(&request[..at]).unwrap();
    let length = head.split("Content-Length: ").nth(1).unwrap().lines().next().unwrap();
    request.len() == at + 4 + length.parse::<usize>().unwrap()
}

/// Fields of a protobuf message: number, value (a length for bytes), and the bytes.
fn fields(mut of: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
    let mut fields = Vec::new();
    while !of.is_empty() {
        let key = read_varint(&mut of);
        let mut bytes = Vec::new();
        let value = match key & 7 {
            0 => read_varint(&mut of),
            1 => {
                let (fixed, rest) = of.split_at(8);
                of = rest;
                u64::from_le_bytes(fixed.try_into().unwrap())
            }
            kind => {
                assert_eq!(kind, 2);
                let length = read_varint(&mut of);
                let (inner, rest) = of.split_at(length as usize);
                (of, bytes) = (rest, inner.to_vec());
                length
            }
        };
        fields.push((key >> 3, value, bytes));
    }
    fields
}

fn message(of: &[u8], field: u64) -> Vec<Vec<u8>> {
    fields(of).into_iter().filter(|seen| seen.0 == field).map(|seen| seen.2).collect()
}

fn varint(of: &[u8], field: u64) -> u64 {
    fields(of).into_iter().find(|seen| seen.0 == field).unwrap().1
}

fn read_varint(of: &mut &[u8]) -> u64 {
    let mut value = 0;
    for (index, byte) in of.iter().enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            *of = &of[index + 1..];
            break;
        }
    }
    value
}
