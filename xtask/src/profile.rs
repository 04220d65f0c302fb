//! `cargo xtask profile`: a profile of weir at the bench's workloads, for `cargo xtask package --profile FILE`.
//!
//! The compiler places the code of each function by it: what every request runs comes together. It finds a function again
//! by its name, and the name depends on the versions of all crates and on `--target`. So a profile is for one commit and
//! one compiler, both builds name the target, and no profile is kept with the sources.

use crate::run::{cargo, output, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The flags are for this target, so that build scripts and macros get none. Both builds need it: see above.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds an instrumented weir, runs `bench/profile.py`, and writes `target/weir.profdata`.
pub fn profile(root: &Path) -> Result<(), String> {
    let merge = profdata()?;
    let (target, raw) = (root.join("target/profile"), root.join("target/profile/raw"));
    let told = |error: std::io::Error| format!("{}: {error}", raw.display());
    if raw.exists() {
        fs::remove_dir_all(&raw).map_err(told)?;
    }
    let mut build = cargo(&format!("build --locked --profile dist --package weir --target {TARGET}"));
    build.current_dir(root).env("CARGO_TARGET_DIR", &target);
    run(build.env("RUSTFLAGS", format!("-Cprofile-generate={}", raw.display())).env("PCRE2_SYS_STATIC", "1"))?;
    run(cargo("build --release --manifest-path bench/floor/Cargo.toml").current_dir(root))?;
    let weir = target.join(TARGET).join("dist/weir");
    run(Command::new("python3").current_dir(root).arg("bench/profile.py").arg("--weir").arg(weir))?;
    let profile = root.join("target/weir.profdata");
    run(Command::new(merge).args(["merge", "--sparse", "-o"]).arg(&profile).arg(&raw))?;
    println!("\n{}: for cargo xtask package --profile", profile.display());
    Ok(())
}

/// The tool of the compiler's own LLVM: another version does not read its files.
fn profdata() -> Result<PathBuf, String> {
    let libraries = output(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let tool = Path::new(libraries.trim()).with_file_name("bin").join("llvm-profdata");
    if tool.exists() {
        Ok(tool)
    } else {
        Err(format!("{} is missing: rustup component add llvm-tools", tool.display()))
    }
}
