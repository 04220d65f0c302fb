//! The tarball for machines without dpkg: `bin/` and `share/`, which fit into a prefix such as `/usr/local`.

use super::deb;
use super::given::Given;
use super::stage::{FILE, PROGRAM, Stage, gzip};
use crate::files::told;
use std::fs;
use std::path::PathBuf;

/// Packs it.
pub fn write(given: &Given) -> Result<PathBuf, String> {
    let name = format!("weir-{}-linux-amd64", given.version);
    let stage = Stage::new(given.out.join("stage/tarball"))?;
    stage.copy(&given.binary, &format!("{name}/bin/weir"), PROGRAM)?;
    deb::share(given, &stage, &format!("{name}/share"))?;
    stage.copy(&given.root.join("package/copyright"), &format!("{name}/LICENCE"), FILE)?;
    for document in ["README.md", "CHANGELOG.md"] {
        stage.copy(&given.root.join(document), &format!("{name}/{document}"), FILE)?;
    }
    let tar = given.out.join("stage/tarball.tar");
    stage.tar(&tar, 0, &given.epoch)?;
    let to = given.out.join(format!("{name}.tar.gz"));
    let bytes = fs::read(&tar).map_err(|error| told(&tar, &error))?;
    fs::write(&to, gzip(&bytes)?).map_err(|error| told(&to, &error))?;
    Ok(to)
}
