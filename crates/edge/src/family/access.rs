//! `allow` and `deny`: limit access by client address, of requests and of sessions.
//!
//! <https://nginx.org/en/docs/http/ngx_http_access_module.html>

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::phase::{Next, Phase};
use weir_http::read::build::Build;
use weir_http::read::directive::{Contexts, Directive, HSL, LIMIT_EXCEPT, ONE, SS};
use weir_http::read::families::Family;
use weir_http::text::cidr::{Cidr, Peer};
use weir_http::text::refusal::Refusal;
use weir_net::log::Level;
use weir_stream::part::{self, Part};
use weir_stream::session::Session;

weir_http::settings! {
    /// The rules in order; the first rule that matches decides.
    rules: std::sync::Arc<Vec<AccessRule>> = std::sync::Arc::default(),
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

const PLACES: Contexts = HSL.or(LIMIT_EXCEPT).or(SS);

/// The family.
pub static FAMILY: Family = Family::new(
    "access",
    &[
        Directive::new(
            "allow",
            PLACES,
            ONE,
            "Allows access for an address, a network, unix sockets or all.",
            |b, s| rule(b, s, false),
        )
        .many(),
        Directive::new("deny", PLACES, ONE, "Denies access for an address, a network, unix sockets or all.", |b, s| {
            rule(b, s, true)
        })
        .many(),
    ],
)
.phase(Phase::Access, |location| !crate::values(location).access.rules.is_empty(), enter);

/// The same for sessions of `stream`.
pub const PART: Part = Part {
    handler: Some((part::Phase::Access, |place| !crate::values(place).access.rules.is_empty(), judge)),
    ..Part::NOTHING
};

/// One `allow` or `deny`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessRule {
    /// The addresses the rule matches; `None` for all.
    of: Option<Cidr>,
    denies: bool,
}

fn rule(b: &mut Build<'_>, statement: &Statement, denies: bool) -> Result<(), Refusal> {
    let text = statement.text(0);
    let of = match text {
        "all" => None,
        "unix:" => Some(Cidr::Unix),
        _ => {
            let (network, has_low_bits) =
                Cidr::parse(text).ok_or_else(|| Refusal::whole(format!("invalid parameter \"{text}\"")))?;
            if has_low_bits {
                b.warn(format!("low address bits of {text} are meaningless"), None);
            }
            Some(network)
        }
    };
    let rules = crate::settings(b).access.rules.get_or_insert_default();
    std::sync::Arc::make_mut(rules).push(AccessRule { of, denies });
    Ok(())
}

fn enter(exchange: &mut Exchange<'_>) -> Next {
    let location = exchange.location;
    match verdict(&crate::values(location).access.rules, Peer::of(exchange.remote())) {
        None => Next::Continue,
        Some(false) => Next::Allow,
        Some(true) => {
            if !location.values.core.satisfy_any {
                exchange.log(Level::Error, format_args!("access forbidden by rule"));
            }
            Next::Status(403)
        }
    }
}

fn judge(session: &mut Session<'_>) -> part::Next {
    let rules = &crate::values(&session.server.place).access.rules;
    if verdict(rules, Peer::of(session.remote())) != Some(true) {
        return part::Next::Continue;
    }
    session.log(Level::Error, format_args!("access forbidden by rule"));
    part::Next::End(403)
}

/// `Some(true)` if the first rule that matches denies; `None` if no rule matches.
fn verdict(rules: &[AccessRule], peer: Peer) -> Option<bool> {
    let rule = rules.iter().find(|rule| rule.of.is_none_or(|network| network.has(peer)));
    rule.map(|rule| rule.denies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = [
            AccessRule { of: Some(Cidr::V4(0x7f00_0001, 32)), denies: true },
            AccessRule { of: Some(Cidr::V4(0x7f00_0000, 8)), denies: false },
            AccessRule { of: Some(Cidr::Unix), denies: false },
            AccessRule { of: None, denies: true },
        ];
        for (peer, denied) in
            [(Peer::V4(0x7f00_0001), true), (Peer::V4(0x7f00_0002), false), (Peer::Unix, false), (Peer::V6(1), true)]
        {
            assert_eq!(verdict(&rules, peer), Some(denied), "{peer:?}");
        }
        assert_eq!(verdict(&[], Peer::Unix), None);
    }
}
