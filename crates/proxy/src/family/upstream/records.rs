//! Finds the bytes and the end of the bodies of answers in other protocols than HTTP.

use weir_http::exchange::Exchange;
use weir_meter::Step;
use weir_net::log::Level;
use weir_wire::fastcgi::{FastCgiDecoder, FastCgiEvent, FastCgiFault};
use weir_wire::memcached;

use crate::protocol::Protocol;

/// Whether an answer has ended.
pub(super) enum End {
    /// More bytes are needed.
    NotYet,
    /// It has, and the connection may carry another exchange.
    Clean,
    /// It has, and the connection may not.
    Unclean,
    /// It has more bytes than it announced.
    TooLong,
}

/// The records of an answer's body.
pub struct Records {
    decoder: FastCgiDecoder,
    /// Bytes of the body that `Content-Length` still promises.
    rest: Option<u64>,
    /// The application has closed its standard output: no byte of the body follows.
    is_closed: bool,
    /// A fault behind the bytes that were read last: the client gets these bytes first.
    pub(super) fault: Option<FastCgiFault>,
}

impl Records {
    /// The records after a head; `rest` is the length of the body, if the head has one.
    pub(super) fn new(decoder: FastCgiDecoder, rest: Option<u64>) -> Records {
        Records { decoder, rest, is_closed: false, fault: None }
    }

    /// Leaves only bytes of the body after `start`, without gaps; logs what the application wrote to standard error.
    pub(super) fn unwrap(&mut self, exchange: &mut Exchange<'_>, out: &mut Vec<u8>, start: usize) -> End {
        let (mut at, mut kept, mut result) = (start, start, End::NotYet);
        loop {
            let event = self.decoder.next(out, &mut at);
            let is_short = self.rest.is_some_and(|rest| rest > 0);
            match event {
                Ok(FastCgiEvent::Stdout { start: from, end }) => {
                    let count =
                        self.rest.map_or(end - from, |rest| (end - from).min(usize::try_from(rest).unwrap_or(end)));
                    out.copy_within(from..from + count, kept);
                    kept += count;
                    self.rest = self.rest.map(|rest| rest - count as u64);
                    if count < end - from {
                        result = End::TooLong;
                        break;
                    }
                }
                Ok(FastCgiEvent::Stderr { start: from, end }) => {
                    exchange.facts.step = Step::ReadResponse;
                    let fastcgi = match &crate::values(exchange.location).proxy.protocol {
                        Protocol::FastCgi(fastcgi) => fastcgi.clone(),
                        _ => continue,
                    };
                    // The head is sent: a text that `fastcgi_catch_stderr` names changes nothing now, as in nginx.
                    fastcgi.tell_stderr(exchange, out.get(from..end).unwrap_or_default());
                }
                Ok(FastCgiEvent::Closed) if is_short => {
                    self.fault = Some(FastCgiFault::StdoutClosed);
                    break;
                }
                // Standard error and the end of the request may follow.
                Ok(FastCgiEvent::Closed) => self.is_closed = true,
                Ok(FastCgiEvent::End) if is_short => {
                    self.fault = Some(FastCgiFault::RequestClosed);
                    break;
                }
                Ok(FastCgiEvent::End) => {
                    result = if at == out.len() { End::Clean } else { End::Unclean };
                    break;
                }
                Ok(FastCgiEvent::NeedMore) => break,
                Err(fault) => {
                    self.fault = Some(fault);
                    break;
                }
            }
        }
        out.truncate(kept);
        result
    }

    /// Whether the application may close the connection now, and the answer is whole.
    pub(super) fn may_end(&self) -> bool {
        self.is_closed && self.decoder.is_between()
    }
}

/// Leaves only bytes of a value after `start`.
pub(super) fn unwrap_value(
    exchange: &mut Exchange<'_>,
    value: &mut memcached::Value,
    out: &mut Vec<u8>,
    start: usize,
) -> End {
    let (count, progress) = value.take(out.get(start..).unwrap_or_default());
    out.truncate(start + count);
    match progress {
        memcached::MemcachedProgress::NeedMore => End::NotYet,
        memcached::MemcachedProgress::Done => End::Clean,
        memcached::MemcachedProgress::BadTrailer => {
            exchange.facts.step = Step::ReadResponse;
            exchange.log(Level::Error, format_args!("memcached sent invalid trailer"));
            End::Unclean
        }
    }
}
