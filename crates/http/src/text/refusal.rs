//! Why weir does not accept a statement.

/// Why weir did not accept a statement: nginx's words first, then the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The message without ` in FILE:LINE`.
    pub what: String,
    /// Whether `"NAME" directive ` must still be put before `what`.
    pub about_directive: bool,
    /// The remedy: another text for the statement.
    pub todo: Option<String>,
    /// The missing declaration, if the problem may only follow from a refused statement.
    pub need: Option<Box<Need>>,
    /// The place, if it is not the current statement or block: which statement of this directive, from 0.
    pub place: Option<(&'static str, usize)>,
    /// Whether nginx may accept the statement: weir lacks a part of nginx there, or has a limit of its own.
    pub is_weirs_own: bool,
}

impl Refusal {
    /// nginx's `"NAME" directive WHAT`, for messages such as `invalid value`.
    pub fn directive(what: impl Into<String>) -> Refusal {
        Refusal { about_directive: true, ..Refusal::whole(what) }
    }

    /// A complete message.
    pub fn whole(what: impl Into<String>) -> Refusal {
        let what = what.into();
        Refusal { what, about_directive: false, todo: None, need: None, place: None, is_weirs_own: false }
    }

    /// The same refusal, where nginx may accept the statement.
    pub fn weirs_own(self) -> Refusal {
        Refusal { is_weirs_own: true, ..self }
    }

    /// Adds the remedy.
    pub fn todo(mut self, todo: impl Into<String>) -> Refusal {
        self.todo = Some(todo.into());
        self
    }

    /// Names the missing declaration: a statement of `directive` with this `name` (empty: any name).
    ///
    /// weir does not report the problem if it refused such a statement.
    pub fn needs(mut self, directive: &str, name: &str) -> Refusal {
        self.need = Some(Box::new(Need::new(directive, name)));
        self
    }

    /// Points at the statement of `directive` with this number, from 0, in the block or in the blocks around it.
    pub fn about(mut self, directive: &'static str, number: usize) -> Refusal {
        self.place = Some((directive, number));
        self
    }
}

/// The missing part that a problem names: the directive that declares it, and its name. An empty name matches any name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Need {
    /// The directive.
    pub directive: String,
    /// The declared name.
    pub name: String,
}

impl Need {
    /// The name that `directive` would declare.
    pub fn new(directive: &str, name: &str) -> Need {
        Need { directive: directive.to_owned(), name: name.to_owned() }
    }
}
