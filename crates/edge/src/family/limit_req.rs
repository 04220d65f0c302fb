//! `limit_req`: a leaky bucket for each key.
//!
//! Excess is counted in thousandths of a request, as in nginx. With several limits on one request, weir first asks all
//! but the last, and charges them once all agree. <https://nginx.org/en/docs/http/ngx_http_limit_req_module.html>

use std::sync::Arc;
use std::time::Duration;

use weir_conf::{At, Statement};
use weir_fleet::{AccountVerdict, LimitTerms};
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::{Conf, Location};
use weir_http::exchange::phase::{Next, Phase};
use weir_http::exchange::variable::Variable;
use weir_http::hold::own::Owned;
use weir_http::hold::zone::{self, Table, Zone, Zones};
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, HSL, HTTP, ONE};
use weir_http::read::families::{Family, VariablesRead};
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;
use weir_meter::live::cells::LimitPolicy;
use weir_net::Lease;
use weir_net::log::Level;

use crate::fleet::{Fleet, SharedZone};

mod shared;

weir_http::settings! {
    /// The limits.
    limits: Arc<Vec<ReqLimit>> = Arc::default(),
    /// `limit_req_log_level`.
    log_level: Level = Level::Error,
    /// `limit_req_status`.
    status: u16 = 503,
    /// `limit_req_dry_run`.
    dry_run: bool = false,
}

/// The zones.
pub type Declared = Zones<Bucket, ZoneRate>;

/// The levels of `limit_req_log_level` and `limit_conn_log_level`.
pub(crate) const LOG_LEVELS: &[(&str, Level)] =
    &[("info", Level::Info), ("notice", Level::Notice), ("warn", Level::Warn), ("error", Level::Error)];

/// The family.
pub static FAMILY: Family = Family::new(
    "limit_req",
    &[
        Directive::new(
            "limit_req_zone",
            HTTP,
            Arity::Between(3, 4),
            "Declares a zone that stores the request rate of each key. sync: with the edges of a fleet.",
            zone,
        )
        .many(),
        Directive::new(
            "limit_req",
            HSL,
            Arity::Between(1, 4),
            "Limits the rate of requests for each key of a zone. weir's own: credit=N.",
            limit,
        )
        .many(),
        Directive::new(
            "limit_req_log_level",
            HSL,
            ONE,
            "The log level for refusals; weir logs delays one level lower.",
            |b, s| {
                crate::settings(b).limit_req.log_level = Some(value::choice(s, LOG_LEVELS)?);
                Ok(())
            },
        )
        .default("error"),
        Directive::new("limit_req_status", HSL, ONE, "The status of refused requests.", |b, s| {
            crate::settings(b).limit_req.status = Some(value::bounded(s, 400, 599)? as u16);
            Ok(())
        })
        .default("503"),
        Directive::new(
            "limit_req_dry_run",
            HSL,
            Arity::Flag,
            "Counts and logs, but delays and refuses no request.",
            |b, s| {
                crate::settings(b).limit_req.dry_run = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
    ],
)
.variables(&[Variable::without_answer("limit_req_status", |exchange, _, out| {
    let status = exchange.own.get::<Status>();
    out.extend_from_slice(status.map_or("", |status| status.0).as_bytes());
    status.is_some()
})])
.phase(Phase::Preaccess, |location| !crate::values(location).limit_req.limits.is_empty(), enter)
.adopt(|new, old| {
    let (new, old) = (&mut crate::declared_mut(new).limit_req, &crate::declared(old).limit_req);
    new.adopt(old, "limit_req")?;
    adopt_accounts(new, old);
    Ok(())
})
.finish(finish)
.judge(judge);

/// The rate of a zone.
pub struct ZoneRate {
    /// Thousandths of a request a second.
    per_s: i64,
    /// `sync`: the accounts of a fleet, which count in place of the buckets.
    shared: Option<Arc<SharedZone>>,
    /// Where the directive stands.
    at: At,
}

impl ZoneRate {
    /// Bytes of the accounts that count in place of the zone's own table.
    pub fn shared_bytes(&self) -> u64 {
        self.shared.as_ref().map_or(0, |shared| shared.accounts.bytes())
    }

    /// Where the directive stands, if it has `sync`.
    pub fn shared_at(&self) -> Option<At> {
        self.shared.as_ref().map(|_| self.at)
    }
}

/// The state of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    excess: i64,
    last_ms: i64,
}

/// One `limit_req`.
#[derive(Clone)]
pub struct ReqLimit {
    name: String,
    zone: Option<usize>,
    /// The key of the zone, once it is known.
    key: Template,
    burst: i64,
    delay: i64,
    /// `credit=`, for zones with `sync`.
    credit: Option<i64>,
}

/// nginx: longer keys are not counted.
const KEY_BYTES_MAX: usize = 65_535;

fn zone(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let key = b.template(statement.text(0))?;
    let (mut place, mut is_shared) = (None, false);
    let mut rate = 1000;
    for word in statement.args.iter().skip(1).map(|word| word.text.as_str()) {
        if let Some(zone) = zone::parameter(word) {
            place = Some(zone?);
        } else if let Some(text) = word.strip_prefix("rate=") {
            rate = rate_of(text).ok_or_else(|| Refusal::whole(format!("invalid rate \"{word}\"")))?;
        } else if word == "sync" {
            is_shared = true;
        } else {
            return Err(Refusal::whole(format!("invalid parameter \"{word}\"")));
        }
    }
    let shared = place.as_ref().filter(|_| is_shared);
    let shared = shared.map(|(name, size)| Arc::new(SharedZone { name: name.clone(), accounts: Table::new(*size) }));
    let parameters = ZoneRate { per_s: rate, shared, at: b.at() };
    crate::declaring(b).limit_req.declare(statement, key, place, parameters)
}

/// Takes over the accounts of the same zones in an older configuration.
fn adopt_accounts(new: &mut Declared, old: &Declared) {
    for zone in new.iter_mut() {
        let same = old.iter().find(|known| known.name == zone.name && known.size() == zone.size());
        let accounts = same.and_then(|known| known.parameters.shared.as_ref());
        if let (Some(own), Some(shared)) = (&mut zone.parameters.shared, accounts) {
            own.clone_from(shared);
        }
    }
}

/// `5r/s` or `30r/m`, in thousandths of a request a second.
fn rate_of(text: &str) -> Option<i64> {
    let (number, seconds) = match (text.strip_suffix("r/s"), text.strip_suffix("r/m")) {
        (Some(number), _) => (number, 1),
        (None, Some(number)) => (number, 60),
        (None, None) => (text, 1),
    };
    let rate = i64::try_from(value::number(number)?).ok()?.checked_mul(1000)? / seconds;
    (rate > 0).then_some(rate)
}

fn limit(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut has_zone = false;
    let mut limit =
        ReqLimit { name: String::new(), zone: None, key: Template::default(), burst: 0, delay: 0, credit: None };
    for word in statement.args.iter().map(|word| word.text.as_str()) {
        match word.split_once('=') {
            Some(("zone", name)) => {
                limit.name = name.to_owned();
                has_zone = true;
            }
            Some((key @ ("burst" | "delay" | "credit"), text)) => {
                let count = value::number(text).and_then(|count| i64::try_from(count).ok()?.checked_mul(1000));
                let count = count.filter(|count| *count > 0);
                let count = count.ok_or_else(|| Refusal::whole(format!("invalid {key} value \"{word}\"")))?;
                match key {
                    "burst" => limit.burst = count,
                    "delay" => limit.delay = count,
                    _ => limit.credit = Some(count),
                }
            }
            None if word == "nodelay" => limit.delay = i64::MAX,
            Some(_) | None => return Err(Refusal::whole(format!("invalid parameter \"{word}\""))),
        }
    }
    if !has_zone {
        return Err(Refusal::whole("\"limit_req\" must have \"zone\" parameter"));
    }
    let limits = crate::settings(b).limit_req.limits.get_or_insert_default();
    if limits.iter().any(|known| known.name == limit.name) {
        return Err(Refusal::directive("is duplicate"));
    }
    Arc::make_mut(limits).push(limit);
    Ok(())
}

/// Finds the zones, which may be declared after their use.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let Some(limits) = &mut crate::written_mut(scope).limit_req.limits else { return };
    if limits.iter().all(|limit| limit.zone.is_some()) {
        return;
    }
    let mut undeclared = Vec::new();
    for (number, limit) in Arc::make_mut(limits).iter_mut().enumerate() {
        let zones = &crate::declaring(b).limit_req;
        limit.zone = zones.find(&limit.name);
        limit.key = limit.zone.and_then(|zone| zones.get(zone)).map(|zone| zone.key().clone()).unwrap_or_default();
        if limit.zone.is_none() {
            undeclared.push((number, limit.name.clone()));
        }
    }
    for (number, name) in undeclared {
        zone::refuse_undeclared(b, ("limit_req", scope.place("limit_req", number)), &name);
    }
}

type Buckets = Zone<Bucket, ZoneRate>;

/// `$limit_req_status`, once a limit was checked.
struct Status(&'static str);

impl Owned for Status {
    // A request is counted once, not again for the requests that weir makes for it.
    fn copy(&self) -> Option<Box<dyn Owned>> {
        Some(Box::new(Status(self.0)))
    }
}

/// Marks the places whose keys are made of the request's body.
fn judge(locations: &mut [Location], reading: &VariablesRead<'_>) {
    reading.read_first(locations, |location, key| {
        crate::values(location).limit_req.limits.iter().for_each(|limit| key(&limit.key));
    });
}

fn enter(exchange: &mut Exchange<'_>) -> Next {
    if exchange.own.get::<Status>().is_some() {
        return Next::Continue;
    }
    let (conf, location) = (exchange.conf, exchange.location);
    let settings = &crate::values(location).limit_req;
    let mut asked: Vec<(&ReqLimit, &Buckets, Lease)> = Vec::new();
    let last = settings.limits.len().saturating_sub(1);
    let (mut longest, mut last_asked) = (None, None);
    for (index, limit) in settings.limits.iter().enumerate() {
        let Some(buckets) = limit.zone.and_then(|zone| crate::declared(conf).limit_req.get(zone)) else { continue };
        let Some(key) = buckets.key_of(exchange, KEY_BYTES_MAX) else { continue };
        match ask(conf, buckets, limit, &key, index == last) {
            AccountVerdict::Overflows { excess } => return refuse(exchange, buckets, excess),
            AccountVerdict::Passes { excess } if index == last => {
                longest = delay(buckets, limit, excess);
                last_asked = Some(buckets);
            }
            AccountVerdict::Passes { .. } => asked.push((limit, buckets, key)),
        }
    }
    for (limit, buckets, key) in asked.iter().rev() {
        let excess = match charge(conf, buckets, limit, key) {
            AccountVerdict::Passes { excess } | AccountVerdict::Overflows { excess } => excess,
        };
        let delay = delay(buckets, limit, excess);
        if delay.as_ref().map(Delay::millis) > longest.as_ref().map(Delay::millis) {
            longest = delay;
        }
    }
    match longest {
        Some(delay) => delay.hold(exchange),
        None => {
            // nginx: a limit whose key is empty does not count, and another location may check the request.
            for buckets in asked.iter().map(|(_, buckets, _)| *buckets).chain(last_asked) {
                exchange.worker.board.limit(buckets.cell).passed.one();
                exchange.own.set(Status("PASSED"));
            }
            Next::Continue
        }
    }
}

fn refuse(exchange: &mut Exchange<'_>, buckets: &Buckets, excess: i64) -> Next {
    let settings = &crate::values(exchange.location).limit_req;
    let (level, status, dry_run) = (settings.log_level, settings.status, settings.dry_run);
    let note = if dry_run { ", dry run" } else { "" };
    let name = &buckets.name;
    exchange.log(
        level,
        format_args!("limiting requests{note}, excess: {}.{:03} by zone \"{name}\"", excess / 1000, excess % 1000),
    );
    let cell = exchange.worker.board.limit(buckets.cell);
    if dry_run { &cell.rejected_dry_run } else { &cell.rejected }.one();
    exchange.own.set(Status(if dry_run { "REJECTED_DRY_RUN" } else { "REJECTED" }));
    if dry_run {
        return Next::Continue;
    }
    exchange.rare_mut().refused_by = Some(LimitPolicy::LimitReq);
    Next::Status(status)
}

/// A request that must wait.
struct Delay<'z> {
    zone: &'z Buckets,
    excess: i64,
    wait: Duration,
}

impl Delay<'_> {
    fn millis(&self) -> u128 {
        self.wait.as_millis()
    }

    fn hold(self, exchange: &mut Exchange<'_>) -> Next {
        let settings = &crate::values(exchange.location).limit_req;
        let dry_run = settings.dry_run;
        let level = match settings.log_level {
            Level::Error => Level::Warn,
            Level::Warn => Level::Notice,
            _ => Level::Info,
        };
        let note = if dry_run { ", dry run" } else { "" };
        let (excess, name) = (self.excess, &self.zone.name);
        exchange.log(
            level,
            format_args!("delaying request{note}, excess: {}.{:03}, by zone \"{name}\"", excess / 1000, excess % 1000),
        );
        let cell = exchange.worker.board.limit(self.zone.cell);
        if dry_run { &cell.delayed_dry_run } else { &cell.delayed }.one();
        exchange.own.set(Status(if dry_run { "DELAYED_DRY_RUN" } else { "DELAYED" }));
        if dry_run { Next::Continue } else { Next::Wait(self.wait) }
    }
}

/// Asks the count of a key about one more request, and charges it if `charges` is set.
fn ask(conf: &Conf, buckets: &Buckets, limit: &ReqLimit, key: &[u8], charges: bool) -> AccountVerdict {
    match fleet_of(conf, buckets) {
        Some((fleet, zone)) => shared::ask(fleet, zone, &limit.terms(buckets), key, charges),
        None => ask_bucket(buckets, key, limit.burst, charges),
    }
}

/// Charges a request that has passed already.
fn charge(conf: &Conf, buckets: &Buckets, limit: &ReqLimit, key: &[u8]) -> AccountVerdict {
    match fleet_of(conf, buckets) {
        Some((fleet, zone)) => shared::ask(fleet, zone, &limit.terms(buckets), key, true),
        None => ask_bucket(buckets, key, i64::MAX, true),
    }
}

/// The fleet that shares a zone.
fn fleet_of<'c>(conf: &'c Conf, buckets: &'c Buckets) -> Option<(&'c Fleet, &'c Arc<SharedZone>)> {
    let zone = buckets.parameters.shared.as_ref()?;
    Some((crate::declared(conf).fleet.fleet()?.as_ref(), zone))
}

impl ReqLimit {
    fn terms(&self, buckets: &Buckets) -> LimitTerms {
        LimitTerms::new(buckets.parameters.per_s, self.burst, self.credit)
    }
}

/// Asks the bucket of a key about one more request, and charges it if `charges` is set.
fn ask_bucket(buckets: &Buckets, key: &[u8], burst: i64, charges: bool) -> AccountVerdict {
    let now = buckets.table.age_ms();
    let mut shard = buckets.table.shard(key);
    match shard.get(key) {
        Some(bucket) => bucket.ask(now, buckets.parameters.per_s, burst, charges),
        None => {
            shard.insert(key, Bucket { excess: 0, last_ms: if charges { now } else { 0 } });
            AccountVerdict::Passes { excess: 0 }
        }
    }
}

/// The time that a request with this excess must wait; `None` for none.
fn delay<'z>(buckets: &'z Buckets, limit: &ReqLimit, excess: i64) -> Option<Delay<'z>> {
    let over = excess.saturating_sub(limit.delay);
    if over <= 0 {
        return None;
    }
    let millis = u64::try_from(over.saturating_mul(1000) / buckets.parameters.per_s).unwrap_or(0);
    (millis > 0).then(|| Delay { zone: buckets, excess, wait: Duration::from_millis(millis) })
}

impl Bucket {
    fn ask(&mut self, now_ms: i64, rate: i64, burst: i64, charges: bool) -> AccountVerdict {
        let elapsed = (now_ms - self.last_ms).max(0);
        let excess = (self.excess - rate.saturating_mul(elapsed) / 1000 + 1000).max(0);
        if excess > burst {
            return AccountVerdict::Overflows { excess };
        }
        if charges {
            self.excess = excess;
            if elapsed > 0 {
                self.last_ms = now_ms;
            }
        }
        AccountVerdict::Passes { excess }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_leaks_at_its_rate() {
        let mut bucket = Bucket { excess: 0, last_ms: 0 };
        // One request a second, a burst of one.
        assert_eq!(bucket.ask(0, 1000, 1000, true), AccountVerdict::Passes { excess: 1000 });
        assert_eq!(bucket.ask(0, 1000, 1000, true), AccountVerdict::Overflows { excess: 2000 });
        assert_eq!(bucket.ask(500, 1000, 1000, true), AccountVerdict::Overflows { excess: 1500 });
        assert_eq!(bucket.ask(1000, 1000, 1000, true), AccountVerdict::Passes { excess: 1000 });
        assert_eq!(bucket.ask(60_000, 1000, 1000, true), AccountVerdict::Passes { excess: 0 });
    }

    #[test]
    fn asking_does_not_charge() {
        let mut bucket = Bucket { excess: 500, last_ms: 0 };
        assert_eq!(bucket.ask(0, 1000, 2000, false), AccountVerdict::Passes { excess: 1500 });
        assert_eq!(bucket, Bucket { excess: 500, last_ms: 0 });
    }

    #[test]
    fn rates_are_by_second_or_by_minute() {
        for (text, rate) in
            [("1r/s", Some(1000)), ("30r/m", Some(500)), ("2", Some(2000)), ("0r/s", None), ("xr/s", None)]
        {
            assert_eq!(rate_of(text), rate, "{text}");
        }
    }
}
