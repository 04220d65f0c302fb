//! The directives of a cache, under the prefix of a family of upstreams.

/// The table of one family. The arguments are the prefix of the names, the default key as the reference shows it, whether
/// the family's `…_use_stale` has a word, and the paths below `Settings` of the family's settings for files and for these.
macro_rules! caching {
    ($prefix:literal, $key:literal, $has:expr, ($($store:tt)+), ($($path:tt)+)) => {{
        use weir_http::read::directive::{Arity, Directive, HSL, HTTP, ONE};
        use weir_http::text::value;
        use $crate::family::cache;
        &[
            Directive::new(concat!($prefix, "_cache_path"), HTTP, Arity::AtLeast(2),
                "Declares a cache: PATH keys_zone=NAME:SIZE [levels= use_temp_path= inactive= max_size= min_free= manager_files= \
                 manager_sleep= manager_threshold= loader_files= loader_sleep= loader_threshold=], and weir's memory=SIZE.",
                |b, s| cache::declare(b, s, $prefix)).many(),
            Directive::new(concat!($prefix, "_cache"), HSL, ONE,
                "The zone that stores the answers.",
                |b, s| {
                    let zone = cache::zone(b, s)?;
                    let all = crate::settings(b);
                    if !matches!(zone, cache::facts::Use::Off) {
                        all.$($store)+.give_way(concat!($prefix, "_store"))?;
                    }
                    all.$($path)+.zone = Some(zone);
                    Ok(())
                }).default("off"),
            Directive::new(concat!($prefix, "_cache_key"), HSL, ONE,
                "The key that identifies an answer.",
                |b, s| cache::key(b, s, |all| &mut all.$($path)+)).default($key),
            Directive::new(concat!($prefix, "_cache_valid"), HSL, Arity::AtLeast(1),
                "The lifetime of answers with these statuses that state no lifetime themselves: [STATUS...|any] TIME.",
                |b, s| cache::valid(b, s, |all| &mut all.$($path)+)).many(),
            Directive::new(concat!($prefix, "_cache_methods"), HSL, Arity::AtLeast(1),
                "The methods whose answers weir caches.",
                |b, s| cache::methods(b, s, |all| &mut all.$($path)+)).many().default("GET HEAD"),
            Directive::new(concat!($prefix, "_cache_min_uses"), HSL, ONE,
                "The number of requests for a key after which weir stores the answer.",
                |b, s| { crate::settings(b).$($path)+.min_uses = Some(value::first_number(s)?); Ok(()) }).default("1"),
            Directive::new(concat!($prefix, "_cache_bypass"), HSL, Arity::AtLeast(1),
                "weir bypasses the cache if one of these values is neither empty nor 0.",
                |b, s| cache::add(b, s, |all| &mut all.$($path)+.bypass)).many(),
            Directive::new(concat!($prefix, "_no_cache"), HSL, Arity::AtLeast(1),
                "weir does not store the answer if one of these values is neither empty nor 0.",
                |b, s| cache::add(b, s, |all| &mut all.$($path)+.no_cache)).many(),
            Directive::new(concat!($prefix, "_cache_purge_tag"), HSL, Arity::AtLeast(1),
                "weir's own: if the purge applies and one of these values names tags, separated by spaces or commas, \
                 weir purges all answers of the zone with one of the tags, in place of the key.",
                |b, s| { let value = cache::templates(b, s)?; crate::settings(b).$($path)+.purge_tag = Some(value); Ok(()) }),
            Directive::new(concat!($prefix, "_cache_lock"), HSL, Arity::Flag,
                "Only one request at a time fetches a new key; the other requests wait for its answer.",
                |b, s| {
                    let on = value::flag(s)?;
                    crate::declaring(b).cache.lock_is_written = true;
                    crate::settings(b).$($path)+.lock = Some(Some(on));
                    Ok(())
                }).default("on, but off if the file sets it anywhere (nginx: off)"),
            Directive::new(concat!($prefix, "_cache_lock_timeout"), HSL, ONE,
                "How long a request waits for the answer to another request.",
                |b, s| { crate::settings(b).$($path)+.lock_timeout = Some(value::time(s)?); Ok(()) }).default("5s"),
            Directive::new(concat!($prefix, "_cache_lock_age"), HSL, ONE,
                "After this time one more request may fetch the same key.",
                |b, s| { crate::settings(b).$($path)+.lock_age = Some(value::time(s)?); Ok(()) }).default("5s"),
            Directive::new(concat!($prefix, "_cache_use_stale"), HSL, Arity::AtLeast(1),
                "The cases in which weir serves a stale answer.",
                |b, s| cache::use_stale(b, s, |all| &mut all.$($path)+, $has)).many().default("off, but for one day if the upstream cannot be reached (nginx: off)"),
            Directive::new(concat!($prefix, "_cache_background_update"), HSL, Arity::Flag,
                "Serves the stale answer at once and fetches a new answer in the background.",
                |b, s| { crate::settings(b).$($path)+.background_update = Some(value::flag(s)?); Ok(()) }).default("on (nginx: off)"),
            Directive::new(concat!($prefix, "_cache_revalidate"), HSL, Arity::Flag,
                "Asks the upstream whether a stale answer has changed, by its Last-Modified and ETag.",
                |b, s| { crate::settings(b).$($path)+.revalidate = Some(value::flag(s)?); Ok(()) }).default("off"),
            Directive::new(concat!($prefix, "_cache_max_range_offset"), HSL, ONE,
                "weir passes a range that begins beyond this offset to the upstream, and does not cache it.",
                |b, s| { crate::settings(b).$($path)+.max_range_offset = Some(Some(value::offset(s)?)); Ok(()) }),
            Directive::new(concat!($prefix, "_cache_guard"), HSL, Arity::Flag,
                "weir's own: does not share answers to requests with credentials or session-like cookies, unless the answer \
                 says public or the key separates the users.",
                |b, s| { crate::settings(b).$($path)+.guard = Some(value::flag(s)?); Ok(()) }).default("on"),
            Directive::new(concat!($prefix, "_cache_honor"), HSL, Arity::AtLeast(1),
                "weir's own: further rules of the RFCs to obey: requests (their Cache-Control), guesses (lifetimes from \
                 Last-Modified), errors (stale-if-error also for 500, 502, 503 and 504).",
                |b, s| { let value = cache::honor(b, s)?; crate::settings(b).$($path)+.honor = Some(value); Ok(()) }).default("off"),
            Directive::new(concat!($prefix, "_cache_refresh_ahead"), HSL, ONE,
                "weir's own: the last part of an answer's lifetime, in percent, in which a hit makes weir fetch the answer again.",
                |b, s| { crate::settings(b).$($path)+.refresh_ahead = Some(value::bounded(s, 0, 99)? as u32); Ok(()) }).default("0"),
        ]
    }};
}

pub(crate) use caching;
