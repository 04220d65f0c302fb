//! `keyval`: variables that the API can set at run time.
//!
//! A zone keeps pairs of key and value; `keyval` looks up a text in it. Each look-up of a worker takes a read lock;
//! the observer's thread writes, and with `sync` the thread of the fleet too. <https://nginx.org/en/docs/http/ngx_http_keyval_module.html>

pub mod edit;
mod pairs;
mod shared;
mod state;
mod zone;

use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use weir_conf::{At, Statement};
use weir_http::exchange::Exchange;
use weir_http::family::rewrite::declarable;
use weir_http::hold::zone as shared_zone;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, HTTP};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::{Argument, Definition, Template};
use weir_http::text::value;
use weir_net::{buffer, clock};

use zone::{KeptPairs, TIMEOUT_MAX};

pub use pairs::{KeyKind, Pairs};
pub use shared::shared;
pub use zone::KeyvalZone;

weir_http::settings! {}

/// The zones, and the variables that look up texts in them, each in the order of the file.
#[derive(Default)]
pub struct Declared {
    /// The zones of `keyval_zone`.
    pub zones: Vec<KeyvalZone>,
    lookups: Vec<Lookup>,
}

/// The family.
pub static FAMILY: Family = Family::new("keyval", &[
    Directive::new("keyval_zone", HTTP, Arity::AtLeast(1),
        "Declares a zone of pairs of key and value that the API can set: zone=NAME:SIZE [state=FILE] [timeout=TIME] \
         [type=string|ip|prefix] [sync]: with sync, the edges of a fleet share the pairs.",
        keyval_zone).many(),
    Directive::new("keyval", HTTP, Arity::exactly(3),
        "Defines a variable with the value of a key in a zone: KEY $VARIABLE zone=NAME.", keyval).many(),
])
.adopt(|new, old| { crate::declared_mut(new).keyval.adopt(&crate::declared(old).keyval); Ok(()) })
.finish(finish);

/// One `keyval`.
struct Lookup {
    key: Template,
    zone_name: String,
    zone: usize,
    /// The place of the directive.
    at: At,
}

/// nginx refuses zones of less than eight pages.
const ZONE_BYTES_MIN: u64 = 32 << 10;

/// Longer texts need a larger buffer.
const KEY_BYTES: usize = 256;

const KINDS: &[(&str, KeyKind)] = &[("string", KeyKind::Text), ("ip", KeyKind::Network), ("prefix", KeyKind::Prefix)];

fn keyval_zone(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let (mut place, mut state, mut timeout, mut kind) = (None, None, None, KeyKind::Text);
    let mut shared_at = None;
    for word in &statement.args {
        let word = word.text.as_str();
        let invalid = || Refusal::whole(format!("invalid parameter \"{word}\""));
        match word.split_once('=') {
            Some(("zone", _)) => place = shared_zone::parameter(word).transpose()?,
            Some(("state", path)) if !path.is_empty() => {
                let path = b.path(path);
                b.reach.write_file(&path);
                state = Some(path);
            }
            Some(("timeout", time)) => {
                let least = |time: &Duration| !time.is_zero() && *time <= TIMEOUT_MAX;
                let read = value::long_time_of(time).filter(least);
                timeout = Some(read.ok_or_else(|| invalid().todo("write a time between 1ms and 24d"))?);
            }
            Some(("type", name)) => {
                let known = value::choice_of(name, KINDS);
                kind = known.ok_or_else(|| invalid().todo("write type=string, type=ip or type=prefix"))?;
            }
            None if word == "sync" => shared_at = Some(b.at()),
            _ => return Err(invalid()),
        }
    }
    let Some((name, size)) = place.filter(|(name, _)| !name.is_empty()) else {
        return Err(Refusal::whole("\"keyval_zone\" must have \"zone\" parameter"));
    };
    if crate::declaring(b).keyval.find(&name).is_some() {
        return Err(Refusal::whole(format!("keyval_zone \"{name}\" is already declared")));
    }
    let mut pairs = Pairs::new(kind, usize::try_from(size.max(ZONE_BYTES_MIN)).unwrap_or(usize::MAX));
    if let Some(path) = &state {
        state::read(path, &mut pairs, clock::unix_ms())?;
    }
    let pairs = Arc::new(KeptPairs { pairs: RwLock::new(pairs), edits: Mutex::new(()) });
    crate::declaring(b).keyval.zones.push(KeyvalZone { name, size, kind, timeout, state, pairs, shared_at });
    Ok(())
}

fn keyval(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let key = b.template(statement.text(0))?;
    let name = declarable(b, statement.text(1))?;
    let word = statement.text(2);
    let zone_name = word.strip_prefix("zone=").filter(|name| !name.is_empty());
    let zone_name = zone_name.ok_or_else(|| Refusal::whole(format!("invalid parameter \"{word}\"")))?.to_owned();
    let argument = Argument { name: name.clone(), index: crate::declaring(b).keyval.lookups.len() as u32 };
    b.names.define(&name, Definition::Cached(get, argument));
    let at = b.at();
    crate::declaring(b).keyval.lookups.push(Lookup { key, zone_name, zone: usize::MAX, at });
    Ok(())
}

/// Finds the zones, which may be declared after their use.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    if scope.context != HTTP {
        return;
    }
    let mut lookups = std::mem::take(&mut crate::declaring(b).keyval.lookups);
    for lookup in &mut lookups {
        match crate::declaring(b).keyval.zones.iter().position(|zone| zone.name == lookup.zone_name) {
            Some(number) => lookup.zone = number,
            None => shared_zone::refuse_undeclared(b, ("keyval", lookup.at), &lookup.zone_name),
        }
    }
    crate::declaring(b).keyval.lookups = lookups;
}

fn get(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    let declared = &crate::declared(exchange.conf).keyval;
    let Some(lookup) = declared.lookups.get(argument.index as usize) else { return false };
    let Some(zone) = declared.zones.get(lookup.zone) else { return false };
    let mut key = buffer::lease(KEY_BYTES);
    lookup.key.eval(exchange, &mut key);
    let pairs = zone.read();
    let found = pairs.find(&key, clock::unix_ms());
    if let Some(value) = found {
        out.extend_from_slice(value);
    }
    found.is_some()
}

impl Declared {
    /// The zone of that name.
    pub fn find(&self, name: &str) -> Option<&KeyvalZone> {
        self.zones.iter().find(|zone| zone.name == name)
    }

    /// Takes over the pairs of zones from an older configuration. A zone whose size or type changed starts with the
    /// pairs of its state file instead.
    fn adopt(&mut self, old: &Declared) {
        for new in &mut self.zones {
            let same = old.find(&new.name).filter(|old| old.size == new.size && old.kind == new.kind);
            if let Some(old) = same {
                new.pairs = old.pairs.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::of_text;

    #[test]
    fn statements_are_read_and_refused_in_nginx_words() {
        for (text, expected) in [
            ("keyval $arg_k $v zone=one; keyval_zone zone=one:32k;", ""),
            ("keyval_zone zone=one:1m timeout=24d type=ip; keyval $remote_addr $v zone=one;", ""),
            ("keyval_zone zone=one:1k;", "zone \"zone=one:1k\" is too small"),
            ("keyval_zone type=ip;", "\"keyval_zone\" must have \"zone\" parameter"),
            ("keyval_zone zone=one:32k; keyval_zone zone=one:32k;", "already declared"),
            ("keyval_zone zone=one:32k timeout=25d;", "invalid parameter \"timeout=25d\""),
            ("keyval_zone zone=one:32k type=regex;", "invalid parameter \"type=regex\""),
            ("keyval_zone zone=one:32k sync;", "there is no \"fleet\""),
            ("fleet redis://h; keyval_zone zone=one:32k sync; keyval $arg_k $v zone=one;", ""),
            ("keyval $arg_k $v zone=two;", "zero size shared memory zone \"two\""),
            ("keyval $arg_k v zone=two;", "invalid variable name \"v\""),
            ("keyval $arg_k $v two;", "invalid parameter \"two\""),
        ] {
            let (_, said) = of_text(&format!("events {{}} http {{ {text} }}"));
            let said = said.join("\n");
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{text}: {said}");
        }
    }
}
