//! `limit_conn`: how many requests may be in work at once for a key.
//!
//! <https://nginx.org/en/docs/http/ngx_http_limit_conn_module.html>

use std::sync::Arc;

use weir_conf::Statement;

use crate::build::{Build, Scope};
use crate::directive::{Arity, Directive, HSL, HTTP, ONE, Refusal, TWO};
use crate::exchange::Exchange;
use crate::family::Family;
use crate::family::limit_req::{LOG_LEVELS, key_of};
use crate::log::Level;
use crate::phase::{Next, Phase};
use crate::value;
use crate::variable::Variable;
use crate::zone::{Table, Zone};

crate::settings! {
    /// The limits.
    limits: Arc<Vec<Limit>> = Arc::default(),
    /// `limit_conn_log_level`.
    log_level: Level = Level::Error,
    /// `limit_conn_status`.
    status: u16 = 503,
    /// `limit_conn_dry_run`.
    dry_run: bool = false,
}

/// The zones, in the order of the file.
#[derive(Default)]
pub struct Declared(Vec<Counts>);

impl Declared {
    /// Takes over the counts of zones an older configuration had; an error when a zone's key changed.
    fn adopt(&mut self, old: &Declared) -> Result<(), String> {
        for new in &mut self.0 {
            for old in &old.0 {
                if new.zone.continues(&old.zone, "limit_conn_zone")? {
                    new.table = old.table.clone();
                }
            }
        }
        Ok(())
    }
}

/// The family.
pub static FAMILY: Family = Family::new("limit_conn", &[
    Directive::new("limit_conn_zone", HTTP, TWO, "Makes a zone that counts requests in work for keys.", zone).many(),
    Directive::new("limit_conn", HSL, TWO, "Limits the requests in work for a key of a zone.", limit).many(),
    Directive::new("limit_conn_log_level", HSL, ONE, "The level of the log for refusals.",
        |b, s| { b.settings().limit_conn.log_level = Some(value::choice(s, LOG_LEVELS)?); Ok(()) }).default("error"),
    Directive::new("limit_conn_status", HSL, ONE, "The status of refused requests.",
        |b, s| { b.settings().limit_conn.status = Some(value::bounded(s, 400, 599)? as u16); Ok(()) }).default("503"),
    Directive::new("limit_conn_dry_run", HSL, Arity::Flag, "Counts and logs, and lets everything pass.",
        |b, s| { b.settings().limit_conn.dry_run = Some(value::flag(s)?); Ok(()) }).default("off"),
])
.variables(&[Variable::new("limit_conn_status", |exchange, _, out| {
    out.extend_from_slice(exchange.limit_conn_status.as_bytes());
    !exchange.limit_conn_status.is_empty()
})])
.phase(Phase::Preaccess, |location| !location.values.limit_conn.limits.is_empty(), enter)
.adopt(|new, old| new.limit_conn.adopt(&old.limit_conn))
.finish(finish);

struct Counts {
    zone: Zone,
    table: Arc<Table<u32>>,
}

/// One `limit_conn`.
#[derive(Clone)]
pub struct Limit {
    name: String,
    zone: Option<usize>,
    most: u32,
}

/// A place taken in a zone's count; given back when dropped.
pub struct Held {
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
    let (name, size) = Zone::parameter(word).ok_or_else(|| Refusal::whole(format!("invalid parameter \"{word}\"")))??;
    if name.is_empty() {
        return Err(Refusal::whole("\"limit_conn_zone\" must have \"zone\" parameter"));
    }
    let zones = &mut b.declared.limit_conn.0;
    if let Some(known) = zones.iter().find(|known| known.zone.name == name) {
        let bound = &known.zone.key_text;
        return Err(Refusal::whole(format!("limit_conn_zone \"{name}\" is already bound to key \"{bound}\"")));
    }
    let zone = Zone { name, size, key, key_text: statement.text(0).to_owned() };
    zones.push(Counts { zone, table: Arc::new(Table::new(size)) });
    Ok(())
}

fn limit(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let (name, number) = (statement.text(0), statement.text(1));
    let limits = b.settings().limit_conn.limits.get_or_insert_default();
    if limits.iter().any(|known| known.name == name) {
        return Err(Refusal::directive("is duplicate"));
    }
    let most = match value::number(number) {
        Some(most @ 1..=LIMIT_MAX) => most as u32,
        Some(0) | None => return Err(Refusal::whole(format!("invalid number of connections \"{number}\""))),
        Some(_) => return Err(Refusal::whole("connection limit must be less 65536")),
    };
    Arc::make_mut(limits).push(Limit { name: name.to_owned(), zone: None, most });
    Ok(())
}

/// Finds the zones, which may stand after their use.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let Some(limits) = &mut scope.settings.limit_conn.limits else { return };
    if limits.iter().all(|limit| limit.zone.is_some()) {
        return;
    }
    for limit in Arc::make_mut(limits) {
        limit.zone = b.declared.limit_conn.0.iter().position(|known| known.zone.name == limit.name);
        if limit.zone.is_none() {
            let what = format!("zero size shared memory zone \"{}\"", limit.name);
            b.refuse_at("limit_conn", Refusal::whole(what).todo("declare it with limit_conn_zone in http"), None);
        }
    }
}

fn enter(exchange: &mut Exchange<'_>) -> Next {
    if !exchange.limit_conn_status.is_empty() {
        return Next::Continue;
    }
    let (conf, location) = (exchange.conf, exchange.location);
    for limit in location.values.limit_conn.limits.iter() {
        let Some(counts) = limit.zone.and_then(|zone| conf.declared.limit_conn.0.get(zone)) else { continue };
        let Some(key) = key_of(exchange, &counts.zone, KEY_BYTES_MAX) else { continue };
        exchange.limit_conn_status = "PASSED";
        match take(&counts.table, &key, limit.most) {
            Ok(held) => exchange.held.push(held),
            Err(Full::Limit) => return refuse(exchange, Some(&counts.zone)),
            Err(Full::Zone) => return refuse(exchange, None),
        }
    }
    Next::Continue
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

fn refuse(exchange: &mut Exchange<'_>, zone: Option<&Zone>) -> Next {
    exchange.held.clear();
    let settings = &exchange.location.values.limit_conn;
    let (level, status, dry_run) = (settings.log_level, settings.status, settings.dry_run);
    if let Some(zone) = zone {
        let note = if dry_run { ", dry run," } else { "" };
        exchange.log(level, format_args!("limiting connections{note} by zone \"{}\"", zone.name));
    }
    exchange.limit_conn_status = if dry_run { "REJECTED_DRY_RUN" } else { "REJECTED" };
    if dry_run { Next::Continue } else { Next::Status(status) }
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
