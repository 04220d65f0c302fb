//! The definition of directives, their contexts, and the one place that applies statements.
//!
//! A *statement* is written in a file; a *directive* is defined in a family's table. `apply` checks place, count and
//! repetition once, for all of them, in nginx's words; a family's `set` only reads arguments. Invariant: nothing here
//! touches the OS, so testing a configuration has no side effects.

use std::fmt;

use weir_conf::Statement;

use crate::build::Build;
use crate::refusal::Refusal;

/// The kinds of block a directive may stand in, as a bit set (nginx: `NGX_HTTP_LOC_CONF` and friends).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Contexts(pub u16);

/// Top level of the file.
pub const MAIN: Contexts = Contexts(1);
/// `events { }`.
pub const EVENTS: Contexts = Contexts(1 << 1);
/// `http { }`.
pub const HTTP: Contexts = Contexts(1 << 2);
/// `server { }` inside `http`.
pub const SERVER: Contexts = Contexts(1 << 3);
/// `location { }`.
pub const LOCATION: Contexts = Contexts(1 << 4);
/// `upstream { }`.
pub const UPSTREAM: Contexts = Contexts(1 << 5);
/// `if { }` at server level.
pub const SERVER_IF: Contexts = Contexts(1 << 6);
/// `if { }` inside a location.
pub const LOCATION_IF: Contexts = Contexts(1 << 7);
/// `limit_except { }`.
pub const LIMIT_EXCEPT: Contexts = Contexts(1 << 8);
/// `match { }`.
pub const MATCH: Contexts = Contexts(1 << 9);
/// The three levels most settings are inherited through.
pub const HSL: Contexts = HTTP.or(SERVER).or(LOCATION);

impl Contexts {
    /// Both sets together.
    pub const fn or(self, other: Contexts) -> Contexts {
        Contexts(self.0 | other.0)
    }

    /// Whether the two sets share a block kind.
    pub const fn meets(self, other: Contexts) -> bool {
        self.0 & other.0 != 0
    }
}

impl fmt::Display for Contexts {
    /// The block kinds in nginx's documentation's words: `http, server, location`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Contexts, &str); 10] = [
            (MAIN, "main"),
            (EVENTS, "events"),
            (HTTP, "http"),
            (SERVER, "server"),
            (LOCATION, "location"),
            (UPSTREAM, "upstream"),
            (SERVER_IF, "if in server"),
            (LOCATION_IF, "if in location"),
            (LIMIT_EXCEPT, "limit_except"),
            (MATCH, "match"),
        ];
        let mut first = true;
        for (context, name) in NAMES {
            if self.meets(context) {
                f.write_str(if first { "" } else { ", " })?;
                f.write_str(name)?;
                first = false;
            }
        }
        Ok(())
    }
}

/// How many arguments a directive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly one, `on` or `off`.
    Flag,
    /// From the first to the second number, both included.
    Between(u8, u8),
    /// That many or more.
    AtLeast(u8),
}

impl Arity {
    /// Exactly `n`.
    pub const fn exactly(n: u8) -> Arity {
        Arity::Between(n, n)
    }

    fn admits(self, count: usize) -> bool {
        match self {
            Arity::Flag => count == 1,
            Arity::Between(low, high) => (usize::from(low)..=usize::from(high)).contains(&count),
            Arity::AtLeast(low) => count >= usize::from(low),
        }
    }
}

/// No argument.
pub const NONE: Arity = Arity::exactly(0);
/// One argument.
pub const ONE: Arity = Arity::exactly(1);
/// Two arguments.
pub const TWO: Arity = Arity::exactly(2);

/// Reads one statement into the configuration being built.
pub type Set = fn(&mut Build<'_>, &Statement) -> Result<(), Refusal>;

/// The definition of one directive: a row in its family's table.
pub struct Directive {
    /// As written in a file.
    pub name: &'static str,
    /// Where it may stand.
    pub contexts: Contexts,
    /// How many arguments it takes.
    pub arity: Arity,
    /// Whether it opens a block.
    pub block: bool,
    /// Whether it may be written more than once in a block.
    pub many: bool,
    /// The value in force when it is not written; empty when there is none.
    pub default: &'static str,
    /// One sentence for the reference. For a directive without effect: why the missing effect harms nobody.
    pub doc: &'static str,
    /// Accepted, and without effect.
    pub idle: bool,
    /// The one value of such a directive that describes weir's own behaviour; empty when there is none.
    pub fits: &'static str,
    /// Reads a statement.
    pub set: Set,
}

impl Directive {
    /// A directive that may be written once in a block and opens none.
    pub const fn new(name: &'static str, contexts: Contexts, arity: Arity, doc: &'static str, set: Set) -> Self {
        Directive { name, contexts, arity, block: false, many: false, default: "", doc, idle: false, fits: "", set }
    }

    /// A directive that weir accepts without effect. weir warns once, with `why` this harms nobody, unless the value
    /// is the one that `fits`.
    pub const fn idle(
        name: &'static str,
        contexts: Contexts,
        arity: Arity,
        fits: &'static str,
        why: &'static str,
        set: Set,
    ) -> Self {
        Directive { idle: true, fits, ..Directive::new(name, contexts, arity, why, set) }
    }

    /// Whether this statement asks for something that weir does not do.
    pub fn is_idle_in(&self, statement: &Statement) -> bool {
        self.idle && (self.fits.is_empty() || statement.text(0) != self.fits)
    }

    /// Sets the default.
    pub const fn default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    /// May be repeated in one block.
    pub const fn many(mut self) -> Self {
        self.many = true;
        self
    }

    /// Opens a block.
    pub const fn block(mut self) -> Self {
        self.block = true;
        self
    }
}

/// Checks a statement against its definition, as nginx's `ngx_conf_handler` does, then lets the family read it.
pub(crate) fn apply(
    build: &mut Build<'_>,
    directive: &'static Directive,
    statement: &Statement,
) -> Result<(), Refusal> {
    let context = build.context();
    let name = directive.name;
    if !directive.contexts.meets(context) {
        return Err(Refusal::whole(format!("\"{name}\" directive is not allowed here"))
            .todo(format!("it belongs in: {}", directive.contexts)));
    }
    match (directive.block, &statement.block) {
        (true, None) => return Err(Refusal::whole(format!("directive \"{name}\" has no opening \"{{\""))),
        (false, Some(_)) => {
            return Err(Refusal::whole(format!("directive \"{name}\" is not terminated by \";\"")));
        }
        (true, Some(_)) | (false, None) => {}
    }
    if !directive.arity.admits(statement.args.len()) {
        return Err(Refusal::whole(format!("invalid number of arguments in \"{name}\" directive")));
    }
    if !directive.many && !build.first_time(name) {
        return Err(Refusal::directive("is duplicate"));
    }
    build.scope().written.push((name, statement.at));
    (directive.set)(build, statement)?;
    if directive.is_idle_in(statement) {
        build.warn_idle(directive);
    }
    Ok(())
}
