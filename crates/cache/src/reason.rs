//! The reasons for the cache's decisions: the values of `$weir_cache_reason`, one name for every yes and every no.

/// The decision that a [`Reason`] explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An answer was kept.
    Stored,
    /// An answer was not kept.
    NotStored,
    /// A kept answer was sent.
    Served,
    /// A kept answer could not be sent, or there was none: weir asked the origin.
    Fetched,
    /// The cache was not used.
    Bypassed,
}

macro_rules! reasons {
    ($($variant:ident $kind:ident $name:literal $meaning:literal;)+) => {
        /// Why an answer was stored or not, served from the cache or not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Reason {
            $(#[doc = $meaning] $variant,)+
        }

        impl Reason {
            /// All reasons, in the order of their numbers: the length of a table of counters.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)+];

            /// The word for logs and variables; it does not change between versions.
            pub const fn as_str(self) -> &'static str {
                match self { $(Reason::$variant => $name,)+ }
            }

            /// One sentence for the documentation.
            pub const fn meaning(self) -> &'static str {
                match self { $(Reason::$variant => $meaning,)+ }
            }

            /// The decision it explains.
            pub const fn kind(self) -> Kind {
                match self { $(Reason::$variant => Kind::$kind,)+ }
            }
        }
    };
}

reasons! {
    AccelExpires Stored "stored-x-accel-expires" "X-Accel-Expires gave it a lifetime.";
    SharedMaxAge Stored "stored-s-maxage" "Cache-Control: s-maxage gave it a lifetime.";
    MaxAge Stored "stored-max-age" "Cache-Control: max-age gave it a lifetime.";
    CdnMaxAge Stored "stored-cdn-cache-control" "CDN-Cache-Control gave it a lifetime.";
    Expires Stored "stored-expires" "Expires gave it a lifetime.";
    Valid Stored "stored-proxy-cache-valid" "It says nothing itself; proxy_cache_valid gave it a lifetime.";
    Heuristic Stored "stored-heuristic" "It says nothing itself; a tenth of its age since Last-Modified is its lifetime.";
    ToRevalidate Stored "stored-to-revalidate" "It may not be used unasked, but has a validator to ask with.";
    ToServeStale Stored "stored-to-serve-stale" "It is never fresh, but stale-while-revalidate or stale-if-error lets it be used.";

    Method NotStored "method" "The method is not among proxy_cache_methods.";
    Interim NotStored "interim" "A 1xx answer is not the last one.";
    NotModified NotStored "not-modified" "A 304 without a stored answer that it could be for.";
    Partial NotStored "partial" "A part of a body (206), and the key does not tell parts from the whole.";
    NoStore NotStored "no-store" "Cache-Control: no-store.";
    NotUnderstood NotStored "must-understand" "Cache-Control: must-understand, and a status with no known meaning.";
    Private NotStored "private" "Cache-Control: private: for one user only.";
    NoCache NotStored "no-cache" "Cache-Control: no-cache, with no validator to ask with or proxy_cache_revalidate off.";
    NoLifetime NotStored "no-lifetime" "Neither the answer nor proxy_cache_valid says how long it may be kept.";
    LifetimeZero NotStored "lifetime-zero" "It is stale when it comes: its lifetime is zero or already used up.";
    LifetimeInvalid NotStored "lifetime-invalid" "max-age, s-maxage or Expires cannot be read, which counts as stale.";
    AccelZero NotStored "x-accel-expires-0" "X-Accel-Expires: 0.";
    AccelRedirect NotStored "x-accel-redirect" "X-Accel-Redirect names a place of ours that answers instead.";
    SetCookie NotStored "set-cookie" "It sets a cookie, which is meant for one user.";
    SetsSession NotStored "sets-session-cookie" "It sets a session-like cookie, whatever proxy_ignore_headers says.";
    VaryStar NotStored "vary-star" "Vary: * means that no other request can be known to match.";
    VaryLong NotStored "vary-long" "Vary names more fields than are compared.";
    RequestAuthorization NotStored "authorization" "The request was authorized, and the answer does not say that it is for everybody.";
    RequestSession NotStored "session-cookie" "The request had a session-like cookie, and the answer does not say that it is for everybody.";
    RequestNoStore NotStored "request-no-store" "The request says Cache-Control: no-store.";
    Divergent NotStored "divergent" "Bodies under this key were seen to differ by cookie.";
    NoCacheDirective NotStored "proxy-no-cache" "proxy_no_cache says so.";
    MinUses NotStored "min-uses" "The key has not been asked for proxy_cache_min_uses times.";
    CutShort NotStored "cut-short" "The origin ended before the body did.";
    TooLarge NotStored "too-large" "It is larger than the zone lets one object be.";
    NoRoom NotStored "no-room" "Neither tier had room, or writing failed.";

    Fresh Served "fresh" "It is fresh.";
    Revalidated Served "revalidated" "The origin said 304: what is stored still holds.";
    StaleRefreshing Served "stale-while-revalidate" "It is stale by no more than allowed; a refresh was started.";
    StaleUpdating Served "stale-updating" "It is stale, and another request is fetching it.";
    StaleError Served "stale-error" "The origin could not be reached or broke off.";
    StaleTimeout Served "stale-timeout" "The origin took too long.";
    StaleInvalid Served "stale-invalid-header" "The origin's answer could not be understood.";
    StaleStatus Served "stale-status" "The origin answered by a status that proxy_cache_use_stale names.";
    StaleAsked Served "stale-max-stale" "The request says that stale is good enough.";

    Absent Fetched "absent" "Nothing is stored under the key.";
    VariantAbsent Fetched "variant-absent" "What is stored was selected by other request fields (Vary).";
    Expired Fetched "expired" "Its lifetime is over.";
    MustAsk Fetched "must-ask" "It was stored to be revalidated each time.";
    Purged Fetched "purged" "It was purged softly.";
    ClockWentBack Fetched "clock-went-back" "It was stored later than now: its age cannot be told.";
    AskedNoCache Fetched "request-no-cache" "The request says no-cache, and request directives are honoured.";
    AskedMaxAge Fetched "request-max-age" "It is older than the request's max-age allows.";
    AskedMinFresh Fetched "request-min-fresh" "It is not fresh for as long as the request's min-fresh wants.";
    OnlyIfCached Fetched "only-if-cached" "The request wanted a stored answer or none: 504.";

    BypassDirective Bypassed "bypass" "proxy_cache_bypass says so.";
    BypassMethod Bypassed "bypass-method" "The method is not among proxy_cache_methods.";
    BypassAuthorization Bypassed "bypass-authorization" "An authorized request, and what is stored is not said to be for everybody.";
    BypassSession Bypassed "bypass-session-cookie" "A request with a session-like cookie, and what is stored is not said to be for everybody.";
    BypassDivergent Bypassed "bypass-divergent" "Bodies under this key were seen to differ by cookie.";
    BypassRange Bypassed "bypass-range-offset" "The range begins beyond proxy_cache_max_range_offset.";
    LockTimeout Bypassed "lock-timeout" "Waiting for another request's fetch took longer than proxy_cache_lock_timeout.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_word_of_its_own_and_its_number() {
        for (number, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, number);
            assert!(reason.as_str().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
            assert!(reason.meaning().ends_with('.'));
            assert!(Reason::ALL.iter().filter(|other| other.as_str() == reason.as_str()).count() == 1, "{reason:?}");
        }
    }
}
