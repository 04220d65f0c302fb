//! Directives of nginx that weir does not have.

/// One directive.
pub struct Entry;

impl Entry {
    /// What to use instead.
    pub fn remedy(&self) -> String {
        String::new()
    }
}

/// Looks a name up.
pub fn lookup(_name: &str) -> Option<&'static Entry> {
    None
}
