//! Reads recordings into requests.

use foldhash::HashMap;
use weir_conf::log_format::Entry;
use weir_recording::Fault;
use weir_recording::model::{RecordedExchange, RecordedMessage, RecordedVersion, RecordingPart};

use super::account::{RecorderAccount, RecordingSource};
use super::detail::{self, BodyFate, CallTraits, CallVersion, RecordedTunnel, RequestDetail, TextId};
use super::gather::{SeenRequest, TrafficGatherer};

/// Most messages of WebSockets that are kept, of all recordings together.
const MESSAGES_MAX: usize = 1_000_000;
/// Most WebSockets that are open at the same time.
const TUNNELS_MAX: usize = 100_000;
/// Most messages of one WebSocket, and most bytes of all of them.
const TUNNEL_MESSAGES_MAX: usize = 200;
const TUNNEL_BYTES_MAX: usize = 256 << 10;

/// The messages of a client that wait for the exchange of their WebSocket.
#[derive(Default)]
struct WaitingMessages {
    bytes: usize,
    messages: Vec<(u64, TextId)>,
}

/// The state since the last beginning.
#[derive(Default)]
struct OneRecorder {
    unix_us: u64,
    account: RecorderAccount,
    tunnels: HashMap<u64, WaitingMessages>,
}

impl TrafficGatherer<'_> {
    /// Reads the parts of a recording.
    pub(super) fn recording(
        &mut self,
        name: &str,
        parts: impl Iterator<Item = Result<RecordingPart, Fault>>,
    ) -> Result<(), String> {
        let mut source = RecordingSource { name: name.to_owned(), has_end: true, ..RecordingSource::default() };
        let mut recorder: Option<OneRecorder> = None;
        for part in parts {
            let part = part.map_err(|fault| format!("{name}: {}", fault.said().say(self.wish.language)))?;
            if let RecordingPart::Beginning(beginning) = &part {
                source.end(recorder.take().map(|one| one.account), None);
                let share = f64::from(beginning.share_ppm) / 1e6;
                let account = RecorderAccount { share, ..RecorderAccount::default() };
                recorder = Some(OneRecorder { unix_us: beginning.unix_us, account, ..OneRecorder::default() });
            }
            // The reader gives no part before a beginning.
            let Some(one) = &mut recorder else { continue };
            match part {
                RecordingPart::Exchange(exchange) => {
                    one.account.seen += 1;
                    self.exchange(one, &exchange);
                }
                RecordingPart::Message(message) => self.message(one, &message),
                RecordingPart::Lost(lost) => one.account.lose(&lost),
                RecordingPart::Ending(ending) => {
                    source.end(recorder.take().map(|one| one.account), Some(&ending));
                }
                RecordingPart::Beginning(_) | RecordingPart::Configuration(_) => {}
            }
        }
        source.end(recorder.map(|one| one.account), None);
        self.log.recordings.push(source);
        Ok(())
    }

    fn exchange(&mut self, one: &mut OneRecorder, exchange: &RecordedExchange) {
        let waiting = one.tunnels.remove(&exchange.tunnel).unwrap_or_default();
        let is_upgraded = exchange.answer.as_ref().is_some_and(|answer| answer.status == 101);
        if is_upgraded && exchange.tunnel == 0 {
            self.log.counts.silent_websockets += 1;
            return;
        }
        let is_websocket = exchange.tunnel != 0;
        // Over HTTP/2 and HTTP/3, a WebSocket begins with CONNECT.
        let method = if is_websocket { b"GET" } else { exchange.method.as_slice() };
        let Ok(mut entry) = Entry::of_request(method, &exchange.target.bytes) else {
            self.log.counts.other_methods += 1;
            return;
        };
        let field = |name: &str| exchange.fields.iter().find(|field| field.name == name.as_bytes());
        if !entry.is_absolute {
            let host = field("host").map(|field| String::from_utf8_lossy(&field.value.bytes).to_ascii_lowercase());
            entry.host = host;
        }
        entry.client = format!("{:016x}", exchange.client).into_bytes();
        entry.agent = field("user-agent").map(|field| field.value.bytes.clone()).unwrap_or_default();
        entry.status = exchange.answer.as_ref().map(|answer| answer.status);
        entry.took_ms = Some(exchange.took_us / 1000);
        let version = match exchange.version {
            RecordedVersion::Http10 | RecordedVersion::Http11 => CallVersion::Http1,
            RecordedVersion::Http2 => CallVersion::Http2,
            RecordedVersion::Http3 => CallVersion::Http3,
        };
        self.log.versions.get_mut(version as usize).into_iter().for_each(|count| *count += 1);
        let is_tls = self.wish.target.to_ascii_lowercase().starts_with("https:");
        let traits = CallTraits {
            version: Some(version).filter(|_| is_tls && !is_websocket),
            is_websocket,
            ..CallTraits::of(exchange)
        };
        let (mut detail, fate) = RequestDetail::of(exchange, &mut self.log.details.texts);
        self.log.counts.bodies_missing += u64::from(fate == BodyFate::Missing && !is_websocket);
        self.log.counts.bodies_unfit += u64::from(fate == BodyFate::Unfit && !is_websocket);
        if is_websocket {
            let tunnel = Self::tunnel(exchange, waiting);
            detail.tunnel = u32::try_from(self.log.tunnels.len()).ok();
            self.log.tunnels.push(tunnel);
        }
        self.log.counts.hashed += u64::from(has_hashes(exchange));
        let Some(detail) = self.log.details.put(detail) else {
            self.log.counts.beyond += 1;
            return;
        };
        let at_ms = one.unix_us.saturating_add(exchange.at_us) / 1000;
        self.request(&SeenRequest { at_ms, entry: &entry, traits, detail });
    }

    fn message(&mut self, one: &mut OneRecorder, message: &RecordedMessage) {
        if !message.is_of_client {
            return;
        }
        if one.tunnels.len() >= TUNNELS_MAX && !one.tunnels.contains_key(&message.tunnel) {
            self.log.counts.messages_unfit += 1;
            return;
        }
        let waiting = one.tunnels.entry(message.tunnel).or_default();
        let content = message.content.kept.as_ref().map_or(&[][..], |kept| &kept.bytes);
        let has_room = self.messages < MESSAGES_MAX
            && waiting.messages.len() < TUNNEL_MESSAGES_MAX
            && waiting.bytes + content.len() <= TUNNEL_BYTES_MAX;
        let fits = has_room && !message.is_binary && message.content.kept.is_some();
        let text = detail::text_of_body(content).filter(|_| fits);
        match text.and_then(|text| self.log.details.texts.put(&text)) {
            Some(text) => {
                self.messages += 1;
                waiting.bytes += content.len();
                waiting.messages.push((message.at_us, text));
            }
            None => self.log.counts.messages_unfit += 1,
        }
    }

    fn tunnel(exchange: &RecordedExchange, waiting: WaitingMessages) -> RecordedTunnel {
        let mut tunnel = RecordedTunnel::default();
        let mut at_us = exchange.at_us;
        for (own_us, text) in waiting.messages {
            tunnel.messages.push((own_us.saturating_sub(at_us) / 1000, text));
            at_us = at_us.max(own_us);
        }
        tunnel.rest_ms = exchange.at_us.saturating_add(exchange.took_us).saturating_sub(at_us) / 1000;
        tunnel
    }
}

/// True if a secret of the request is replaced.
fn has_hashes(exchange: &RecordedExchange) -> bool {
    let body = exchange.body.kept.iter();
    let fields = exchange.fields.iter().map(|field| &field.value);
    body.chain(fields).chain([&exchange.target]).any(|text| !text.hidden.is_empty())
}
