//! `fleet`: equal edges share limits over Redis. weir's own.
//!
//! The work is in `crate::fleet`; `docs/guide/fleet.md` explains it to users.

use std::sync::{Arc, OnceLock};

use weir_conf::Statement;
use weir_http::exchange::conf::Conf;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, HTTP};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::log::{self, Level};

use crate::fleet::{Fail, Fleet, FleetSettings, SharedThings};

weir_http::settings! {}

/// The fleet of a configuration.
#[derive(Default)]
pub struct Declared {
    /// `fleet`.
    pub settings: Option<FleetSettings>,
    fleet: OnceLock<Arc<Fleet>>,
}

/// The family.
pub static FAMILY: Family = Family::new("fleet", &[
    Directive::new("fleet", HTTP, Arity::AtLeast(1),
        "weir's own: equal edges share the limits of zones with sync through Redis: redis://[user:password@]HOST:PORT[/DB], rediss:// for TLS, or \
         env:NAME or file:PATH with this URL; [name=weir] [edge=HOSTNAME] [edges=N] [fail=local|open|close] \
         [trusted_certificate=FILE].", read),
])
.adopt(|new, old| { crate::declared_mut(new).fleet.adopt(&crate::declared(old).fleet); Ok(()) })
.finish(finish);

/// The longest name of a fleet or an edge, in bytes.
const NAME_BYTES_MAX: usize = 200;

impl Declared {
    /// The fleet, once the configuration is in force and names one.
    pub fn fleet(&self) -> Option<&Arc<Fleet>> {
        self.fleet.get()
    }

    fn adopt(&mut self, old: &Declared) {
        if let Some(fleet) = old.fleet().filter(|fleet| Some(fleet.settings()) == self.settings.as_ref()) {
            self.fleet = OnceLock::from(fleet.clone());
        }
    }
}

/// Refuses `sync` in a file without a fleet.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    if scope.context != HTTP || crate::declared_so_far(b).fleet.settings.is_some() {
        return;
    }
    let declared = crate::declared_so_far(b);
    let limits = declared.limit_req.iter().find_map(|zone| zone.parameters.shared_at());
    let pairs = declared.keyval.zones.iter().find_map(|zone| zone.shared_at);
    let sessions = weir_proxy::declared_so_far(b).sticky.shared_at();
    for (name, at) in [("limit_req_zone", limits), ("keyval_zone", pairs), ("sticky", sessions)] {
        let Some(at) = at else { continue };
        let refusal = Refusal::whole("\"sync\" shares a zone with the edges of a fleet, and there is no \"fleet\"")
            .todo("write fleet redis://HOST:PORT; in http, or leave sync out")
            .needs("fleet", "");
        b.refuse_at(name, refusal, at);
    }
}

/// Takes part in the fleet when the configuration is in force, and shares these things. Without its thread, the edge
/// limits alone.
pub fn open(conf: &Conf, shared: SharedThings) {
    let declared = &crate::declared(conf).fleet;
    if let Some(fleet) = declared.fleet() {
        return fleet.share(shared);
    }
    let Some(settings) = &declared.settings else { return };
    let fleet = crate::load::identity(conf).and_then(|identity| {
        Fleet::start(settings, identity).map_err(|error| format!("its thread could not be started {}", log::Os(&error)))
    });
    match fleet {
        // Nothing else opens this configuration.
        Ok(fleet) => {
            fleet.share(shared);
            drop(declared.fleet.set(fleet));
        }
        Err(message) => log::global(Level::Emerg, format_args!("fleet: {message}")),
    }
}

/// Leaves the fleet of a configuration that `new` replaced, or that has no successor.
pub fn close(old: &Conf, new: Option<&Conf>) {
    let Some(fleet) = crate::declared(old).fleet.fleet() else { return };
    let next = new.and_then(|new| crate::declared(new).fleet.fleet());
    if next.is_some_and(|next| Arc::ptr_eq(next, fleet)) {
        return;
    }
    let (own, goes_on) = (fleet.settings(), next.map(|next| next.settings()));
    let is_same_edge =
        goes_on.is_some_and(|next| (&next.server, &next.name, &next.edge) == (&own.server, &own.name, &own.edge));
    fleet.leave(!is_same_edge);
}

fn read(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let words = || statement.args.iter().skip(1).map(|word| word.text.as_str());
    let trusted = words().find_map(|word| word.strip_prefix("trusted_certificate=")).unwrap_or_default();
    let server = crate::redis::server(b, statement.text(0), trusted)?;
    let mut settings = FleetSettings {
        server,
        name: "weir".to_owned(),
        edge: log::hostname().to_owned(),
        edges: 1,
        fail: Fail::Local,
    };
    for word in words() {
        parameter(&mut settings, word)?;
    }
    crate::declaring(b).fleet.settings = Some(settings);
    Ok(())
}

fn parameter(settings: &mut FleetSettings, word: &str) -> Result<(), Refusal> {
    let bad = || Refusal::whole(format!("invalid parameter \"{word}\""));
    // A brace would end the part of a key that a cluster looks at, and a space ends a name in a record.
    let is_plain = |text: &str| !text.bytes().any(|byte| byte.is_ascii_control() || b"{} ".contains(&byte));
    let name_of = |text: &str| match text.len() {
        1..=NAME_BYTES_MAX if is_plain(text) => Ok(text.to_owned()),
        _ => Err(bad().todo(format!("write a name of 1 to {NAME_BYTES_MAX} bytes without braces and spaces"))),
    };
    match word.split_once('=') {
        Some(("name", text)) => settings.name = name_of(text)?,
        Some(("edge", text)) => settings.edge = name_of(text)?,
        Some(("edges", text)) => {
            let most = weir_fleet::EDGES_MAX as u64;
            let count = value::number(text).filter(|count| (1..=most).contains(count));
            settings.edges = count.ok_or_else(|| bad().todo(format!("write a number from 1 to {most}")))? as i64;
        }
        Some(("fail", "local")) => settings.fail = Fail::Local,
        Some(("fail", "open")) => settings.fail = Fail::Open,
        Some(("fail", "close")) => settings.fail = Fail::Close,
        // The server was read with it.
        Some(("trusted_certificate", file)) if !file.is_empty() => {}
        _ => {
            return Err(
                bad().todo("the parameters are name=, edge=, edges=, fail=local|open|close and trusted_certificate=")
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::of_text;

    #[test]
    fn sync_needs_a_fleet_anywhere_in_http() {
        let zones = "limit_req_zone $arg_a zone=l:1m rate=1r/s sync; keyval_zone zone=k:1m sync; \
             upstream u { server 127.0.0.1:1; sticky learn create=$arg_a lookup=$arg_a zone=s:1m sync; }";
        let said = |http: &str| of_text(&format!("events {{}} http {{ {http} }}")).1;
        assert!(said(&format!("{zones} fleet redis://h;")).is_empty());
        let without = said(zones);
        assert!(without.len() == 3 && without.iter().all(|what| what.contains("there is no \"fleet\"")), "{without:?}");
    }

    #[test]
    fn a_fleet_is_read_word_by_word() {
        let (conf, said) = of_text("events {} http { fleet redis://u:p@h:1/2 name=shop edge=a edges=3 fail=close; }");
        assert!(said.is_empty(), "{said:?}");
        let fleet = crate::declared(&conf.unwrap()).fleet.settings.clone().unwrap();
        assert_eq!((fleet.name.as_str(), fleet.edge.as_str(), fleet.edges, fleet.fail), ("shop", "a", 3, Fail::Close));
        for (words, said_of) in [
            ("redis://h edge=", "invalid parameter \"edge=\""),
            ("redis://h \"name={a}\"", "invalid parameter \"name={a}\""),
            ("redis://h \"edge=a b\"", "invalid parameter \"edge=a b\""),
            ("redis://h edges=0", "invalid parameter \"edges=0\""),
            ("redis://h edges=257", "invalid parameter \"edges=257\""),
            ("redis://h fail=maybe", "invalid parameter \"fail=maybe\""),
            ("redis://h trusted_certificate=f", "is for TLS"),
            ("http://h", "redis://[user:password@]HOST:PORT[/DB]"),
            ("redis://u:s3cret@h:x", "redis://[user:password@]HOST:PORT[/DB]"),
        ] {
            let (_, said) = of_text(&format!("events {{}} http {{ fleet {words}; }}"));
            let said = said.join("\n");
            assert!(said.contains(said_of) && !said.contains("s3cret"), "{words}: {said}");
        }
    }
}
