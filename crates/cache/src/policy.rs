//! The settings that a location's directives give to the rules.

use crate::cache_control::Control;

/// The settings of a location; [`Policy::default`] is a file with only `proxy_cache`.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    /// `proxy_ignore_headers`.
    pub ignored: Ignored,
    /// `proxy_cache_valid`, in the order of the file.
    pub valid: &'a [Valid],
    /// `proxy_cache_use_stale`; `None` if the file does not set it: then RFC 9111 §4.2.4 decides.
    pub use_stale: Option<UseStale>,
    /// `proxy_cache_revalidate`.
    pub revalidates: bool,
    /// `proxy_cache_background_update`.
    pub refreshes_behind: bool,
    /// Lifetimes are guessed from `Last-Modified` (RFC 9111 §4.2.2).
    pub guesses: bool,
    /// `Cache-Control` and `Pragma` of requests are obeyed (RFC 9111 §5.2.1), so any client can reach the origin.
    pub obeys_requests: bool,
    /// Answers to authorized requests are not shared; off if the key distinguishes credentials.
    pub guards_credentials: bool,
    /// Answers to requests with a session cookie are not shared; off if the key distinguishes sessions.
    pub guards_sessions: bool,
    /// `stale-if-error` also applies to answers of 500, 502, 503 and 504 (RFC 5861 §4), which nginx passes on.
    pub errors_are_statuses: bool,
    /// The key distinguishes ranges from the whole (`$slice_range`, `$http_range`), so a 206 may be kept.
    pub keeps_parts: bool,
}

impl Default for Policy<'_> {
    fn default() -> Self {
        Policy {
            ignored: Ignored::NOTHING,
            valid: &[],
            use_stale: None,
            revalidates: false,
            refreshes_behind: true,
            guesses: false,
            obeys_requests: false,
            guards_credentials: true,
            guards_sessions: true,
            errors_are_statuses: false,
            keeps_parts: false,
        }
    }
}

impl Policy<'_> {
    /// The lifetime from `proxy_cache_valid` for answers of this status, in seconds; 0 means "do not keep".
    ///
    /// <https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_cache_valid>: the first row that matches.
    pub fn valid_s(&self, status: u16) -> Option<u32> {
        self.valid.iter().find(|row| row.status.is_none_or(|of| of == status)).map(|row| row.seconds)
    }

    pub(super) fn control(&self, stated: Control) -> Control {
        if self.ignored.contains(Ignored::CACHE_CONTROL) { Control::default() } else { stated }
    }
}

/// One status of a `proxy_cache_valid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Valid {
    /// `None` for `any`.
    pub status: Option<u16>,
    /// The lifetime, in seconds.
    pub seconds: u32,
}

macro_rules! set {
    ($(#[$doc:meta])* $name:ident of $bits:ident: $($(#[$item_doc:meta])* $item:ident = $bit:literal;)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name($bits);

        impl $name {
            /// The empty set.
            pub const NOTHING: $name = $name(0);
            $($(#[$item_doc])* pub const $item: $name = $name(1 << $bit);)+

            /// The union of both.
            #[must_use]
            pub const fn with(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }

            /// Whether it contains all of `other`.
            pub const fn contains(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }
        }
    };
}

set! {
    /// Ignored fields of an answer: the part of `proxy_ignore_headers` that concerns caching.
    Ignored of u8:
    /// `X-Accel-Expires`.
    ACCEL_EXPIRES = 0;
    /// `Expires`.
    EXPIRES = 1;
    /// `Cache-Control`, and with it `CDN-Cache-Control`.
    CACHE_CONTROL = 2;
    /// `Set-Cookie`.
    SET_COOKIE = 3;
    /// `Vary`.
    VARY = 4;
}

set! {
    /// The cases in which a stale answer may be served: `proxy_cache_use_stale`.
    UseStale of u16:
    /// `error`: connecting, sending or reading failed.
    ERROR = 0;
    /// `timeout`.
    TIMEOUT = 1;
    /// `invalid_header`.
    INVALID_HEADER = 2;
    /// `updating`: another request is fetching the answer.
    UPDATING = 3;
    /// `http_500`.
    HTTP_500 = 4;
    /// `http_502`.
    HTTP_502 = 5;
    /// `http_503`.
    HTTP_503 = 6;
    /// `http_504`.
    HTTP_504 = 7;
    /// `http_403`.
    HTTP_403 = 8;
    /// `http_404`.
    HTTP_404 = 9;
    /// `http_429`.
    HTTP_429 = 10;
}

impl UseStale {
    /// The member for an answer of this status, if there is one.
    pub const fn status(status: u16) -> Option<UseStale> {
        Some(match status {
            500 => UseStale::HTTP_500,
            502 => UseStale::HTTP_502,
            503 => UseStale::HTTP_503,
            504 => UseStale::HTTP_504,
            403 => UseStale::HTTP_403,
            404 => UseStale::HTTP_404,
            429 => UseStale::HTTP_429,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_fits_counts() {
        let row = |status, seconds| Valid { status, seconds };
        let valid = [row(Some(200), 10), row(Some(404), 0), row(None, 5), row(Some(500), 7)];
        let policy = Policy { valid: &valid, ..Policy::default() };
        for (status, expected) in [(200, 10), (404, 0), (500, 5), (301, 5)] {
            assert_eq!(policy.valid_s(status), Some(expected), "{status}");
        }
        assert_eq!(Policy::default().valid_s(200), None);
    }

    #[test]
    fn sets_hold_what_was_put_in() {
        let set = UseStale::ERROR.with(UseStale::HTTP_503);
        assert!(set.contains(UseStale::ERROR) && set.contains(UseStale::HTTP_503));
        assert!(!set.contains(UseStale::TIMEOUT) && !UseStale::NOTHING.contains(UseStale::ERROR));
        assert_eq!(UseStale::status(503), Some(UseStale::HTTP_503));
        assert_eq!(UseStale::status(501), None);
    }
}
