//! The result of a rule.

/// A broken rule, which fails the run; or a prompt, which is only printed.
#[derive(Debug, PartialEq, Eq)]
pub struct Remark {
    /// True if the remark fails the run.
    pub is_error: bool,
    /// `FILE:LINE: the problem, and the remedy`.
    pub text: String,
}

impl Remark {
    /// A broken rule.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, text: text.into() }
    }

    /// A prompt.
    pub fn prompt(text: impl Into<String>) -> Self {
        Self { is_error: false, text: text.into() }
    }
}
