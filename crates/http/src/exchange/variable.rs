//! Variables (`$name`) as the families offer them.

use crate::exchange::{Exchange, Get};

/// A variable that a family offers: a row in its table.
pub struct Variable {
    /// The name without `$`; a name that ends in `_` is a prefix (`http_`).
    pub name: &'static str,
    /// Reads it.
    pub get: Get,
    /// Writes it with `set`, if nginx allows that.
    pub set: Option<fn(&mut Exchange<'_>, &[u8])>,
    /// True if the exchange keeps its first value, until `set` gives it another one.
    pub is_kept: bool,
    /// True if it reads the fields of the answer. If a configuration mentions such a variable, every answer gets its
    /// own fields, and no answer reuses a head that was made for another (`family::cache::plain`).
    pub reads_answer: bool,
    /// True if it has the same value for all fresh hits on one stored answer.
    pub is_same_for_hits: bool,
    /// True if its value is a PEM text of weir's own, never the name of a file.
    pub is_pem: bool,
}

impl Variable {
    /// A variable that cannot be set, and may read anything in the exchange.
    pub const fn new(name: &'static str, get: Get) -> Variable {
        Variable { name, get, set: None, is_kept: false, reads_answer: true, is_same_for_hits: false, is_pem: false }
    }

    /// A variable that cannot be set, and does not read the answer's fields.
    pub const fn without_answer(name: &'static str, get: Get) -> Variable {
        Variable { name, get, set: None, is_kept: false, reads_answer: false, is_same_for_hits: false, is_pem: false }
    }

    /// Marks it as equal for all fresh hits on one stored answer.
    pub const fn same_for_hits(mut self) -> Variable {
        self.is_same_for_hits = true;
        self
    }

    /// Marks its value as a PEM text of weir's own: it opens no file.
    pub const fn pem(mut self) -> Variable {
        self.is_pem = true;
        self
    }

    /// A variable that `set` may change; it is about the request, and does not read the answer's fields.
    pub const fn changeable(name: &'static str, get: Get, set: fn(&mut Exchange<'_>, &[u8])) -> Variable {
        Variable {
            name,
            get,
            set: Some(set),
            is_kept: false,
            reads_answer: false,
            is_same_for_hits: false,
            is_pem: false,
        }
    }

    /// A variable about the request that keeps its first value until `set` gives it another one (nginx: a changeable variable
    /// without a handler for `set`). A location that an internal redirect enters sees that value too.
    pub const fn kept(name: &'static str, get: Get) -> Variable {
        Variable { name, get, set: None, is_kept: true, reads_answer: false, is_same_for_hits: false, is_pem: false }
    }
}
