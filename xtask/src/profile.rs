//! `cargo xtask profile`: a profile of weir at the bench's workloads, for `cargo xtask package --profile FILE`.
//!
//! The compiler places the code of each function by it: what every request runs comes together. It finds a function again
//! by its name, and the name depends on the versions of all crates, on the compiler and on `--target`. So both builds are
//! [`dist`], a profile is for one commit, and no profile is kept with the sources. The compiler says nothing of a profile
//! under other names: [`check`] does.

use crate::run::{TARGET, cargo, output, run};
use std::collections::HashSet;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The command of a build of what users get, in this folder, and the path of its binary.
pub fn dist(root: &Path, folder: &Path) -> (Command, PathBuf) {
    let mut build = cargo(&format!("build --locked --profile dist --package weir --target {TARGET}"));
    // PCRE2 becomes a part of the binary: other distributions have other versions of it, or none.
    build.current_dir(root).env("CARGO_TARGET_DIR", folder).env("PCRE2_SYS_STATIC", "1");
    (build, folder.join(TARGET).join("dist/weir"))
}

/// Builds an instrumented weir, runs `bench/profile.py`, and writes `target/weir.profdata`.
pub fn profile(root: &Path) -> Result<(), String> {
    let merge = profdata()?;
    let (folder, raw) = (root.join("target/profile"), root.join("target/profile/raw"));
    if raw.exists() {
        fs::remove_dir_all(&raw).map_err(|error| format!("{}: {error}", raw.display()))?;
    }
    let (mut build, weir) = dist(root, &folder);
    run(build.env("RUSTFLAGS", format!("-Cprofile-generate={}", raw.display())))?;
    run(Command::new("python3").current_dir(root).arg("bench/profile.py").arg("--weir").arg(weir))?;
    let profile = root.join("target/weir.profdata");
    run(Command::new(merge).args(["merge", "--sparse", "-o"]).arg(&profile).arg(&raw))?;
    println!("\n{}: for cargo xtask package --profile", profile.display());
    Ok(())
}

/// The full path of a profile that the compiler can read. Any other file is refused before cargo runs: cargo asks the
/// compiler with the same flags, and keeps its failure in `target/` for later builds.
pub fn readable(profile: &Path) -> Result<PathBuf, String> {
    let told = |error: &dyn Display| format!("{}: {error}; cargo xtask profile makes one", profile.display());
    let whole = fs::canonicalize(profile).map_err(|error| told(&error))?;
    output(Command::new(profdata()?).arg("show").arg(&whole)).map_err(|error| told(&error))?;
    Ok(whole)
}

/// Refuses a profile whose functions are not those of the binary that was built by it.
pub fn check(profile: &Path, binary: &Path) -> Result<(), String> {
    let link = output(Command::new("readelf").args(["--string-dump=.gnu_debuglink"]).arg(binary))?;
    let name = link.split_whitespace().find(|word| word.ends_with(".debug"));
    let symbols = binary.with_file_name(name.ok_or_else(|| format!("{} names no file of symbols", binary.display()))?);
    let symbols = output(Command::new("nm").arg("--defined-only").arg(symbols))?;
    let counted = output(Command::new(profdata()?).args(["show", "--all-functions"]).arg(profile))?;
    judge(&counted, &symbols).map_err(|why| format!("{}: {why}", profile.display()))
}

/// `counted` is the list of llvm-profdata, `symbols` that of nm. Half of weir's functions must be in both: three quarters
/// are, and the linker has inlined the others; under other names, none are.
fn judge(counted: &str, symbols: &str) -> Result<(), String> {
    let symbols: HashSet<&str> = symbols.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    // `  NAME:`, or `  PLACE;NAME:` for a function of one place alone; only weir's own.
    let names = counted
        .lines()
        .filter_map(|line| line.strip_prefix("  _").or_else(|| line.split_once(";_").map(|(_, name)| name)));
    let names: Vec<&str> =
        names.filter_map(|name| name.strip_suffix(':')).filter(|name| name.contains("weir_")).collect();
    let known = names.iter().filter(|name| symbols.contains(format!("_{name}").as_str())).count();
    if !names.is_empty() && known * 2 >= names.len() {
        return Ok(());
    }
    Err(format!(
        "the binary has {known} of its {} functions of weir: it is of another commit or compiler; cargo xtask profile makes a new one",
        names.len()
    ))
}

/// The tool of the compiler's LLVM, by its major version, which decides the form of the files: rustup's, or Debian's.
fn profdata() -> Result<PathBuf, String> {
    let libraries = output(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let of_rustup = Path::new(libraries.trim()).with_file_name("bin").join("llvm-profdata");
    let version = output(Command::new("rustc").arg("-vV"))?;
    let major = llvm_major(&version).ok_or("rustc -vV names no version of LLVM")?;
    let of_debian = PathBuf::from(format!("/usr/lib/llvm-{major}/bin/llvm-profdata"));
    let missing = || {
        format!(
            "llvm-profdata of LLVM {major} is missing, which is rustc's: apt-get install llvm-{major}, or rustup component add llvm-tools"
        )
    };
    [of_rustup, of_debian].into_iter().find(|tool| tool.exists()).ok_or_else(missing)
}

/// The major version of LLVM in the output of `rustc -vV`.
fn llvm_major(version: &str) -> Option<u32> {
    let version = version.lines().find_map(|line| line.strip_prefix("LLVM version: "))?;
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_llvm_is_found() {
        assert_eq!(
            llvm_major("rustc 1.95.0 (59807616e 2026-04-14)\nrelease: 1.95.0\nLLVM version: 22.1.2\n"),
            Some(22)
        );
        assert_eq!(llvm_major("rustc 1.95.0"), None);
    }

    #[test]
    fn a_missing_profile_is_refused_with_the_command_that_makes_one() {
        let told = readable(Path::new("/no/such.profdata")).unwrap_err();
        assert!(told.starts_with("/no/such.profdata: ") && told.ends_with("cargo xtask profile makes one"), "{told}");
    }

    #[test]
    fn a_profile_under_other_names_is_refused() {
        let counted =
            "Counters:\n  weir_edge.8c6b-cgu.0;_ZN9weir_edge3one17h5fdE:\n    Hash: 0x02\n  _ZN8weir_net3two17hbe6E:\n";
        assert_eq!(judge(counted, "0000 t _ZN9weir_edge3one17h5fdE\n"), Ok(()));
        let told = judge(counted, "0000 t _ZN9weir_edge3one17hfffE\n0001 T main\n").unwrap_err();
        assert!(told.contains("0 of its 2 functions") && told.contains("cargo xtask profile"), "{told}");
        assert!(judge("Total functions: 0\n", "0000 T main\n").is_err());
    }
}
