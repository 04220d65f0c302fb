//! The protocols in which weir asks origins: HTTP, FastCGI, uwsgi, SCGI and memcached's.
//!
//! A location has one protocol, chosen when its configuration is compiled. The code that asks upstreams consults it where
//! the protocols differ: here, to compose a request; in `family::upstream`, to frame a body, to read a head, and to find
//! the end of an answer.

pub mod params;

use std::sync::Arc;

use weir_http::exchange::Exchange;
use weir_http::exchange::request_body::RequestBody;
use weir_http::text::template::Template;
use weir_net::log::Level;
use weir_wire::{BodyLength, fastcgi, memcached, scgi, uwsgi};

use params::Params;

/// The protocol of a location.
#[derive(Clone)]
pub enum Protocol {
    /// HTTP/1.0 and HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// FastCGI.
    FastCgi(Arc<FastCgi>),
    /// uwsgi.
    Uwsgi(Arc<Uwsgi>),
    /// SCGI.
    Scgi(Arc<Scgi>),
    /// memcached's text protocol.
    Memcached(Arc<Memcached>),
    /// None: the client's bytes go to the peer as they are (CONNECT).
    Tunnel,
}

/// The settings for requests over FastCGI.
pub struct FastCgi {
    /// The parameters.
    pub params: Params,
    /// `fastcgi_keep_conn`.
    pub keeps: bool,
    /// `fastcgi_catch_stderr`: texts that make an answer invalid.
    pub caught: Vec<Box<[u8]>>,
}

/// The settings for requests over uwsgi.
pub struct Uwsgi {
    /// The parameters.
    pub params: Params,
    /// `uwsgi_modifier1` and `uwsgi_modifier2`.
    pub modifiers: (u8, u8),
    /// `uwsgi_string`.
    pub string: Box<[u8]>,
}

/// The settings for requests over SCGI.
pub struct Scgi {
    /// The parameters.
    pub params: Params,
}

/// The settings for requests to memcached.
pub struct Memcached {
    /// `$memcached_key`.
    pub key: Template,
    /// `memcached_gzip_flag`; 0 for none.
    pub gzip_flag: u64,
}

impl Protocol {
    /// Whether the answers are those of CGI applications over a plain connection, which ends with the answer.
    pub fn is_plain_cgi(&self) -> bool {
        matches!(self, Protocol::Uwsgi(_) | Protocol::Scgi(_))
    }

    /// Composes the part of a request before its body; `Err` is the status if there is no such request.
    pub fn compose(&self, exchange: &mut Exchange<'_>, passes_fields: bool, out: &mut Vec<u8>) -> Result<(), u16> {
        out.clear();
        match self {
            // `family::proxy::request` composes these.
            Protocol::Http1 | Protocol::Http2 => Err(500),
            Protocol::FastCgi(fastcgi) => fastcgi.compose(exchange, passes_fields, out),
            Protocol::Uwsgi(uwsgi) => uwsgi.compose(exchange, passes_fields, out),
            Protocol::Scgi(scgi) => {
                let mut params = exchange.worker.lease_out();
                scgi.params.push(exchange, passes_fields, scgi::push_param, &mut params);
                scgi::push_request(out, content_length(exchange), &params);
                exchange.worker.return_out(params);
                Ok(())
            }
            Protocol::Memcached(memcached) => {
                let mut key = Vec::new();
                memcached.push_key(exchange, &mut key)?;
                memcached::push_get(out, &key);
                Ok(())
            }
            Protocol::Tunnel => Ok(()),
        }
    }
}

impl FastCgi {
    fn compose(&self, exchange: &mut Exchange<'_>, passes_fields: bool, out: &mut Vec<u8>) -> Result<(), u16> {
        fastcgi::push_begin(out, self.keeps);
        let at = fastcgi::begin_params(out);
        self.params.push(exchange, passes_fields, fastcgi::push_param, out);
        fastcgi::end_params(out, at).map_err(|fastcgi::TooBig(length)| {
            exchange.log(Level::Alert, format_args!("fastcgi request record is too big: {length}"));
            500
        })
    }

    /// Logs bytes that the application wrote to its standard error; `true` if they make the answer invalid.
    pub fn tell_stderr(&self, exchange: &mut Exchange<'_>, bytes: &[u8]) -> bool {
        // nginx leaves the ends of lines and sentences out.
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r' | b'.' | b' ');
        let length = bytes.iter().rposition(|byte| !is_end(byte)).map_or(1, |last| last + 1).min(bytes.len());
        let text = bytes.get(..length).unwrap_or_default();
        exchange.log(Level::Error, format_args!("FastCGI sent in stderr: \"{}\"", String::from_utf8_lossy(text)));
        self.caught.iter().any(|caught| memchr::memmem::find(text, caught).is_some())
    }
}

impl Uwsgi {
    fn compose(&self, exchange: &mut Exchange<'_>, passes_fields: bool, out: &mut Vec<u8>) -> Result<(), u16> {
        uwsgi::begin(out, self.modifiers.0, self.modifiers.1);
        self.params.push(exchange, passes_fields, uwsgi::push_param, out);
        out.extend_from_slice(&self.string);
        uwsgi::end(out).map_err(|fastcgi::TooBig(length)| {
            exchange.log(Level::Alert, format_args!("uwsgi request is too big: {length}"));
            500
        })
    }
}

impl Memcached {
    /// Appends the key of a request, escaped.
    pub fn push_key(&self, exchange: &mut Exchange<'_>, out: &mut Vec<u8>) -> Result<(), u16> {
        let key = self.key.text(exchange);
        if key.is_empty() {
            exchange.log(Level::Error, format_args!("the \"$memcached_key\" variable is not set"));
            return Err(500);
        }
        memcached::push_key(out, &key);
        Ok(())
    }
}

/// The length of the client's body: SCGI needs it even if the body is not passed on (nginx).
fn content_length(exchange: &Exchange<'_>) -> u64 {
    match (&exchange.body, exchange.request.length) {
        (RequestBody::Memory(_) | RequestBody::File(_), _) => exchange.body.length(),
        (RequestBody::Unread | RequestBody::Gone, Some(BodyLength::Exact(length))) => length,
        (RequestBody::Unread | RequestBody::Gone, _) => 0,
    }
}
