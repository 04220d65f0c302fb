//! Why a virtual user ends early.

use std::borrow::Cow;

/// Why a virtual user ends early; counts `errors.` with this name once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed(pub Cow<'static, str>);

impl From<String> for Failed {
    fn from(name: String) -> Failed {
        Failed(Cow::Owned(name))
    }
}
