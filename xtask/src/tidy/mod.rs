//! The rules of the house that a machine can hold. Each rule is a pure function of the checkout; each has a test
//! that shows what it catches, and one test holds them all for the checkout as it stands.

mod arrows;
mod checkout;
mod circles;
mod code;
mod documents;
mod scripts;

pub use checkout::Checkout;
use std::path::Path;

/// A broken rule: fails the run. Or a prompt to think: printed, no more.
#[derive(Debug, PartialEq, Eq)]
pub struct Remark {
    /// Whether the run fails.
    pub is_error: bool,
    /// `FILE:LINE: what, do this instead`.
    pub text: String,
}

impl Remark {
    fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, text: text.into() }
    }

    fn prompt(text: impl Into<String>) -> Self {
        Self { is_error: false, text: text.into() }
    }
}

/// Prints every remark; an error if a rule is broken.
pub fn tidy(root: &Path) -> Result<(), String> {
    let checkout = Checkout::read(root)?;
    let remarks = remarks(&checkout);
    for remark in &remarks {
        println!("{}: {}", if remark.is_error { "error" } else { "think" }, remark.text);
    }
    match remarks.iter().filter(|remark| remark.is_error).count() {
        0 => {
            println!("tidy: {} files, no rule broken", checkout.files.len());
            Ok(())
        }
        errors => Err(format!("tidy: {errors} rules broken")),
    }
}

fn remarks(checkout: &Checkout) -> Vec<Remark> {
    let rules = [
        arrows::arrows,
        arrows::printed,
        circles::circles,
        code::unsafe_places,
        code::forbids_unsafe,
        code::lengths,
        code::words,
        code::silent_tests,
        documents::titles,
        documents::architecture,
        documents::dependencies,
        scripts::titles,
    ];
    rules.iter().flat_map(|rule| rule(checkout)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn this_checkout_is_tidy() {
        let checkout = Checkout::read(&crate::root()).unwrap();
        let broken: Vec<_> = remarks(&checkout).into_iter().filter(|remark| remark.is_error).collect();
        assert!(broken.is_empty(), "{broken:#?}");
    }
}
