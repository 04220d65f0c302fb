//! The fields of an upstream's answer that weir does not pass on: `proxy_hide_header`, `proxy_pass_header`.

use weir_wire::{ConnectionTokens, Field, Known, KnownSet, ResponseHead};

use super::pass::Scheme;

/// The fields of an answer that weir does not pass on, compiled once.
#[derive(Default)]
pub struct Hidden {
    pub(super) known: KnownSet,
    /// weir does not add its own field of these names: `Date` and `Server`, if `proxy_pass_header` names them.
    pub(super) without_own: KnownSet,
    /// `proxy_hide_header Content-Type`: weir keeps the type in a place of its own, so `known` has it in any case.
    pub(super) hides_type: bool,
    names: Vec<Box<[u8]>>,
}

/// Never passed on: these fields belong to the connection to the upstream, not to the answer (RFC 9110 §7.6.1).
const ONE_HOP: [Known; 5] =
    [Known::Connection, Known::KeepAlive, Known::TransferEncoding, Known::ContentLength, Known::ContentType];

/// Not passed on unless `proxy_pass_header` names them.
const HIDDEN: [Known; 5] =
    [Known::XAccelExpires, Known::XAccelRedirect, Known::XAccelLimitRate, Known::XAccelBuffering, Known::XAccelCharset];

/// As [`HIDDEN`], for one family.
fn hidden_by(scheme: Scheme) -> &'static [Known] {
    match scheme {
        Scheme::Http | Scheme::Grpc => &[Known::Date, Known::Server, Known::XPad],
        Scheme::FastCgi | Scheme::Scgi => &[Known::Status],
        Scheme::Uwsgi | Scheme::Memcached | Scheme::Tunnel => &[],
    }
}

impl Hidden {
    /// Compiles `proxy_hide_header` and `proxy_pass_header`.
    pub fn compile(hide: &[String], show: &[String], scheme: Scheme) -> Hidden {
        let mut hidden = Hidden::default();
        let shown = |name: &str| show.iter().any(|show| show.eq_ignore_ascii_case(name));
        for known in ONE_HOP {
            hidden.known.insert(known);
        }
        for known in HIDDEN.iter().chain(hidden_by(scheme)).copied() {
            if !shown(known.name()) {
                hidden.known.insert(known);
            }
        }
        if scheme.has_uri() {
            let own = [Known::Date, Known::Server].into_iter();
            own.filter(|known| shown(known.name())).for_each(|known| hidden.without_own.insert(known));
        }
        for name in hide.iter().filter(|name| !shown(name)) {
            hidden.hides_type |= name.eq_ignore_ascii_case("Content-Type");
            match Known::of(name.as_bytes()) {
                Some(known) => hidden.known.insert(known),
                None => hidden.names.push(name.as_bytes().into()),
            }
        }
        hidden
    }

    /// Whether weir hides a field of this name.
    #[inline]
    pub fn hides<'n>(&self, known: Option<Known>, name: impl FnOnce() -> &'n [u8]) -> bool {
        match known {
            Some(known) => self.known.contains(known),
            None => !self.names.is_empty() && self.hides_name(name()),
        }
    }

    fn hides_name(&self, name: &[u8]) -> bool {
        self.names.iter().any(|hidden| hidden.eq_ignore_ascii_case(name))
    }
}

/// The further fields that an upstream's Connection field names: weir does not pass them on (RFC 9110 §7.6.1).
pub struct Named<'h> {
    head: &'h ResponseHead,
    bytes: &'h [u8],
    any: bool,
}

impl<'h> Named<'h> {
    /// The fields that this head names.
    pub fn of(head: &'h ResponseHead, bytes: &'h [u8]) -> Named<'h> {
        Named { head, bytes, any: head.tokens(bytes).names }
    }

    /// Whether the head names this field of it. Upgrade is exempt: an answer with Upgrade is meant for the client.
    #[inline]
    pub fn has(&self, field: &Field) -> bool {
        self.any
            && field.known != Some(Known::Upgrade)
            && ConnectionTokens::lists(self.bytes, &self.head.fields, field.name.of(self.bytes))
    }
}
