//! The rules that a machine can check. Each rule is a pure function of the checkout. Each rule has a test with cases
//! that it must catch, and one test applies all rules to the current checkout.

mod arrows;
mod checkout;
mod circles;
mod code;
mod documents;
mod floors;
mod imports;
mod names;
mod remark;
mod scripts;

use checkout::Checkout;
use remark::Remark;
use std::path::Path;

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
        floors::floors,
        code::unsafe_places,
        code::forbids_unsafe,
        code::threads,
        code::system_calls,
        code::lengths,
        code::words,
        code::silent_tests,
        code::doc_tests,
        names::names,
        documents::titles,
        documents::architecture,
        documents::maps,
        documents::places,
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
