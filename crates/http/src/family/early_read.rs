//! `client_body_early_read`: reads the body of a request before its phases begin.
//!
//! nginx has the directive in its core module. Without it, the location decides whether the body is read at all.

use weir_conf::Statement;

use crate::exchange::conf::Rule;
use crate::read::build::{Build, Scope};
use crate::read::directive::{Arity, Directive, HTTP, SERVER};
use crate::read::families::Family;
use crate::text::refusal::Refusal;
use crate::text::template::Template;

crate::settings! {
    /// The texts of which one must be neither empty nor `0`.
    when: Vec<Template> = Vec::new(),
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "early_read",
    &[Directive::new(
        "client_body_early_read",
        HTTP.or(SERVER),
        Arity::AtLeast(1),
        "Reads the body before the request is processed, if one of the texts is neither empty nor 0.",
        early_read,
    )
    .many()],
)
.finish(finish);

fn early_read(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    for word in &statement.args {
        let template = b.template(&word.text)?;
        b.settings().early_read.when.get_or_insert_default().push(template);
    }
    Ok(())
}

/// Puts a rule before those of the server: other servers have nothing to check.
fn finish(_: &mut Build<'_>, scope: &mut Scope) {
    if scope.context == SERVER
        && let Some(when) = scope.settings.early_read.when.clone()
    {
        scope.rules.insert(0, Rule::ReadBody(when));
    }
}
