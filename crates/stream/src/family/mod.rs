//! The families of `stream`: one file each, and one word below.

use crate::variable::Variable;

pub mod checking;

weir_http::declare! {
    server
    core
    resolver
    variables
    upstream
    proxy
    content
    pass
    set
    preread
    health
}

weir_http::above!(2, || variables().map(|variable| variable.name).collect());

/// The variables of all families of this crate.
pub fn variables() -> impl Iterator<Item = &'static Variable> + Clone {
    variables::VARIABLES.iter().chain(preread::VARIABLES)
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_variable_is_defined_twice() {
        let mut names: Vec<&str> = super::variables().map(|variable| variable.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
