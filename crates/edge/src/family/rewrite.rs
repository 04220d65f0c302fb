//! `rewrite`, `return`, `set`, `if`, `break`: nginx's small imperative language.
//!
//! <https://nginx.org/en/docs/http/ngx_http_rewrite_module.html>

use std::sync::Arc;

use crate::conf::LocationId;
use crate::regex::Regex;
use crate::variable::{Template, VariableId};

/// One rule; a block's rules run in the order of the file.
pub enum Rule {
    /// `set $name value`.
    Set(VariableId, Template),
    /// `break`.
    Break,
    /// `if (condition) { rules }`; in a location the block is also a place with settings of its own.
    If {
        /// When it runs.
        condition: Condition,
        /// The rules inside.
        inner: Vec<Rule>,
        /// The index of its block among the children of the block around it.
        child: usize,
        /// The settings in force once it ran; bound when the configuration is compiled.
        place: Option<LocationId>,
    },
}

/// When an `if` runs.
pub enum Condition {
    /// Matches.
    Matches(Template, Arc<Regex>),
}

crate::settings! {
    /// `rewrite_log`.
    log: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: crate::family::Family = crate::family::Family::new("rewrite", &[]);

/// What a list of rules came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on with the phases.
    Continue,
    /// `break`: go on, no further rules.
    Break,
    /// `rewrite … last`, or a rewrite ran to the end of the rules: the URI is to be looked up again.
    Last,
    /// `return` with a status.
    Status(u16),
    /// `return` with a text, or a redirect: the response stands in the exchange.
    Respond,
}

/// Runs a block's rules.
pub fn run(_exchange: &mut crate::exchange::Exchange<'_>, _rules: &[Rule]) -> Flow {
    Flow::Continue
}
