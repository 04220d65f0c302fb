//! The order of folders in `http`: a file imports files of its own folder and of those before it.

use super::checkout::Checkout;
use super::imports::imports;
use super::remark::Remark;

/// The crate, and its folders from the lowest to the highest.
const FOLDER: &str = "crates/http/src";
const ORDER: &[&str] = &["text", "hold", "exchange", "receive", "send", "read", "family"];

/// Imports of a file in a higher folder. Most are values of the engine's own families, which a configuration carries. If you
/// remove one, lower this number.
const UPWARDS: usize = 20;

/// Reports a folder that is not in [`ORDER`], and a number of imports upwards that differs from [`UPWARDS`].
pub fn floors(checkout: &Checkout) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut upwards = Vec::new();
    for (file, imported) in imports(checkout, FOLDER) {
        let Some(own) = floor(file) else {
            remarks.push(Remark::error(format!("{FOLDER}/{file}: it is in no folder of {}", file!())));
            continue;
        };
        let higher = imported.into_iter().filter(|other| floor(other) > Some(own));
        upwards.extend(higher.map(|other| format!("{file} imports {other}")));
    }
    if upwards.len() != UPWARDS && checkout.ending("http/src/lib.rs").next().is_some() {
        let (count, list) = (upwards.len(), upwards.join(", "));
        remarks
            .push(Remark::error(format!("{count} imports go up in {FOLDER}, but {} says {UPWARDS}: {list}", file!())));
    }
    remarks
}

/// The place of a file's folder in [`ORDER`].
fn floor(file: &str) -> Option<usize> {
    let folder = file.split('/').next()?.trim_end_matches(".rs");
    ORDER.iter().position(|name| *name == folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_place_and_an_import_upwards_are_errors() {
        let files = [
            ("crates/http/src/lib.rs", ""),
            ("crates/http/src/text/mod.rs", ""),
            ("crates/http/src/send/mod.rs", ""),
            ("crates/http/src/text/a.rs", "use crate::send::b::X;"),
            ("crates/http/src/send/b.rs", "use crate::text::a::Y;"),
            ("crates/http/src/loose.rs", ""),
        ];
        let told: Vec<String> = floors(&Checkout::of(&files)).into_iter().map(|remark| remark.text).collect();
        assert!(told[0].contains("loose.rs: it is in no folder"), "{told:?}");
        assert!(told[1].starts_with("1 imports go up") && told[1].ends_with("text/a.rs imports send/b.rs"), "{told:?}");
    }
}
