//! Variables of sessions: a getter reads a session, as one of `http` reads an exchange.
//!
//! The names of a `stream` block are apart from those of `http`: `$status` has another meaning here.

use std::any::Any;

use weir_http::read::build::Build;
use weir_http::text::template::{Argument, Definition, Names};

use crate::session::Get;

/// A variable of sessions.
pub struct Variable {
    /// The name without `$`; a name that ends in `_` is a prefix.
    pub name: &'static str,
    /// Reads it.
    pub get: Get,
}

impl Variable {
    /// A variable.
    pub const fn new(name: &'static str, get: Get) -> Variable {
        Variable { name, get }
    }
}

/// The names that the `stream` block mentions so far; `None` outside such a block.
pub fn names<'b>(b: &'b mut Build<'_>) -> Option<&'b mut Names<Get>> {
    let names: &mut dyn Any = b.session_names.as_deref_mut()?;
    names.downcast_mut()
}

/// Defines a variable of sessions.
pub fn define(b: &mut Build<'_>, name: &str, definition: Definition<Get>) {
    if let Some(names) = names(b) {
        names.define(name, definition);
    }
}

/// The definition of a built-in variable; also finds prefixes.
pub fn built_in<'v>(all: impl Iterator<Item = &'v Variable> + Clone, name: &str) -> Option<Definition<Get>> {
    let exact = all.clone().find(|variable| variable.name == name);
    let is_prefix = |v: &&Variable| v.name.ends_with('_') && name.len() > v.name.len() && name.starts_with(v.name);
    let found = exact.or_else(|| all.clone().find(is_prefix))?;
    let rest = if found.name.ends_with('_') { name.get(found.name.len()..).unwrap_or_default() } else { name };
    Some(Definition::Computed(found.get, Argument { name: rest.to_owned(), index: 0 }))
}
