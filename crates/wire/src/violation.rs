//! Every refusal by name, with its status and nginx's words for it.
//!
//! It is not an error chain: a violation is one `Copy` value; [`crate::Parser::fault`] finds its bytes. Invariant: a
//! new reason to refuse is a new variant, never a second meaning of an old one.

use std::fmt;

macro_rules! violations {
    ($($(#[$doc:meta])* $name:ident: $status:literal, $message:literal, $detail:literal, $rfc:literal;)+) => {
        /// Why a message was refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Violation {
            $($(#[$doc])* #[doc = concat!(" (", $rfc, ")")] $name,)+
        }

        impl Violation {
            /// Every variant, for tests and for the table in the documentation.
            pub const ALL: &'static [Violation] = &[$(Violation::$name,)+];

            /// Its status in nginx's numbering: 494 is nginx's own and is sent as 400; a fault of the origin is 502.
            pub fn status(self) -> u16 {
                match self { $(Violation::$name => $status,)+ }
            }

            /// nginx's words for its error log. If nginx also quotes the bytes (`: "Host: a"`), the caller does too.
            pub fn message(self) -> &'static str {
                match self { $(Violation::$name => $message,)+ }
            }

            /// The exact error, if nginx's words are vaguer than the name.
            pub fn detail(self) -> &'static str {
                match self { $(Violation::$name => $detail,)+ }
            }

            /// The section that allows or demands the refusal.
            pub fn rfc(self) -> &'static str {
                match self { $(Violation::$name => $rfc,)+ }
            }
        }
    };
}

violations! {
    /// The method has a byte outside `[A-Z_-]`, or no space follows it.
    InvalidMethod: 400, "client sent invalid method",
        "the method is not [A-Z_-]+ followed by a space", "RFC 9112 §3";
    /// The request line does not parse.
    InvalidRequest: 400, "client sent invalid request",
        "the request line does not parse", "RFC 9112 §3";
    /// The target decodes to a NUL, leaves the root, or has a broken `%xx`.
    InvalidTarget: 400, "client sent invalid request",
        "the target leaves the root or has an invalid percent escape", "RFC 3986 §5.2.4";
    /// The target has a byte that no URI has, or a fragment.
    TargetByte: 400, "client sent invalid request",
        "the target has a byte that no URI has, or a fragment", "RFC 9112 §3.2";
    /// The request line names a major version above 1.
    InvalidVersion: 505, "client sent invalid version",
        "the major version is above 1", "RFC 9110 §15.6.6";
    /// A request line without version whose method is not GET.
    InvalidHttp09Method: 400, "client sent invalid method in HTTP/0.9 request",
        "only GET exists in HTTP/0.9", "RFC 1945 §5";
    /// A request field line with a forbidden byte, a fold, or a space before the colon.
    InvalidField: 400, "client sent invalid header line",
        "the field line has a forbidden byte", "RFC 9112 §5";
    /// A request over HTTP/2 whose fields do not make a valid request.
    MalformedRequest: 400, "client sent malformed request",
        "the fields do not make a request", "RFC 9113 §8.1.1";
    /// More fields than `max_headers`.
    TooManyFields: 494, "client sent too many header lines",
        "more fields than max_headers", "RFC 6585 §5";
    /// The head is larger than the buffers for it.
    HeadTooLarge: 494, "client sent too large request",
        "the head does not fit its buffers", "RFC 6585 §5";
    /// The request line is larger than the buffer for it.
    TargetTooLong: 414, "client sent too long URI",
        "the request line does not fit its buffer", "RFC 9110 §15.5.15";
    /// Two Host fields.
    DuplicateHost: 400, "client sent duplicate host header",
        "two Host fields", "RFC 9112 §3.2";
    /// HTTP/1.1 without Host.
    MissingHost: 400, "client sent HTTP/1.1 request without \"Host\" header",
        "HTTP/1.1 needs Host", "RFC 9112 §3.2";
    /// The Host field is not a host.
    InvalidHost: 400, "client sent invalid host header",
        "the Host field is not uri-host [ \":\" port ]", "RFC 9112 §3.2";
    /// The authority in the request line is not a host.
    InvalidTargetHost: 400, "client sent invalid host in request line",
        "the target's authority is not uri-host [ \":\" port ]", "RFC 9112 §3.2.2";
    /// Two fields of a name that is allowed only once.
    DuplicateField: 400, "client sent duplicate header line",
        "a singular field came twice", "RFC 9110 §5.3";
    /// Content-Length is not digits, or above 2^63-1.
    InvalidContentLength: 400, "client sent invalid \"Content-Length\" header",
        "Content-Length is not 1*DIGIT below 2^63", "RFC 9112 §6.3";
    /// Content-Length together with Transfer-Encoding.
    LengthAndEncoding: 400,
        "client sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time",
        "both framings in one message", "RFC 9112 §6.1";
    /// Transfer-Encoding in an HTTP/1.0 request.
    EncodingInHttp10: 400,
        "client sent HTTP/1.0 request with \"Transfer-Encoding\" header",
        "HTTP/1.0 has no transfer codings", "RFC 9112 §6.1";
    /// A Transfer-Encoding other than `chunked`.
    UnknownEncoding: 501, "client sent unknown \"Transfer-Encoding\"",
        "only chunked is understood", "RFC 9112 §6.1";
    /// A Transfer-Encoding that is no list of codings, or `chunked` more than once.
    InvalidEncoding: 400, "client sent invalid \"Transfer-Encoding\" header",
        "Transfer-Encoding is not one chunked", "RFC 9112 §6.3";
    /// CONNECT, but it is not allowed.
    ConnectMethod: 405, "client sent CONNECT method",
        "CONNECT is for forward proxies", "RFC 9110 §9.3.6";
    /// TRACE.
    TraceMethod: 405, "client sent TRACE method",
        "TRACE is not answered", "RFC 9110 §9.3.8";
    /// CONNECT with a body.
    ConnectWithBody: 400, "client sent CONNECT request with body",
        "CONNECT has no body", "RFC 9110 §9.3.6";

    /// A chunk size that is not hexadecimal digits.
    ChunkSize: 400, "client sent invalid chunked body",
        "the chunk size is not 1*HEXDIG", "RFC 9112 §7.1";
    /// A chunk size above 2^63-1, or with more digits than anyone needs.
    ChunkSizeTooLarge: 400, "client sent invalid chunked body",
        "the chunk size does not fit", "RFC 9112 §7.1";
    /// A chunk extension with a forbidden byte, or no `;` before it.
    ChunkExtension: 400, "client sent invalid chunked body",
        "the chunk extension has a forbidden byte", "RFC 9112 §7.1.1";
    /// A chunk extension beyond its bound.
    ChunkExtensionTooLong: 400, "client sent invalid chunked body",
        "the chunk extension is too long", "RFC 9112 §7.1.1";
    /// A line of the chunked framing that does not end in CRLF.
    ChunkLineEnd: 400, "client sent invalid chunked body",
        "a chunk line does not end in CRLF", "RFC 9112 §7.1";
    /// Chunk data longer than announced.
    ChunkDataEnd: 400, "client sent invalid chunked body",
        "no CRLF after the chunk data", "RFC 9112 §7.1";
    /// A trailer field line that does not parse.
    TrailerField: 400, "client sent invalid chunked body",
        "a trailer field line has a forbidden byte", "RFC 9112 §7.1.2";
    /// A trailer section beyond its bounds.
    TrailerTooLarge: 400, "client sent invalid chunked body",
        "the trailer section is too large", "RFC 9112 §7.1.2";

    /// The origin's first line is no status line: HTTP/0.9, or not HTTP.
    NoStatusLine: 502, "upstream sent no valid HTTP/1.0 header",
        "the first line is not HTTP/1.x NNN", "RFC 9112 §4";
    /// A response field line with a forbidden byte or a fold.
    UpstreamInvalidField: 502, "upstream sent invalid header",
        "the field line has a forbidden byte", "RFC 9112 §5";
    /// The response head is larger than its buffer, or has too many fields.
    UpstreamHeadTooLarge: 502, "upstream sent too big header",
        "the head does not fit its buffer", "RFC 9112 §5";
    /// Two Content-Length or two Transfer-Encoding fields from the origin.
    UpstreamDuplicateField: 502, "upstream sent duplicate header line",
        "a framing field came twice", "RFC 9112 §6.3";
    /// The origin's Content-Length is not digits, or above 2^63-1.
    UpstreamContentLength: 502, "upstream sent invalid \"Content-Length\" header",
        "Content-Length is not 1*DIGIT below 2^63", "RFC 9112 §6.3";
    /// Both framings from the origin.
    UpstreamLengthAndEncoding: 502,
        "upstream sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time",
        "both framings in one message", "RFC 9112 §6.3";
    /// A transfer coding from the origin other than `chunked`.
    UpstreamUnknownEncoding: 502, "upstream sent unknown \"Transfer-Encoding\"",
        "only chunked is understood", "RFC 9112 §6.1";
    /// The Status field of a CGI application does not begin with a final status code.
    UpstreamStatus: 502, "upstream sent invalid status",
        "Status does not begin with a code from 200 to 999", "RFC 3875 §6.3.3";
}

impl Violation {
    /// nginx's words if the chunked body is from an origin; for the other violations the same as
    /// [`Violation::message`].
    pub fn upstream_message(self) -> &'static str {
        if self.message() == Violation::ChunkSize.message() {
            return "upstream sent invalid chunked response";
        }
        self.message()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Violation {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_violation_has_a_status_words_and_a_section() {
        for violation in Violation::ALL {
            assert!(matches!(violation.status(), 400 | 405 | 414 | 494 | 501 | 502 | 505), "{violation:?}");
            let side = if violation.status() == 502 { "upstream sent " } else { "client sent " };
            assert!(violation.message().starts_with(side), "{violation:?}");
            assert!(violation.rfc().starts_with("RFC "), "{violation:?}");
            assert!(!violation.detail().is_empty(), "{violation:?}");
        }
    }

    #[test]
    fn an_origins_bad_chunk_is_not_blamed_on_the_client() {
        assert_eq!(Violation::ChunkDataEnd.upstream_message(), "upstream sent invalid chunked response");
        assert_eq!(Violation::ChunkDataEnd.message(), "client sent invalid chunked body");
        assert_eq!(Violation::NoStatusLine.upstream_message(), Violation::NoStatusLine.message());
    }
}
