//! The definition of directives, their contexts, and the one place that applies statements.
//!
//! A *statement* is written in a file; a *directive* is defined in a family's table. `apply` checks place, count and
//! repetition once, for all of them, in nginx's words; a family's `set` only reads arguments. Invariant: nothing here
//! touches the OS, so testing a configuration has no side effects.

use weir_conf::Statement;

use crate::read::build::Build;
use crate::text::refusal::Refusal;

pub use crate::read::contexts::*;

/// Reads one statement into the configuration being built.
pub type Set = fn(&mut Build<'_>, &Statement) -> Result<(), Refusal>;

/// The definition of one directive: a row in its family's table.
#[derive(Clone, Copy)]
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

/// One table of several, for families that share directives; `N` is their number.
pub const fn join<const N: usize>(tables: &[&[Directive]]) -> [Directive; N] {
    let mut all = [tables[0][0]; N];
    let (mut table, mut at) = (0, 0);
    while table < tables.len() {
        let mut row = 0;
        while row < tables[table].len() {
            all[at] = tables[table][row];
            (row, at) = (row + 1, at + 1);
        }
        table += 1;
    }
    assert!(at == N, "N is the number of all directives");
    all
}

/// Checks a statement against its definition, as nginx's `ngx_conf_handler` does, then lets the family read it.
pub fn apply(build: &mut Build<'_>, directive: &'static Directive, statement: &Statement) -> Result<(), Refusal> {
    let context = build.context();
    let name = directive.name;
    if !directive.contexts.meets(context) {
        return Err(Refusal::whole(format!("\"{name}\" directive is not allowed here"))
            .todo(format!("the directive belongs in: {}", directive.contexts)));
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
    if !directive.block {
        build.scope().note(name, statement.at);
    }
    let around = build.names.begin_statement();
    let set = (directive.set)(build, statement);
    build.names.end_statement(around);
    set?;
    if directive.is_idle_in(statement) {
        build.warn_idle(directive);
    }
    Ok(())
}
