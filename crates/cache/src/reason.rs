//! The reasons for the cache's decisions: the values of `$weir_cache_reason`. Every decision has its own name.

/// The decision that a [`Reason`] explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
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
    ($($variant:ident $decision:ident $name:literal $meaning:literal;)+) => {
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

            /// The decision that the reason explains.
            pub const fn decision(self) -> Decision {
                match self { $(Reason::$variant => Decision::$decision,)+ }
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
    Valid Stored "stored-proxy-cache-valid" "It states no lifetime; proxy_cache_valid gave it one.";
    Heuristic Stored "stored-heuristic" "It states no lifetime; weir uses a tenth of its age since Last-Modified.";
    ToRevalidate Stored "stored-to-revalidate" "It must be revalidated before use, and it has a validator for that.";
    ToServeStale Stored "stored-to-serve-stale" "It is never fresh, but stale-while-revalidate or stale-if-error allows its use.";

    Method NotStored "method" "The method is not among proxy_cache_methods.";
    Interim NotStored "interim" "A 1xx answer is not the final answer.";
    NotModified NotStored "not-modified" "It is a 304, and it belongs to no stored answer.";
    Partial NotStored "partial" "It is a part of a body (206), and the key does not separate parts from the whole.";
    NoStore NotStored "no-store" "Cache-Control: no-store.";
    NotUnderstood NotStored "must-understand" "Cache-Control: must-understand, and weir does not know the status.";
    Private NotStored "private" "Cache-Control: private: for one user only.";
    NoCache NotStored "no-cache" "Cache-Control: no-cache, and it has no validator or proxy_cache_revalidate is off.";
    NoLifetime NotStored "no-lifetime" "Neither the answer nor proxy_cache_valid gives it a lifetime.";
    LifetimeZero NotStored "lifetime-zero" "It is stale when it arrives: its lifetime is zero or already over.";
    LifetimeInvalid NotStored "lifetime-invalid" "weir cannot read max-age, s-maxage or Expires, so it counts as stale.";
    AccelZero NotStored "x-accel-expires-0" "X-Accel-Expires: 0.";
    AccelRedirect NotStored "x-accel-redirect" "X-Accel-Redirect names a URI on this server, which answers instead.";
    SetCookie NotStored "set-cookie" "It sets a cookie, which is meant for one user.";
    SetsSession NotStored "sets-session-cookie" "It sets a session-like cookie, whatever proxy_ignore_headers says.";
    VaryStar NotStored "vary-star" "Vary: * means that weir cannot know whether another request matches.";
    VaryLong NotStored "vary-long" "Vary names more fields than weir compares.";
    RequestAuthorization NotStored "authorization" "The request was authorized, and the answer does not say that it is for everybody.";
    RequestSession NotStored "session-cookie" "The request had a session-like cookie, and the answer does not say that it is for everybody.";
    RequestNoStore NotStored "request-no-store" "The request says Cache-Control: no-store.";
    Divergent NotStored "divergent" "weir saw that bodies under this key differ by cookie.";
    NoCacheDirective NotStored "proxy-no-cache" "proxy_no_cache excludes it.";
    Unbuffered NotStored "unbuffered" "weir passes it on without buffering: proxy_buffering off, or X-Accel-Buffering: no.";
    MinUses NotStored "min-uses" "The key has been requested fewer than proxy_cache_min_uses times.";
    CutShort NotStored "cut-short" "The origin broke off before the end of the body.";
    TooLarge NotStored "too-large" "It is larger than the zone allows for one object.";
    NoRoom NotStored "no-room" "Neither memory nor disk had room, or writing failed.";

    Fresh Served "fresh" "It is fresh.";
    Revalidated Served "revalidated" "The origin answered 304: the stored answer is still valid.";
    StaleRefreshing Served "stale-while-revalidate" "It is stale by no more than allowed; weir started a refresh.";
    StaleUpdating Served "stale-updating" "It is stale, and another request is fetching it.";
    StaleError Served "stale-error" "The origin could not be reached or broke off.";
    StaleTimeout Served "stale-timeout" "The origin took too long.";
    StaleInvalid Served "stale-invalid-header" "weir could not understand the origin's answer.";
    StaleStatus Served "stale-status" "The origin answered with a status that proxy_cache_use_stale names.";
    StaleAsked Served "stale-max-stale" "The request accepts a stale answer.";

    Absent Fetched "absent" "Nothing is stored under the key.";
    VariantAbsent Fetched "variant-absent" "The stored variants were selected by other values of the request fields (Vary).";
    Expired Fetched "expired" "Its lifetime is over.";
    MustAsk Fetched "must-ask" "It must be revalidated before each use.";
    Purged Fetched "purged" "A soft purge made it stale.";
    ClockWentBack Fetched "clock-went-back" "Its storage time is in the future, so weir cannot know its age.";
    AskedNoCache Fetched "request-no-cache" "The request says no-cache, and weir is set to obey request directives.";
    AskedMaxAge Fetched "request-max-age" "It is older than the request's max-age allows.";
    AskedMinFresh Fetched "request-min-fresh" "It does not stay fresh for as long as the request's min-fresh asks.";
    OnlyIfCached Fetched "only-if-cached" "The request accepts only a stored answer: 504.";

    BypassDirective Bypassed "bypass" "proxy_cache_bypass excludes the cache.";
    BypassMethod Bypassed "bypass-method" "The method is not among proxy_cache_methods.";
    BypassAuthorization Bypassed "bypass-authorization" "The request is authorized, and the stored answer does not say that it is for everybody.";
    BypassSession Bypassed "bypass-session-cookie" "The request has a session-like cookie, and the stored answer does not say that it is for everybody.";
    BypassDivergent Bypassed "bypass-divergent" "weir saw that bodies under this key differ by cookie.";
    BypassRange Bypassed "bypass-range-offset" "The range begins beyond proxy_cache_max_range_offset.";
    BypassBody Bypassed "bypass-body" "The key, or a condition of the cache, is made of the request's body, and the body is not in memory.";
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

    /// The row of a reason in the table of `docs/guide/cache.md`.
    fn row(reason: &Reason) -> String {
        let decision = match reason.decision() {
            Decision::Stored => "stored",
            Decision::NotStored => "not stored",
            Decision::Served => "served from the cache",
            Decision::Fetched => "fetched",
            Decision::Bypassed => "bypassed",
        };
        format!("| `{}` | {decision} | {} |\n", reason.as_str(), reason.meaning())
    }

    #[test]
    fn the_guide_has_the_same_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/cache.md");
        let guide = std::fs::read_to_string(path).unwrap_or_default();
        let head = "| reason | | |\n|---|---|---|\n";
        let (_, rest) = guide.split_once(head).unwrap_or_default();
        let (table, _) = rest.split_once("\n\n").unwrap_or_default();
        let expected: String = Reason::ALL.iter().map(row).collect();
        assert!(format!("{table}\n") == expected, "stale table in docs/guide/cache.md; it must be:\n{head}{expected}");
    }
}
