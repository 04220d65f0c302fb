//! `set`: gives a variable a value when a session begins.
//!
//! <https://nginx.org/en/docs/stream/ngx_stream_set_module.html>

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::family::rewrite::declarable;
use weir_http::read::build::Build;
use weir_http::read::directive::{Directive, STREAM_SERVER, TWO};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::slots::VariableId;
use weir_http::text::template::{Argument, Definition, Template};

use crate::session::{Get, Session};
use crate::variable;

weir_http::settings! {
    /// The variables and their values, in order.
    list: Arc<Vec<(VariableId, Template)>> = Arc::default(),
}

/// Nothing is declared for all of `stream`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "stream_set",
    &[Directive::new("set", STREAM_SERVER, TWO, "Gives a variable a value when a session begins.", set).many()],
);

fn set(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let name = declarable(b, statement.text(0))?;
    let value = b.template(statement.text(1))?;
    let unset = Definition::Cached(unset as Get, Argument { name: name.clone(), index: 0 });
    let Some(id) = variable::names(b).map(|names| names.define_weak(&name, unset)) else { return Ok(()) };
    Arc::make_mut(crate::settings(b).set.list.get_or_insert_default()).push((id, value));
    Ok(())
}

/// A variable that another server sets is empty here.
fn unset(_: &mut Session<'_>, _: &Argument, _: &mut Vec<u8>) -> bool {
    true
}

/// Sets the variables of the server.
pub fn run(session: &mut Session<'_>) {
    let place = &session.server.place;
    for (id, value) in crate::values(place).set.list.iter() {
        let value = value.text(session);
        session.slots.set(*id, &value);
    }
}
