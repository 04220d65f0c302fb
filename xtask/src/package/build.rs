//! The binary: built with profile `dist`, without a trace of this machine, and checked before it is packed.

use crate::profile;
use crate::run::{output, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The newest glibc that a Debian 12 has; the binary may ask for no newer symbol.
const GLIBC: (u32, u32) = (2, 36);
/// Libraries that the binary may load: those of glibc, and gcc's unwinder, which every Debian has.
pub const LIBRARIES: [&str; 4] = ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"];

/// Builds the binary, by a profile if there is one (`cargo xtask profile`). The paths of the checkout and of cargo's registry
/// become `/weir` and `/cargo` in it.
pub fn binary(root: &Path, epoch: &str, by: Option<&Path>) -> Result<PathBuf, String> {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let cargo_home = cargo_home.ok_or("neither CARGO_HOME nor HOME is set")?;
    let maps = |flag: &str| {
        let map = |from: &Path, to: &str| format!("{flag}={}={to}", from.display());
        [map(root, "/weir"), map(&cargo_home, "/cargo")].join(" ")
    };
    let (mut build, binary) = profile::dist(root, &root.join("target"));
    let used = by.map(|by| format!(" -Cprofile-use={}", by.display())).unwrap_or_default();
    build.env("SOURCE_DATE_EPOCH", epoch).env("RUSTFLAGS", maps("--remap-path-prefix") + &used);
    build.env("CFLAGS", maps("-ffile-prefix-map")).env("CXXFLAGS", maps("-ffile-prefix-map"));
    run(&mut build)?;
    by.map_or(Ok(()), |by| profile::check(by, &binary))?;
    Ok(binary)
}

/// Refuses a binary that needs more of a machine than Debian 12 has.
pub fn check(binary: &Path) -> Result<(), String> {
    let headers = output(Command::new("objdump").args(["-p"]).arg(binary))?;
    let symbols = output(Command::new("objdump").args(["-T"]).arg(binary))?;
    judge(&headers, &symbols).map_err(|why| format!("{}: {why}", binary.display()))
}

fn judge(headers: &str, symbols: &str) -> Result<(), String> {
    let needed: Vec<&str> =
        headers.lines().filter_map(|line| line.trim().strip_prefix("NEEDED")).map(str::trim).collect();
    if needed.is_empty() {
        return Err("objdump names no library".to_owned());
    }
    if let Some(other) = needed.iter().find(|name| !LIBRARIES.contains(name)) {
        return Err(format!(
            "needs {other}; only glibc and libgcc_s may be needed (PCRE2_SYS_STATIC=1 links PCRE2 in)"
        ));
    }
    let versions = symbols.split("GLIBC_").skip(1).filter_map(version);
    match versions.max() {
        Some(newest) if newest > GLIBC => {
            Err(format!("needs glibc {}.{}, newer than {}.{}", newest.0, newest.1, GLIBC.0, GLIBC.1))
        }
        Some(_) => Ok(()),
        None => Err("objdump names no version of glibc".to_owned()),
    }
}

/// The version that a text begins with.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_binary_needs_only_what_every_debian_12_has() {
        let headers = "  NEEDED               libgcc_s.so.1\n  NEEDED               libc.so.6\n";
        let symbols = "0 DF *UND* 0 (GLIBC_2.9) a\n0 DF *UND* 0 (GLIBC_2.34) b\n0 (GLIBC_2.2.5) c";
        assert_eq!(judge(headers, symbols), Ok(()));
        let pcre = format!("{headers}  NEEDED               libpcre2-8.so.0\n");
        assert!(judge(&pcre, symbols).unwrap_err().contains("libpcre2-8.so.0"));
        assert!(judge(headers, "(GLIBC_2.9) (GLIBC_2.38) d").unwrap_err().contains("glibc 2.38"));
        assert!(judge("", symbols).is_err());
        assert!(judge(headers, "").is_err());
    }
}
