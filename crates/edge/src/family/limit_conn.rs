//! `limit_conn`: how many requests or sessions of one key may be in progress at once.
//!
//! <https://nginx.org/en/docs/http/ngx_http_limit_conn_module.html>

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::Location;
use weir_http::exchange::phase::{Next, Phase};
use weir_http::exchange::variable::Variable;
use weir_http::hold::own::Owned;
use weir_http::hold::zone::{self, Table, Zone, Zones};
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{ALL_OF_STREAM, Arity, Directive, HSL, HTTP, ONE, SS, STREAM, TWO};
use weir_http::read::families::{Family, VariablesRead};
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;
use weir_meter::live::cells::LimitPolicy;
use weir_net::log::Level;
use weir_stream::part::{self, Part};
use weir_stream::session::Session;
use weir_stream::variable as of_session;

use crate::family::limit_req::LOG_LEVELS;

weir_http::settings! {
    /// The limits.
    limits: Arc<Vec<ConnLimit>> = Arc::default(),
    /// `limit_conn_log_level`.
    log_level: Level = Level::Error,
    /// `limit_conn_status`.
    status: u16 = 503,
    /// `limit_conn_dry_run`.
    dry_run: bool = false,
}

/// The zones: their keys are texts of requests, or of sessions.
#[derive(Default)]
pub struct Declared {
    /// Those of `http`.
    pub requests: Zones<u32>,
    /// Those of `stream`.
    pub sessions: Zones<u32>,
}

impl Declared {
    fn of(&mut self, is_stream: bool) -> &mut Zones<u32> {
        if is_stream { &mut self.sessions } else { &mut self.requests }
    }
}

/// The family.
pub static FAMILY: Family = Family::new(
    "limit_conn",
    &[
        Directive::new(
            "limit_conn_zone",
            HTTP.or(STREAM),
            TWO,
            "Declares a zone that counts the requests in progress for each key.",
            zone,
        )
        .many(),
        Directive::new(
            "limit_conn",
            HSL.or(SS),
            TWO,
            "Limits the number of requests in progress for each key of a zone.",
            limit,
        )
        .many(),
        Directive::new("limit_conn_log_level", HSL.or(SS), ONE, "The log level for refusals.", |b, s| {
            crate::settings(b).limit_conn.log_level = Some(value::choice(s, LOG_LEVELS)?);
            Ok(())
        })
        .default("error"),
        Directive::new("limit_conn_status", HSL, ONE, "The status of refused requests.", |b, s| {
            crate::settings(b).limit_conn.status = Some(value::bounded(s, 400, 599)? as u16);
            Ok(())
        })
        .default("503"),
        Directive::new(
            "limit_conn_dry_run",
            HSL.or(SS),
            Arity::Flag,
            "Counts and logs, but refuses no request.",
            |b, s| {
                crate::settings(b).limit_conn.dry_run = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
    ],
)
.variables(&[Variable::without_answer("limit_conn_status", |exchange, _, out| {
    let status = exchange.own.get::<Status>();
    out.extend_from_slice(status.map_or("", |status| status.0).as_bytes());
    status.is_some()
})])
.phase(Phase::Preaccess, |location| !crate::values(location).limit_conn.limits.is_empty(), enter)
.adopt(|new, old| {
    let (new, old) = (&mut crate::declared_mut(new).limit_conn, &crate::declared(old).limit_conn);
    new.requests.adopt(&old.requests, "limit_conn_zone")?;
    new.sessions.adopt(&old.sessions, "limit_conn_zone")
})
.finish(finish)
.judge(judge);

/// One `limit_conn`.
#[derive(Clone)]
pub struct ConnLimit {
    name: String,
    zone: Option<usize>,
    /// The key of the zone, once it is known.
    key: Template,
    most: u32,
}

impl Owned for Held {}

/// A place in a zone's count; dropping it gives the place back.
struct Held {
    table: Arc<Table<u32>>,
    key: Box<[u8]>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut shard = self.table.shard(&self.key);
        if let Some(count) = shard.get(&self.key) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                shard.remove(&self.key);
            }
        }
    }
}

/// nginx: longer keys are not counted.
const KEY_BYTES_MAX: usize = 255;

/// nginx: a limit is less than this.
const LIMIT_MAX: u64 = 65_535;

fn zone(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let key = b.template(statement.text(0))?;
    let word = statement.text(1);
    let place = zone::parameter(word).ok_or_else(|| Refusal::whole(format!("invalid parameter \"{word}\"")))??;
    let is_stream = b.is_in_stream();
    crate::declaring(b).limit_conn.of(is_stream).declare(statement, key, Some(place), ())
}

fn limit(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let (name, number) = (statement.text(0), statement.text(1));
    let limits = crate::settings(b).limit_conn.limits.get_or_insert_default();
    if limits.iter().any(|known| known.name == name) {
        return Err(Refusal::directive("is duplicate"));
    }
    let most = match value::number(number) {
        Some(most @ 1..=LIMIT_MAX) => most as u32,
        Some(0) | None => return Err(Refusal::whole(format!("invalid number of connections \"{number}\""))),
        Some(_) => return Err(Refusal::whole("connection limit must be less 65536")),
    };
    Arc::make_mut(limits).push(ConnLimit { name: name.to_owned(), zone: None, key: Template::default(), most });
    Ok(())
}

/// Finds the zones, which may be declared after their use.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let is_stream = scope.context.meets(ALL_OF_STREAM);
    let Some(limits) = &mut crate::written_mut(scope).limit_conn.limits else { return };
    if limits.iter().all(|limit| limit.zone.is_some()) {
        return;
    }
    let mut undeclared = Vec::new();
    for (number, limit) in Arc::make_mut(limits).iter_mut().enumerate() {
        let zones = &crate::declaring(b).limit_conn.of(is_stream);
        limit.zone = zones.find(&limit.name);
        limit.key = limit.zone.and_then(|zone| zones.get(zone)).map(|zone| zone.key().clone()).unwrap_or_default();
        if limit.zone.is_none() {
            undeclared.push((number, limit.name.clone()));
        }
    }
    for (number, name) in undeclared {
        zone::refuse_undeclared(b, ("limit_conn", scope.place("limit_conn", number)), &name);
    }
}

/// Marks the places whose keys are made of the request's body.
fn judge(locations: &mut [Location], reading: &VariablesRead<'_>) {
    reading.read_first(locations, |location, key| {
        crate::values(location).limit_conn.limits.iter().for_each(|limit| key(&limit.key));
    });
}

/// `$limit_conn_status`, once a limit was checked.
struct Status(&'static str);

impl Owned for Status {
    // A request is counted once, not again for the requests that weir makes for it.
    fn copy(&self) -> Option<Box<dyn Owned>> {
        Some(Box::new(Status(self.0)))
    }
}

fn enter(exchange: &mut Exchange<'_>) -> Next {
    if exchange.own.get::<Status>().is_some() {
        return Next::Continue;
    }
    let (conf, location) = (exchange.conf, exchange.location);
    for limit in crate::values(location).limit_conn.limits.iter() {
        let Some(zone) = limit.zone.and_then(|zone| crate::declared(conf).limit_conn.requests.get(zone)) else {
            continue;
        };
        let Some(key) = zone.key_of(exchange, KEY_BYTES_MAX) else { continue };
        exchange.own.set(Status("PASSED"));
        match take(&zone.table, &key, limit.most) {
            Ok(held) => {
                exchange.worker.board.limit(zone.cell).passed.one();
                exchange.own.add(held);
            }
            Err(full) => {
                let cell = exchange.worker.board.limit(zone.cell);
                let dry_run = crate::values(location).limit_conn.dry_run;
                if dry_run { &cell.rejected_dry_run } else { &cell.rejected }.one();
                return refuse(exchange, (full == Full::Limit).then_some(zone));
            }
        }
    }
    Next::Continue
}

/// The same for sessions of `stream`.
pub const PART: Part = Part {
    variables: &[of_session::Variable::new("limit_conn_status", |session, _, out| {
        let status = session.own.get::<Status>();
        out.extend_from_slice(status.map_or("", |status| status.0).as_bytes());
        status.is_some()
    })],
    handler: Some((part::Phase::Preaccess, |place| !crate::values(place).limit_conn.limits.is_empty(), hold)),
    ..Part::NOTHING
};

fn hold(session: &mut Session<'_>) -> part::Next {
    let (conf, settings) = (session.conf, &crate::values(&session.server.place).limit_conn);
    for limit in settings.limits.iter() {
        let Some(zone) = limit.zone.and_then(|zone| crate::declared(conf).limit_conn.sessions.get(zone)) else {
            continue;
        };
        let Some(key) = zone.key_of(session, KEY_BYTES_MAX) else { continue };
        session.own.set(Status("PASSED"));
        let cell = session.worker.board.limit(zone.cell);
        match take(&zone.table, &key, limit.most) {
            Ok(held) => {
                cell.passed.one();
                session.own.add(held);
            }
            Err(full) => {
                if settings.dry_run { &cell.rejected_dry_run } else { &cell.rejected }.one();
                session.own.remove::<Held>();
                if full == Full::Limit {
                    let note = if settings.dry_run { ", dry run," } else { "" };
                    session
                        .log(settings.log_level, format_args!("limiting connections{note} by zone \"{}\"", zone.name));
                }
                session.own.set(Status(if settings.dry_run { "REJECTED_DRY_RUN" } else { "REJECTED" }));
                return if settings.dry_run { part::Next::Continue } else { part::Next::End(503) };
            }
        }
    }
    part::Next::Continue
}

#[derive(Debug, PartialEq, Eq)]
enum Full {
    Limit,
    Zone,
}

fn take(table: &Arc<Table<u32>>, key: &[u8], most: u32) -> Result<Held, Full> {
    let mut shard = table.shard(key);
    match shard.get(key) {
        Some(count) if *count >= most => return Err(Full::Limit),
        Some(count) => *count += 1,
        None => {
            if !shard.insert_if_room(key, 1) {
                return Err(Full::Zone);
            }
        }
    }
    Ok(Held { table: table.clone(), key: key.into() })
}

fn refuse(exchange: &mut Exchange<'_>, zone: Option<&Zone<u32>>) -> Next {
    exchange.own.remove::<Held>();
    let settings = &crate::values(exchange.location).limit_conn;
    let (level, status, dry_run) = (settings.log_level, settings.status, settings.dry_run);
    if let Some(zone) = zone {
        let note = if dry_run { ", dry run," } else { "" };
        exchange.log(level, format_args!("limiting connections{note} by zone \"{}\"", zone.name));
    }
    exchange.own.set(Status(if dry_run { "REJECTED_DRY_RUN" } else { "REJECTED" }));
    if dry_run {
        return Next::Continue;
    }
    exchange.rare_mut().refused_by = Some(LimitPolicy::LimitConn);
    Next::Status(status)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn places_come_back_when_dropped() {
        let table = Arc::new(Table::new(64 << 10));
        let first = take(&table, b"k", 2).unwrap();
        let second = take(&table, b"k", 2).unwrap();
        assert!(matches!(take(&table, b"k", 2), Err(Full::Limit)));
        drop(first);
        let third = take(&table, b"k", 2).unwrap();
        drop((second, third));
        assert!(table.shard(b"k").is_empty());
    }
}
