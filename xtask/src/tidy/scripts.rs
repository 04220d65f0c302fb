//! Rules about the end-to-end scripts.

use super::checkout::Checkout;
use super::remark::Remark;
use std::collections::BTreeMap;

/// Every script begins with `vtest "what holds"`, with its own title, and is in a folder that the harness reads.
pub fn titles(checkout: &Checkout) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut seen = BTreeMap::new();
    for file in checkout.ending(".vtc") {
        let title = file.text.lines().next().and_then(|line| line.strip_prefix("vtest \"")?.strip_suffix('"'));
        match title {
            None | Some("") => remarks.push(Remark::error(format!("{}:1: must begin with vtest \"TITLE\"", file.path))),
            Some(title) => {
                if let Some(other) = seen.insert(title, &file.path) {
                    remarks.push(Remark::error(format!("{}:1: has the title of {other}", file.path)));
                }
            }
        }
        if file.path.split('/').count() != 3 || !file.path.starts_with("tests/") {
            remarks.push(Remark::error(format!("{}: no test runs this script, move it to tests/FOLDER/", file.path)));
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_script_has_its_own_title_in_its_place() {
        let fine = "vtest \"it holds\"\n";
        assert_eq!(titles(&Checkout::of(&[("tests/basic/a.vtc", fine)])), []);
        assert_eq!(titles(&Checkout::of(&[("tests/basic/a.vtc", fine), ("tests/basic/b.vtc", fine)])).len(), 1);
        assert_eq!(titles(&Checkout::of(&[("tests/a.vtc", fine)])).len(), 1);
        assert_eq!(titles(&Checkout::of(&[("tests/basic/a.vtc", "client c1 {}\n")])).len(), 1);
    }
}
