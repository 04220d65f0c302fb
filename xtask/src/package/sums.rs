//! Checksums of all products, and their signature by minisign if the user has a key.

use super::given::Given;
use super::stage::sha256;
use crate::files::told;
use crate::run::run;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes `SHA256SUMS`.
pub fn write(given: &Given, products: &[PathBuf]) -> Result<PathBuf, String> {
    let mut lines = products.iter().map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(format!("{}  {name}\n", sha256(path)?))
    });
    let text = lines.by_ref().collect::<Result<String, String>>()?;
    let to = given.out.join("SHA256SUMS");
    fs::write(&to, text).map_err(|error| told(&to, &error))?;
    Ok(to)
}

/// Signs the checksums. minisign asks for the password of the key, if the key has one.
pub fn sign(sums: &Path, key: Option<&Path>, comment: &str) -> Result<(), String> {
    let Some(key) = key else {
        println!("nothing is signed: --key FILE names a secret key of minisign (minisign -G makes one)");
        return Ok(());
    };
    run(Command::new("minisign").args(["-S", "-t", comment, "-s"]).arg(key).arg("-m").arg(sums))
}
