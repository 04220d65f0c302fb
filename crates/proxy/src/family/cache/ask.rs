//! Asks the cache before the upstream.
//!
//! The order is nginx's: zone, method, key, purge, bypass, then the stored object and whether it may be served. If not,
//! the first request leads and the others wait for the answer it fetches. Invariant: if a request leads but does not
//! fetch, it drops the lead, so that a waiting request can lead.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use weir_cache::policy::Policy;
use weir_cache::reason::Reason;
use weir_cache::request::RequestFacts;
use weir_cache::serving::{self, Use as Verdict};
use weir_cache::store::{Found, Joined, KEY_BYTES_MAX, Leader, Object, Place, Reader, Status, Waited, Waiter, Zone};
use weir_http::exchange::phase::Outcome;
use weir_http::exchange::request_body::RequestBody;
use weir_http::exchange::visit::{Key, Visit};
use weir_http::exchange::{Exchange, Plain};
use weir_http::hold::conn::{Conn, Gone};
use weir_http::text::template::any_set;
use weir_net::log::Level;
use weir_net::{Deadline, Instant, buffer, clock};
use weir_wire::{BodyLength, Known};

use super::facts::{self, policy};
use super::purging::{self, ByMethod};
use super::{hit, purge, refresh};
use crate::family::Values;
use crate::family::proxy::request;
use crate::family::upstream::answer::Answer;
use crate::part;

/// The next step.
pub enum Said {
    /// The cache answers.
    Answer(Answer),
    /// The exchange asks the upstream.
    Fetch,
}

/// Asks the cache of the location; `values` are the settings of the location.
pub async fn ask(exchange: &mut Exchange<'_>, conn: &mut Conn, values: &Values) -> Said {
    if !exchange.cache.is_untouched() {
        *exchange.cache = Visit { distrusts: exchange.cache.distrusts, ..Visit::default() };
        exchange.plain = Plain::No;
    }
    let number = match super::zone_number(exchange, &values.cache.zone) {
        Ok(Some(number)) => number,
        Ok(None) => return Said::Fetch,
        Err(status) => return Said::Answer(Answer::Outcome(Outcome::Status(status))),
    };
    let Some(zone) = crate::declared(exchange.conf).cache.zone(number) else { return Said::Fetch };
    let cache = &values.cache;
    let is_kept = cache.methods.has(exchange.request.method());
    if !is_kept && cache.purge.values().is_empty() && weir_cache::request::is_safe(exchange.request.method()) {
        exchange.cache.reason = Some(Reason::BypassMethod);
        return Said::Fetch;
    }
    if cache.reads_body && !exchange.body.is_known(exchange.reader.as_ref()) {
        exchange.cache.reason = Some(Reason::BypassBody);
        return Said::Fetch;
    }
    let was_whole = part::start(exchange).is_none();
    exchange.cache.key = key(exchange, values);
    if !is_kept && was_whole {
        // nginx has no key for this request: its `$slice_range` begins nothing.
        part::forget(exchange);
    }
    if exchange.cache.key.0.len() > KEY_BYTES_MAX {
        exchange.log(
            Level::Error,
            format_args!("the cache key is longer than {KEY_BYTES_MAX} bytes, so weir does not cache the answer"),
        );
        return Said::Fetch;
    }
    if any_set(exchange, cache.purge.values()) {
        return Said::Answer(purge::answer(exchange, zone));
    }
    if !is_kept {
        exchange.cache.reason = Some(Reason::BypassMethod);
        exchange.cache.invalidates = Some(number);
        return Said::Fetch;
    }
    exchange.cache.zone = Some(number);
    if any_set(exchange, &cache.bypass) {
        exchange.cache.status = Some(Status::Bypass);
        exchange.cache.reason = Some(Reason::BypassDirective);
        let key = zone.key(&exchange.cache.key.0);
        let place = zone.find(&key, clock::now(), |names| Some(facts::select(exchange.request, names))).0;
        exchange.cache.leader = zone.lead_beside(&key, place, clock::now());
        return fetch_whole(exchange);
    }
    look(exchange, conn, values, zone).await
}

/// The key. Without `proxy_cache_key` it is nginx's default: scheme, host and URI as the upstream gets them.
fn key(exchange: &mut Exchange<'_>, values: &Values) -> Key {
    let mut key = buffer::lease(0);
    match &values.cache.key {
        Some(template) => template.eval(exchange, &mut key),
        None => {
            let pass = values.proxy.pass.as_deref();
            match pass.and_then(|pass| pass.template.as_ref()) {
                Some(template) => template.eval(exchange, &mut key),
                None => {
                    key.extend_from_slice(pass.map_or("http://", |pass| pass.scheme()).as_bytes());
                    key.extend_from_slice(pass.map_or(&b""[..], |pass| pass.host.as_bytes()));
                }
            }
            request::push_target(exchange, pass.filter(|pass| pass.template.is_none()), None, &mut key);
        }
    }
    Key(key)
}

/// Purges as the request asks by its method; `values` are the settings of the location.
pub fn purge_by_method(exchange: &mut Exchange<'_>, values: &Values, by: &ByMethod) -> Outcome {
    if let Err(status) = purging::check(exchange, by) {
        return Outcome::Status(status);
    }
    match super::zone_of(exchange, &values.cache.zone) {
        Ok(Some(zone)) => {
            let key = key(exchange, values);
            purging::purge(exchange, zone, &key.0, by)
        }
        Ok(None) => Outcome::Status(404),
        Err(status) => Outcome::Status(status),
    }
}

async fn look(exchange: &mut Exchange<'_>, conn: &mut Conn, values: &Values, zone: &Arc<Zone>) -> Said {
    let policy = policy(values);
    let facts = RequestFacts::read(facts::request_fields(exchange.request));
    let (place, found) = {
        let (key, request) = (zone.key(&exchange.cache.key.0), &exchange.request);
        zone.find(&key, clock::now(), |names| Some(facts::select(request, names)))
    };
    let asked = Asked { zone, place, facts, policy };
    let found = match found {
        Found::Object(object) => Some(object),
        // Boxed: this case is rare, and otherwise every exchange would be larger.
        Found::Cold(cold) => Box::pin(cold.load()).await,
        Found::Nothing => None,
    };
    if let Some(object) = found {
        return asked.found(exchange, conn, object).await;
    }
    let (verdict, reason) = serving::nothing_stored(&facts, &policy);
    exchange.cache.status = Some(Status::Miss);
    exchange.cache.reason = Some(reason);
    if verdict == Verdict::Refuse {
        return Said::Answer(Answer::Outcome(Outcome::Status(504)));
    }
    let opened = exchange.cache.zone.and_then(|number| crate::declared(exchange.conf).cache.opened(number));
    if opened.is_some_and(|opened| opened.is_personal(&exchange.cache.key.0)) {
        exchange.cache.reason = Some(Reason::BypassDivergent);
        exchange.cache.may_not_keep = Some(Reason::BypassDivergent);
        return Said::Fetch;
    }
    let min_uses = values.cache.min_uses;
    if min_uses > 1 && u64::from(zone.note_use(&zone.key(&exchange.cache.key.0), place, clock::now())) < min_uses {
        exchange.cache.may_not_keep = Some(Reason::MinUses);
        return Said::Fetch;
    }
    // No other request waits for a personal answer, because no other client may get it.
    if !asked.is_locked(exchange) || serving::is_guarded(&facts, &asked.policy) {
        return asked.beside(exchange);
    }
    let joined = asked.join(exchange, None);
    asked.go_by(exchange, conn, joined).await
}

/// A request that looks up the cache.
struct Asked<'a> {
    zone: &'a Arc<Zone>,
    place: Place,
    facts: RequestFacts,
    policy: Policy<'a>,
}

impl Asked<'_> {
    /// Uses a stored object: serves it, or asks the upstream about it.
    async fn found(self, exchange: &mut Exchange<'_>, conn: &mut Conn, object: Arc<Object>) -> Said {
        let now_ms = clock::unix_ms() as i64;
        let mut validity = facts::validity(&object.times);
        if object.is_soft_purged() {
            validity.expire(now_ms);
        }
        let (verdict, reason) = serving::judge(&validity, &self.facts, &self.policy, now_ms);
        match verdict {
            // A request with a body cannot be repeated in the background.
            Verdict::ServeAndRefresh if !may_be_repeated(exchange) => {
                self.ask_about(exchange, conn, object, reason).await
            }
            Verdict::Serve => {
                self.ahead(exchange, &object, now_ms);
                Said::Answer(hit::serve_found(exchange, object, reason, &self.facts))
            }
            Verdict::ServeAndRefresh => {
                let status = match self.join(exchange, Some(&object)) {
                    Joined::Lead(leader) => {
                        let is_begun = behind(exchange, leader, object.clone());
                        if is_begun { Status::Stale } else { Status::Updating }
                    }
                    Joined::Stored(newer) if self.may_have(exchange, &newer) => {
                        return Said::Answer(hit::serve(exchange, newer, Status::Hit, Reason::Fresh));
                    }
                    _ => Status::Updating,
                };
                Said::Answer(hit::serve(exchange, object, status, reason))
            }
            Verdict::Refuse => Said::Answer(Answer::Outcome(Outcome::Status(504))),
            Verdict::Bypass => {
                exchange.cache.status = Some(Status::Bypass);
                exchange.cache.reason = Some(reason);
                exchange.cache.may_not_keep = Some(reason);
                Said::Fetch
            }
            Verdict::Ask => self.ask_about(exchange, conn, object, reason).await,
        }
    }

    /// The stored object is stale: the first request asks the upstream to confirm or replace it.
    async fn ask_about(
        self,
        exchange: &mut Exchange<'_>,
        conn: &mut Conn,
        object: Arc<Object>,
        reason: Reason,
    ) -> Said {
        exchange.cache.status = Some(Status::Expired);
        exchange.cache.reason = Some(reason);
        let joined = self.join(exchange, Some(&object));
        let validity = facts::validity(&object.times);
        let may_update = serving::while_updating(&validity, &self.policy, clock::unix_ms() as i64);
        if may_update && matches!(joined, Joined::Wait(_) | Joined::Pass) {
            return Said::Answer(hit::serve(exchange, object, Status::Updating, Reason::StaleUpdating));
        }
        exchange.cache.old = Some(object);
        if matches!(joined, Joined::Wait(_)) && !self.is_locked(exchange) {
            return self.beside(exchange);
        }
        self.go_by(exchange, conn, joined).await
    }

    /// Whether only one request at a time fetches a key.
    fn is_locked(&self, exchange: &Exchange<'_>) -> bool {
        crate::values(exchange.location).cache.lock.unwrap_or(!crate::declared(exchange.conf).cache.lock_is_written)
    }

    fn join(&self, exchange: &Exchange<'_>, seen: Option<&Object>) -> Joined {
        let key = self.zone.key(&exchange.cache.key.0);
        self.zone.join(&key, self.place, seen.map(|object| object.serial), clock::now())
    }

    /// Fetches, even if another request fetches the same key.
    fn beside(&self, exchange: &mut Exchange<'_>) -> Said {
        exchange.cache.leader = self.zone.lead_beside(&self.zone.key(&exchange.cache.key.0), self.place, clock::now());
        fetch(exchange)
    }

    /// Leads, or waits for the request that leads.
    async fn go_by(self, exchange: &mut Exchange<'_>, conn: &mut Conn, joined: Joined) -> Said {
        let waiter = match joined {
            Joined::Lead(leader) => {
                exchange.cache.leader = Some(leader);
                return fetch(exchange);
            }
            Joined::Stored(object) => return self.by_other(exchange, object),
            Joined::Pass => return self.beside(exchange),
            Joined::Wait(waiter) => waiter,
        };
        let begun = clock::now();
        let waited = wait(exchange, conn, waiter).await;
        count_wait(exchange, begun);
        let waited = match waited {
            Ok(waited) => waited,
            Err(error) => return Said::Answer(Answer::Gone(Gone::Closed(error))),
        };
        match waited {
            Waited::Lead(leader) => {
                exchange.cache.leader = Some(leader);
                fetch(exchange)
            }
            Waited::TimedOut => {
                exchange.cache.reason = Some(Reason::LockTimeout);
                exchange.cache.may_not_keep = Some(Reason::LockTimeout);
                exchange.cache.old = None;
                Said::Fetch
            }
            // nginx's lock holds until the answer is complete. Other requests read the growing answer only if the file
            // sets no `proxy_cache_lock`.
            Waited::Filling(object) if crate::values(exchange.location).cache.lock == Some(true) => {
                match wait_for_whole(exchange, conn, &object).await {
                    Ok(true) => self.by_other(exchange, object),
                    Ok(false) => self.beside(exchange),
                    Err(error) => Said::Answer(Answer::Gone(Gone::Closed(error))),
                }
            }
            Waited::Filling(object) | Waited::Stored(object) => self.by_other(exchange, object),
            Waited::Pass => self.beside(exchange),
        }
    }

    /// Another request fetched the object: it answers this request too, or this request fetches its own.
    fn by_other(&self, exchange: &mut Exchange<'_>, object: Arc<Object>) -> Said {
        if !self.may_have(exchange, &object) {
            return self.beside(exchange);
        }
        exchange.cache.old = None;
        Said::Answer(hit::serve(exchange, object, Status::Hit, Reason::Fresh))
    }

    /// Whether an object that another request fetched answers this request too. The fetch ended after this request
    /// arrived, so the object is good enough even if it is already stale.
    fn may_have(&self, exchange: &Exchange<'_>, object: &Object) -> bool {
        let now_ms = clock::unix_ms() as i64;
        let (verdict, _) = serving::judge(&facts::validity(&object.times), &self.facts, &self.policy, now_ms);
        !matches!(verdict, Verdict::Bypass | Verdict::Refuse) && facts::fits(exchange.request, object)
    }

    /// Refreshes a fresh object before it becomes stale, if `proxy_cache_refresh_ahead` is set.
    fn ahead(&self, exchange: &mut Exchange<'_>, object: &Arc<Object>, now_ms: i64) {
        let part = u64::from(crate::values(exchange.location).cache.refresh_ahead);
        if part == 0 || !may_be_repeated(exchange) {
            return;
        }
        let times = &object.times;
        let life = times.fresh_until_ms.saturating_sub(times.stored_ms);
        let left = times.fresh_until_ms.saturating_sub(u64::try_from(now_ms).unwrap_or(0));
        if left.saturating_mul(100) > life.saturating_mul(part) {
            return;
        }
        if let Joined::Lead(leader) = self.join(exchange, Some(object)) {
            behind(exchange, leader, object.clone());
        }
    }
}

/// Whether weir can repeat the request without its client: it has no body.
fn may_be_repeated(exchange: &Exchange<'_>) -> bool {
    let has_body = match &exchange.body {
        RequestBody::Unread => !matches!(exchange.request.length, None | Some(BodyLength::None | BodyLength::Exact(0))),
        RequestBody::Gone => false,
        RequestBody::Memory(_) | RequestBody::File(_) => exchange.body.length() > 0,
    };
    matches!(exchange.request.method(), b"GET" | b"HEAD") && !has_body
}

/// Waits for the request that leads, and watches whether the client disconnects.
async fn wait(exchange: &Exchange<'_>, conn: &Conn, waiter: Waiter) -> std::io::Result<Waited> {
    let values = crate::values(exchange.location);
    // If the file sets no `proxy_cache_lock`, weir does not send all waiting requests to a slow origin at once.
    let timeout = match values.cache.lock {
        Some(_) => values.cache.lock_timeout,
        None => values.cache.lock_timeout.max(values.proxy.read_timeout),
    };
    let mut waiting = pin!(waiter.wait(timeout, values.cache.lock_age));
    poll_fn(|context| match waiting.as_mut().poll(context) {
        Poll::Ready(waited) => Poll::Ready(Ok(waited)),
        Poll::Pending if !values.proxy.ignore_client_abort => conn.poll_gone().map(Err),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Waits until a body is whole; `false` if this takes longer than `proxy_cache_lock_age`, or if the fetch has failed.
async fn wait_for_whole(exchange: &Exchange<'_>, conn: &Conn, object: &Arc<Object>) -> std::io::Result<bool> {
    let values = crate::values(exchange.location);
    let (end, age) = (Reader::new(object.clone(), u64::MAX), Deadline::new());
    age.set(values.cache.lock_age);
    poll_fn(|context| match end.poll_piece(context) {
        Poll::Ready(ended) => Poll::Ready(Ok(ended.is_none())),
        Poll::Pending if age.poll_expired().is_ready() => Poll::Ready(Ok(false)),
        Poll::Pending if !values.proxy.ignore_client_abort => conn.poll_gone().map(Err),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Prepares the upstream request, unless the client's range is passed to the upstream.
fn fetch(exchange: &mut Exchange<'_>) -> Said {
    if range_begins_beyond(exchange, crate::values(exchange.location).cache.max_range_offset) {
        exchange.cache.may_not_keep = Some(Reason::BypassRange);
        exchange.cache.pass(Reason::BypassRange);
        return Said::Fetch;
    }
    fetch_whole(exchange)
}

/// Prepares the upstream request: it requests the whole answer by GET, or asks whether the stored object is still
/// valid. As in nginx, `proxy_cache_bypass` comes here whatever the range is.
fn fetch_whole(exchange: &mut Exchange<'_>) -> Said {
    let cache = &crate::values(exchange.location).cache;
    let visit = &mut exchange.cache;
    visit.wants_whole = visit.may_not_keep.is_none();
    visit.converts_head = visit.wants_whole && cache.convert_head && exchange.request.is_head();
    visit.revalidates = cache.revalidate
        && !visit.distrusts
        && visit.old.as_ref().is_some_and(|old| !old.head.etag().is_empty() || old.head.last_modified.is_some());
    Said::Fetch
}

/// nginx: `ngx_http_upstream_cache_check_range`.
fn range_begins_beyond(exchange: &Exchange<'_>, max: Option<u64>) -> bool {
    let (Some(max), Some(range)) = (max, exchange.request.field(Known::Range)) else { return false };
    if max == 0 {
        return true;
    }
    let Some(set) = range.get(..6).filter(|unit| unit.eq_ignore_ascii_case(b"bytes=")).and_then(|_| range.get(6..))
    else {
        return false;
    };
    let set = set.trim_ascii_start();
    let digits = set.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let first = set.get(..digits).and_then(|digits| std::str::from_utf8(digits).ok());
    match first.filter(|first| !first.is_empty()) {
        Some(first) => first.parse::<u64>().map_or(true, |first| first >= max),
        // A range from the end counts as beyond any offset.
        None => set.first() == Some(&b'-'),
    }
}

/// Starts a refresh of a stored object. Returns `false` if it cannot start; the next request then tries again.
fn behind(exchange: &mut Exchange<'_>, leader: Leader, old: Arc<Object>) -> bool {
    let cache = &crate::values(exchange.location).cache;
    let mut key = buffer::lease(exchange.cache.key.0.len());
    key.extend_from_slice(&exchange.cache.key.0);
    let visit = Visit {
        status: Some(Status::Expired),
        zone: exchange.cache.zone,
        key: Key(key),
        revalidates: cache.revalidate && (!old.head.etag().is_empty() || old.head.last_modified.is_some()),
        old: Some(old),
        leader: Some(leader),
        wants_whole: true,
        converts_head: cache.convert_head && exchange.request.is_head(),
        ..Visit::default()
    };
    refresh::start(exchange, visit)
}

/// Records the time a request waited for the fetch of another request.
fn count_wait(exchange: &Exchange<'_>, begun: Instant) {
    let path = exchange.cache.zone.and_then(|number| crate::declared(exchange.conf).cache.paths.get(number));
    let cell = exchange.worker.board.cache(path.map_or(0, |path| path.cell));
    cell.wait.record(clock::now().us_since(begun));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Site, on_worker, whole};

    #[test]
    fn the_key_is_the_target_as_the_upstream_gets_it_unless_the_file_says_another() {
        let http = |settings: &str| {
            format!(
                "upstream u {{ server 127.0.0.1:81; }} server {{ listen 127.0.0.1:8080; location /in/ {{ {settings} }} }}"
            )
        };
        for (settings, target, expected) in [
            ("proxy_pass http://u;", "/in/a%20b?c", "http://u/in/a%20b?c"),
            ("proxy_pass http://u;", "/in/../in/a", "http://u/in/../in/a"),
            ("proxy_pass http://u/out/;", "/in/a%20b?c", "http://u/out/a%20b?c"),
            ("proxy_pass https://u;", "/in/", "https://u/in/"),
            ("set $u u; proxy_pass http://$u;", "/in/a", "http://u/in/a"),
            ("rewrite ^ /other? break; proxy_pass http://u;", "/in/a?b", "http://u/other"),
            ("proxy_pass http://u; proxy_cache_key $host$uri;", "/in/a?b", "a.test/in/a"),
            ("proxy_pass http://u; proxy_cache_key \"$request_method $arg_x\";", "/in/a?x=1", "GET 1"),
        ] {
            let (http, request) = (http(settings), whole(&format!("GET {target}")));
            let found = on_worker(async move {
                let (site, _conn, _client) = Site::open(&http);
                let mut exchange = site.exchange(&request);
                let values = crate::values(exchange.location);
                String::from_utf8(key(&mut exchange, values).0.to_vec()).unwrap()
            });
            assert_eq!(found, expected, "{settings} {target}");
        }
    }
}
