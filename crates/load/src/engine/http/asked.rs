//! A request that is being carried out: the step, and how hooks, templates and redirects have changed it.

use std::rc::Rc;

use super::compile::{Compiled, ReadyBytes};
use super::outgoing::Outgoing;
use crate::client::{Origin, Protocol};
use crate::plan::Request;
use crate::processor::Params;
use crate::url::Scheme;

/// The protocol of a request.
#[derive(Clone, Copy)]
pub(super) enum Spoken {
    Http1,
    /// HTTP/2 if the server agrees.
    Http2IfAgreed,
    Always(Protocol),
}

/// A request that is being carried out.
pub(super) struct CurrentRequest<'r> {
    pub request: &'r Request,
    pub compiled: &'r Compiled,
    /// `requestParams`, once hooks have seen them.
    pub params: Option<Params>,
    /// URL and name for the metrics, if hooks changed them.
    pub endpoint: Option<(String, Option<String>)>,
    /// The rendered request; `None` while the compiled bytes are used.
    pub outgoing: Option<Box<Outgoing>>,
    /// The URL of each request that was redirected, in order; at most [`REDIRECTS_MAX`].
    pub urls: Vec<String>,
}

impl CurrentRequest<'_> {
    /// The bytes made before the run, while they are used.
    pub fn ready(&self) -> Option<&ReadyBytes> {
        self.compiled.ready.as_ref().filter(|_| self.outgoing.is_none())
    }

    /// The protocol of the request. The step's setting wins over the configuration's. As in Artillery, whose client uses
    /// ALPN, a step's setting applies to `https://` only, and the server may decline.
    pub fn speaks(&self, always: Option<Protocol>, origin: &Origin) -> Spoken {
        match (self.request.http2, always) {
            (Some(false), _) | (None, None) => Spoken::Http1,
            (Some(true), Some(Protocol::Http2)) => Spoken::Always(Protocol::Http2),
            (None, Some(protocol)) => Spoken::Always(protocol),
            (Some(true), _) if origin.scheme == Scheme::Https && !origin.lacks_http2.get() => Spoken::Http2IfAgreed,
            (Some(true), _) => Spoken::Http1,
        }
    }

    /// True if redirects are followed.
    pub fn follows(&self) -> bool {
        self.outgoing.as_ref().map_or(self.request.follows, |outgoing| outgoing.follows)
    }

    /// True if the body is decompressed.
    pub fn decompresses(&self) -> bool {
        self.outgoing.as_ref().map_or(self.request.gzip != Some(false), |outgoing| outgoing.decompress)
    }

    /// The method of the request, after a redirect that of the last one.
    pub fn method(&self) -> &str {
        self.outgoing.as_ref().map_or(&self.request.method, |outgoing| &outgoing.method)
    }

    /// The origin and the target of the request, after a redirect those of the last one.
    pub fn target(&self) -> Option<(&Rc<Origin>, &str)> {
        match &self.outgoing {
            Some(outgoing) => Some((&outgoing.origin, &outgoing.target)),
            None => self.ready().map(|ready| (&ready.origin, &*ready.target)),
        }
    }

    /// The URL of the request, after a redirect that of the last one.
    pub fn url(&self) -> String {
        self.target().map(|(origin, target)| origin.url(target)).unwrap_or_default()
    }

    /// The URL that the step asked for, before any redirect.
    pub fn first_url(&self) -> String {
        self.urls.first().cloned().unwrap_or_else(|| self.url())
    }
}
