//! The requests of recordings, with what their answers gave.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use weir_load::client::decode;
use weir_recording::model::{
    RecordedBody, RecordedExchange, RecordedField, RecordedText, RecordedVersion, RecordingPart,
};
use weir_recording::read::RecordingReader;
use weir_words::{Said, said};

use super::plan::bare;
use super::{NotReplayed, SAFE, Traffic, urls};
use crate::doors::Door;
use crate::request::{Hidden, HiddenText, Recorded, SwapField, SwapRequest, field};

/// Most requests that are kept of all recordings.
const REQUESTS_MAX: usize = 2_000_000;
/// The number of the first client: access logs have the numbers below.
const FIRST_CLIENT: u64 = 1 << 32;
/// Fields of the connection, and those that frame the body or that the asker writes itself.
const LEFT_OUT: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The exchanges that become requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordedWish {
    /// Requests are sent that announce an action.
    pub wants_actions: bool,
    /// Requests with other methods are sent, if the recording has their bodies.
    pub wants_all_methods: bool,
}

/// Makes requests of recordings.
pub struct RecordedTraffic<'d> {
    wish: RecordedWish,
    doors: &'d [Door],
    /// The numbers of clients, by the key that hashed them.
    clients: HashMap<(u64, u64), u64>,
    traffic: Traffic,
}

impl<'d> RecordedTraffic<'d> {
    /// Requests go to these doors.
    pub fn new(wish: RecordedWish, doors: &'d [Door]) -> RecordedTraffic<'d> {
        RecordedTraffic { wish, doors, clients: HashMap::new(), traffic: Traffic::default() }
    }

    /// Reads a recording; `name` is for messages. A recording that is cut gives what it has, and a sentence about the rest.
    ///
    /// # Errors
    /// A sentence for the user: the file is no recording that weir can read.
    pub fn recording(&mut self, name: &str, bytes: impl Read) -> Result<(), Said> {
        let fault = |fault: weir_recording::Fault| Said::from(format!("{name}: ")) + fault.said();
        let reader = RecordingReader::new(bytes).map_err(fault)?;
        let (mut begin_us, mut key, mut lost, mut count) = (0, 0, 0, 0);
        let mut others = 0_u64;
        for part in reader {
            let part = match part {
                Ok(part) => part,
                // The parts before the fault are whole.
                Err(why) if count > 0 => {
                    self.traffic.sources.push(fault(why));
                    break;
                }
                Err(why) => return Err(fault(why)),
            };
            match part {
                RecordingPart::Beginning(beginning) => (begin_us, key) = (beginning.unix_us, beginning.key_id),
                RecordingPart::Exchange(exchange) => {
                    count += 1;
                    others += u64::from(!matches!(exchange.version, RecordedVersion::Http10 | RecordedVersion::Http11));
                    self.exchange(&exchange, begin_us, key);
                }
                RecordingPart::Lost(losses) => lost += losses.all(),
                RecordingPart::Configuration(_) | RecordingPart::Message(_) | RecordingPart::Ending(_) => {}
            }
        }
        let mut said = said!("{name}: recording, {count} requests", "{name}: 녹화 파일, 요청 {count}건");
        if lost > 0 {
            said += said!("; the recorder lost {lost} more", ", 녹화 중 잃은 요청 {lost}건");
        }
        if others > 0 {
            said += said!(
                "; {others} came over HTTP/2 or HTTP/3 and are asked over HTTP/1.1",
                ", HTTP/2나 HTTP/3으로 온 요청 {others}건은 HTTP/1.1로 보냅니다"
            );
        }
        self.traffic.sources.push(said);
        Ok(())
    }

    /// The requests of all recordings.
    pub fn finish(self) -> Traffic {
        self.traffic
    }

    fn exchange(&mut self, exchange: &RecordedExchange, begin_us: u64, key: u64) {
        if self.traffic.requests.len() >= REQUESTS_MAX {
            return self.traffic.leave_out(NotReplayed::Beyond);
        }
        match self.request(exchange) {
            Err(why) => self.traffic.leave_out(why),
            Ok(mut request) => {
                let next = FIRST_CLIENT + self.clients.len() as u64;
                request.client = *self.clients.entry((key, exchange.client)).or_insert(next);
                request.at_us = begin_us.saturating_add(exchange.at_us);
                self.traffic.requests.push(request);
            }
        }
    }

    fn request(&self, exchange: &RecordedExchange) -> Result<SwapRequest, NotReplayed> {
        let method = String::from_utf8_lossy(&exchange.method).into_owned();
        let value = |name: &str| exchange.fields.iter().find(|field| field.name == name.as_bytes());
        if method == "CONNECT" || exchange.tunnel != 0 || value("upgrade").is_some() {
            return Err(NotReplayed::Tunnel);
        }
        if !SAFE.contains(&method.as_str()) && !self.wish.wants_all_methods {
            return Err(NotReplayed::Method(method));
        }
        if !self.wish.wants_actions && urls::is_action(&exchange.target.bytes) {
            return Err(NotReplayed::Action);
        }
        if exchange.body.length > 0 && exchange.body.kept.is_none() {
            return Err(NotReplayed::NoBody);
        }
        let named = value("host").map(|field| String::from_utf8_lossy(&field.value.bytes).into_owned());
        let door = self.door(exchange).ok_or(NotReplayed::NoDoor)?;
        let host = match named {
            // The host keeps its name; its port is that of the door.
            Some(named) => match self.doors.get(door) {
                Some(door) if !door.is_default() => format!("{}:{}", bare(&named), door.port()),
                _ => bare(&named).to_owned(),
            },
            None => String::new(),
        };
        let mut hidden = Vec::new();
        note(&mut hidden, HiddenText::Target, &exchange.target);
        let mut fields: Vec<SwapField> = Vec::new();
        for RecordedField { name, value } in exchange.fields.iter() {
            if !LEFT_OUT.iter().any(|left| left.as_bytes() == name.as_slice()) {
                note(&mut hidden, HiddenText::Field(fields.len()), value);
                fields.push((name.clone(), value.bytes.clone()));
            }
        }
        let body = exchange.body.kept.clone().unwrap_or_default();
        note(&mut hidden, HiddenText::Body, &body);
        let answer = exchange.answer.as_ref();
        let given: Vec<SwapField> = answer.map(|answer| plain(&answer.fields)).unwrap_or_default();
        let text = answer.map(|answer| kept(&answer.body, &given)).unwrap_or_default();
        Ok(SwapRequest {
            door,
            method,
            host,
            target: exchange.target.bytes.clone(),
            fields,
            body: body.bytes,
            is_http10: exchange.version == RecordedVersion::Http10,
            recorded: Some(Arc::new(Recorded { fields: given, body: text, hidden })),
            ..SwapRequest::default()
        })
    }

    /// The door at which the request arrived: that of the port, or else the first one of the scheme.
    fn door(&self, exchange: &RecordedExchange) -> Option<usize> {
        let fits = |door: &Door| door.is_open() && door.tls == exchange.is_tls;
        let of_port = self.doors.iter().position(|door| fits(door) && door.port() == exchange.port);
        of_port.or_else(|| self.doors.iter().position(fits))
    }
}

fn note(hidden: &mut Vec<Hidden>, text: HiddenText, value: &RecordedText) {
    hidden.extend(value.hidden.iter().map(|(begin, end)| Hidden { text, span: (*begin as usize, *end as usize) }));
}

fn plain(fields: &[RecordedField]) -> Vec<SwapField> {
    fields.iter().map(|field| (field.name.clone(), field.value.bytes.clone())).collect()
}

/// The recorded body without its content coding; empty if the recording does not have it.
fn kept(body: &RecordedBody, fields: &[SwapField]) -> Vec<u8> {
    let Some(text) = &body.kept else { return Vec::new() };
    match decode(&text.bytes, field(fields, "content-encoding")) {
        Ok(plain) => plain.into_owned(),
        // Secrets are replaced in a text: it may be plain already.
        Err(_) => text.bytes.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_net::Address;
    use weir_recording::model::{Beginning, RecordedAnswer};
    use weir_recording::write::RecordingWriter;

    fn text(bytes: &str, hidden: Vec<(u32, u32)>) -> RecordedText {
        RecordedText { bytes: bytes.into(), hidden }
    }

    fn exchange(method: &str, target: &str, client: u64) -> RecordedExchange {
        let named = |name: &str, value| RecordedField { name: name.into(), value };
        let own = [
            named("host", text("a.test:8080", Vec::new())),
            named("cookie", text("sid=HASH", vec![(4, 8)])),
            named("connection", text("keep-alive", Vec::new())),
        ];
        let given = [named("set-cookie", text("sid=HASH", vec![(4, 8)]))];
        RecordedExchange {
            at_us: 1_000,
            client,
            connection: 1,
            version: RecordedVersion::Http2,
            is_tls: false,
            port: 8080,
            method: method.into(),
            target: text(target, Vec::new()),
            fields: own.into(),
            body: RecordedBody::default(),
            answer: Some(RecordedAnswer { status: 200, fields: given.into(), body: RecordedBody::default() }),
            is_cut: false,
            took_us: 10,
            tries: Vec::new(),
            cache: None,
            generation: 1,
            location: 0,
            tunnel: 0,
        }
    }

    fn recording(exchanges: Vec<RecordedExchange>) -> Vec<u8> {
        let beginning = Beginning {
            unix_us: 5_000_000,
            program: "weir/0".to_owned(),
            share_ppm: 1_000_000,
            key_id: 7,
            has_bodies: false,
        };
        let mut bytes = Vec::new();
        let mut writer = RecordingWriter::new(&mut bytes, &beginning).unwrap();
        for exchange in exchanges {
            writer.put(&RecordingPart::Exchange(Box::new(exchange))).unwrap();
        }
        writer.finish().unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Traffic, Said> {
        let at = "127.0.0.1:8080".parse().unwrap();
        let doors = [Door { address: Address::Tcp(at), tls: false, proxy_protocol: false, at: [Some(at); 3] }];
        let mut reader = RecordedTraffic::new(RecordedWish::default(), &doors);
        reader.recording("x.rec", bytes)?;
        Ok(reader.finish())
    }

    #[test]
    fn exchanges_become_requests_and_the_others_are_counted() {
        let mut tunnel = exchange("GET", "/ws", 1);
        tunnel.tunnel = 3;
        let all = vec![exchange("GET", "/a", 1), exchange("POST", "/b", 1), exchange("GET", "/logout", 2), tunnel];
        let traffic = read(&recording(all)).unwrap();
        let [request] = traffic.requests.as_slice() else { unreachable!("{traffic:?}") };
        assert_eq!((request.host.as_str(), request.at_us), ("a.test:8080", 5_001_000));
        assert_eq!(request.fields, [(b"cookie".to_vec(), b"sid=HASH".to_vec())]);
        let recorded = request.recorded.as_ref().unwrap();
        assert_eq!(recorded.hidden, [Hidden { text: HiddenText::Field(0), span: (4, 8) }]);
        assert_eq!(recorded.fields, [(b"set-cookie".to_vec(), b"sid=HASH".to_vec())]);
        let why: Vec<NotReplayed> = traffic.not_replayed.into_keys().collect();
        assert_eq!(why, [NotReplayed::Method("POST".to_owned()), NotReplayed::Action, NotReplayed::Tunnel]);
        assert!(traffic.sources[0].contains("4 came over HTTP/2"), "{:?}", traffic.sources);
    }

    #[test]
    fn a_recording_that_is_cut_gives_what_it_has() {
        let bytes = recording(vec![exchange("GET", "/a", 1)]);
        assert!(read(&bytes[..8]).is_err());
        assert!(read(b"GET / HTTP/1.1").is_err());
    }
}
