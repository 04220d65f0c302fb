//! Reads the heads of answers in other protocols than HTTP.
//!
//! A head becomes an [`Origin`] like one of HTTP, so that all code after it sees no difference. The bytes behind the head
//! are still as the peer sent them: the source unwraps them like the bytes that it reads itself.

use weir_http::exchange::Exchange;
use weir_http::exchange::message::Origin;
use weir_http::hold::own::Owned;
use weir_net::log::Level;
use weir_net::{Lease, buffer};
use weir_wire::fastcgi::{self, FastCgiDecoder, FastCgiEvent, FastCgiFault};
use weir_wire::{Progress, encode, memcached};

use super::failure::HeadFault;
use crate::protocol::{FastCgi, Memcached, Protocol};

/// A head that is being read.
pub(super) struct Head {
    /// Bytes that are not used yet, as the peer sent them.
    pub raw: Lease,
    origin: Box<Origin>,
    /// FastCGI's records.
    records: Option<FastCgiDecoder>,
}

impl Head {
    pub fn new(exchange: &Exchange<'_>) -> Head {
        Head { raw: Lease::none(), origin: exchange.worker.lease_origin(), records: None }
    }

    /// Uses the bytes read so far; `true` if the head is complete.
    pub fn parse(
        &mut self,
        exchange: &mut Exchange<'_>,
        protocol: &Protocol,
        bytes_max: usize,
    ) -> Result<bool, HeadFault> {
        match protocol {
            Protocol::FastCgi(fastcgi) => self.parse_records(exchange, fastcgi, bytes_max),
            Protocol::Memcached(memcached) => self.parse_line(exchange, memcached, bytes_max),
            Protocol::Http1 | Protocol::Http2 | Protocol::Uwsgi(_) | Protocol::Scgi(_) | Protocol::Tunnel => {
                std::mem::swap(&mut self.raw, &mut self.origin.bytes);
                let is_done = self.parse_cgi(true, bytes_max);
                if !matches!(is_done, Ok(true)) {
                    std::mem::swap(&mut self.raw, &mut self.origin.bytes);
                }
                is_done
            }
        }
    }

    /// The answer, once its head is complete.
    pub fn into_origin(self, exchange: &mut Exchange<'_>) -> Box<Origin> {
        let Head { raw: _, origin, records } = self;
        if let Some(decoder) = records {
            exchange.own.set(Rest(decoder));
        }
        origin
    }

    /// Parses the bytes of the answer so far.
    fn parse_cgi(&mut self, may_have_status_line: bool, bytes_max: usize) -> Result<bool, HeadFault> {
        let origin = &mut *self.origin;
        match origin.parser.cgi(&origin.bytes, may_have_status_line, &mut origin.head) {
            Ok(Progress::Done) if origin.head.len > bytes_max => Err(HeadFault::TooBig),
            Ok(Progress::Done) => Ok(true),
            Ok(Progress::Partial { .. }) if origin.bytes.len() >= bytes_max => Err(HeadFault::TooBig),
            Ok(Progress::Partial { .. }) => Ok(false),
            Err(violation) => Err(HeadFault::Violation(violation)),
        }
    }

    /// FastCGI: takes the answer out of the records, until its head is complete.
    fn parse_records(
        &mut self,
        exchange: &mut Exchange<'_>,
        fastcgi: &FastCgi,
        bytes_max: usize,
    ) -> Result<bool, HeadFault> {
        let (mut at, mut decoder) = (0, self.records.take().unwrap_or_default());
        let result = self.take_out(exchange, fastcgi, (&mut decoder, &mut at), bytes_max);
        self.records = Some(decoder);
        result
    }

    /// As `parse_records`, with the state of the records, and the place of the next byte.
    fn take_out(
        &mut self,
        exchange: &mut Exchange<'_>,
        fastcgi: &FastCgi,
        (decoder, at): (&mut FastCgiDecoder, &mut usize),
        bytes_max: usize,
    ) -> Result<bool, HeadFault> {
        if self.origin.bytes.is_empty() {
            self.origin.bytes = buffer::lease(self.raw.len());
        }
        loop {
            let fault = match decoder.next(&self.raw, at) {
                Ok(FastCgiEvent::Stdout { start, end }) => {
                    self.origin.bytes.extend_from_slice(self.raw.get(start..end).unwrap_or_default());
                    if !self.parse_cgi(false, bytes_max)? {
                        continue;
                    }
                    // The first bytes of the body stay in the record, for the source.
                    decoder.give_back(self.origin.bytes.len() - self.origin.head.len);
                    self.origin.bytes.extend_from_slice(self.raw.get(end..).unwrap_or_default());
                    return Ok(true);
                }
                Ok(FastCgiEvent::Stderr { start, end }) => {
                    if fastcgi.tell_stderr(exchange, self.raw.get(start..end).unwrap_or_default()) {
                        return Err(HeadFault::Told);
                    }
                    continue;
                }
                Ok(FastCgiEvent::NeedMore) => {
                    self.raw.clear();
                    return Ok(false);
                }
                Ok(FastCgiEvent::Closed) => FastCgiFault::StdoutClosed,
                Ok(FastCgiEvent::End) => FastCgiFault::Unexpected(fastcgi::END_OF_REQUEST),
                Err(fault) => fault,
            };
            exchange.log(Level::Error, format_args!("{fault}"));
            return Err(HeadFault::Told);
        }
    }

    /// memcached: reads the first line, and writes an HTTP head in its place.
    fn parse_line(
        &mut self,
        exchange: &mut Exchange<'_>,
        memcached: &Memcached,
        bytes_max: usize,
    ) -> Result<bool, HeadFault> {
        let Some(end) = memchr::memchr(b'\n', &self.raw) else {
            return if self.raw.len() >= bytes_max { Err(HeadFault::TooBig) } else { Ok(false) };
        };
        let line = self.raw.get(..end).unwrap_or_default();
        let mut key = Vec::new();
        memcached.push_key(exchange, &mut key).map_err(|_| HeadFault::Told)?;
        let head = &mut self.origin.bytes;
        *head = buffer::lease(self.raw.len());
        match memcached::answer(line, &key, memcached.gzip_flag != 0) {
            Ok(memcached::Answer::NotFound) => {
                let key = String::from_utf8_lossy(&key);
                exchange.log(Level::Info, format_args!("key: \"{key}\" was not found by memcached"));
                head.extend_from_slice(b"HTTP/1.1 404 Not Found\r\n");
                encode::push_field_decimal(head, b"Content-Length", 0);
            }
            Ok(memcached::Answer::Value { flags, length }) => {
                head.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
                encode::push_field_decimal(head, b"Content-Length", length);
                if flags & memcached.gzip_flag != 0 {
                    encode::push_field(head, b"Content-Encoding", b"gzip");
                }
            }
            Err(fault) => {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                let (line, key) = (String::from_utf8_lossy(line), String::from_utf8_lossy(&key));
                match fault {
                    memcached::MemcachedFault::Response => {
                        exchange.log(Level::Error, format_args!("memcached sent invalid response: \"{line}\""));
                    }
                    memcached::MemcachedFault::Key
                    | memcached::MemcachedFault::Flags
                    | memcached::MemcachedFault::Length => {
                        let what = match fault {
                            memcached::MemcachedFault::Key => "key",
                            memcached::MemcachedFault::Flags => "flags",
                            _ => "length",
                        };
                        exchange.log(
                            Level::Error,
                            format_args!("memcached sent invalid {what} in response \"{line}\" for key \"{key}\""),
                        );
                    }
                }
                return Err(HeadFault::Told);
            }
        }
        head.extend_from_slice(b"\r\n");
        head.extend_from_slice(self.raw.get(end + 1..).unwrap_or_default());
        let origin = &mut *self.origin;
        match origin.parser.response(&origin.bytes, &mut origin.head) {
            Ok(Progress::Done) => Ok(true),
            Ok(Progress::Partial { .. }) | Err(_) => Err(HeadFault::Told),
        }
    }
}

/// The state of the records after the head, on its way to the source.
pub(super) struct Rest(pub(super) FastCgiDecoder);

impl Owned for Rest {}
