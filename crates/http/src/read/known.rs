//! The directives and the variables that weir has, by name.

use std::collections::HashMap;

use crate::exchange::Get;
use crate::exchange::variable::Variable;
use crate::read::directive::{Contexts, Directive};
use crate::text::template::{Argument, Definition};

/// The directives and the variables of all families.
pub struct Known {
    directives: HashMap<&'static str, Vec<&'static Directive>>,
    variables: Vec<&'static Variable>,
    session_variables: Vec<&'static str>,
}

impl Known {
    /// These directives and variables. Several directives may have one name, in different contexts.
    pub fn new(
        directives: impl Iterator<Item = &'static Directive>,
        variables: impl Iterator<Item = &'static Variable>,
        session_variables: impl Iterator<Item = &'static str>,
    ) -> Known {
        let mut by_name: HashMap<&'static str, Vec<&'static Directive>> = HashMap::new();
        for directive in directives {
            by_name.entry(directive.name).or_default().push(directive);
        }
        Known { directives: by_name, variables: variables.collect(), session_variables: session_variables.collect() }
    }

    /// All directives, in no order.
    pub fn directives(&self) -> impl Iterator<Item = &'static Directive> {
        self.directives.values().flatten().copied()
    }

    /// All variables.
    pub fn variables(&self) -> impl Iterator<Item = &'static Variable> {
        self.variables.iter().copied()
    }

    /// The names of the variables of `stream`; a name that ends in `_` is a prefix.
    pub fn session_variables(&self) -> &[&'static str] {
        &self.session_variables
    }

    /// The directive of this name that may stand in this context; else the first directive of this name.
    pub fn directive(&self, name: &str, context: Contexts) -> Option<&'static Directive> {
        let candidates = self.directives.get(name)?;
        let fitting = candidates.iter().find(|directive| directive.contexts.meets(context));
        fitting.or(candidates.first()).copied()
    }

    /// Whether weir has a directive of this name, in any context.
    pub fn has(&self, name: &str) -> bool {
        self.directives.contains_key(name)
    }

    /// `did you mean "…"?` for an unknown name of a directive; empty if no known name is similar.
    pub fn meant(&self, name: &str, context: Contexts) -> String {
        let fits = |directives: &[&Directive]| directives.iter().any(|directive| directive.contexts.meets(context));
        let here = self.directives.iter().filter(|(_, directives)| fits(directives)).map(|(name, _)| *name);
        weir_conf::did_you_mean(name, here).map_or(String::new(), |close| format!("did you mean \"{close}\"?"))
    }

    /// The row that a family has for a built-in variable; also finds prefixes.
    pub fn variable(&self, name: &str) -> Option<&'static Variable> {
        let exact = self.variables().find(|variable| variable.name == name);
        let is_prefix = |v: &&Variable| v.name.ends_with('_') && name.len() > v.name.len() && name.starts_with(v.name);
        exact.or_else(|| self.variables().find(is_prefix))
    }

    /// How the families define a built-in variable.
    pub fn built_in(&self, name: &str) -> Option<Definition<Get>> {
        self.variable(name).map(|variable| {
            let rest = if variable.name.ends_with('_') { &name[variable.name.len()..] } else { name };
            let argument = Argument { name: rest.to_owned(), index: 0 };
            if variable.is_kept {
                Definition::Cached(variable.get, argument)
            } else {
                Definition::Computed(variable.get, argument)
            }
        })
    }
}
