//! Makes the products, in order.

use super::given::{Given, PackedWay};
use super::{build, deb, image, sbom, sums, tarball};
use crate::profile;
use crate::run::{cargo, output};
use crate::{book, files};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes every product anew; returns the path of the checksums. The book of the documents needs the program mdBook.
pub fn all(root: &Path, out: &Path, way: &PackedWay, mdbook: Option<&Path>) -> Result<PathBuf, String> {
    let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(epoch) => epoch,
        Err(_) => output(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]))?.trim().to_owned(),
    };
    let whole = |path: &Path| std::path::absolute(path).map_err(|error| files::told(path, &error));
    let binary = match way {
        PackedWay::Built => build::binary(root, &epoch, None)?,
        PackedWay::BuiltBy(by) => build::binary(root, &epoch, Some(&profile::readable(by)?))?,
        PackedWay::Given(binary) => whole(binary)?,
    };
    build::check(&binary)?;
    if out.exists() {
        fs::remove_dir_all(out).map_err(|error| files::told(out, &error))?;
    }
    let version = version(root)?;
    let book = mdbook.map(|program| book::build(root, &out.join("stage/book"), program)).transpose()?;
    let given = Given { root: root.to_owned(), out: out.to_owned(), binary, book, version, epoch };
    let products = [
        deb::weir(&given)?,
        deb::weir_nginx(&given)?,
        tarball::write(&given)?,
        image::write(&given)?,
        sbom::write(&given)?,
    ];
    for product in &products {
        let size = fs::metadata(product).map_err(|error| files::told(product, &error))?.len();
        println!("{:>10} bytes  {}", size, product.display());
    }
    match &given.book {
        Some(book) => {
            let (count, bytes) = book::size(book)?;
            println!("{bytes:>10} bytes of an installed weir are the book, in {count} files");
        }
        None => println!("the packages have no book"),
    }
    sums::write(&given, &products)
}

/// The version of weir, from `Cargo.toml`.
pub fn version(root: &Path) -> Result<String, String> {
    let said = output(cargo("pkgid --package weir").current_dir(root))?;
    let version = said.trim().rsplit(['#', '@']).next().unwrap_or_default();
    Ok(version.to_owned())
}
