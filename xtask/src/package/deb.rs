//! Debian packages: `weir`, and `weir-nginx`, which puts weir in nginx's place.
//!
//! `dpkg-deb` packs them. The folders `package/weir` and `package/weir-nginx` have the files that are written by hand,
//! and this file adds the made ones.

use super::given::Given;
use super::licences;
use super::pages;
use super::stage::{FILE, Stage, gzip};
use crate::files::{files, read, told};
use crate::run::output;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's own number after the version of weir.
const REVISION: &str = "1";

/// Packs `weir`.
pub fn weir(given: &Given) -> Result<PathBuf, String> {
    let stage = Stage::new(given.out.join("stage/weir"))?;
    stage.copy_tracked(&given.root, "package/weir", "")?;
    stage.copy_tracked(&given.root, "package/lists", "etc/weir")?;
    stage.copy(&given.binary, "usr/bin/weir", 0o755)?;
    share(given, &stage, "usr/share")?;
    stage.write("usr/share/doc/weir/changelog.gz", FILE, gzip(read(&given.root.join("CHANGELOG.md"))?.as_bytes())?)?;
    finish(given, &stage, "weir", "amd64")
}

/// Packs `weir-nginx`: links, and the scripts that divert nginx.
pub fn weir_nginx(given: &Given) -> Result<PathBuf, String> {
    let stage = Stage::new(given.out.join("stage/weir-nginx"))?;
    stage.copy_tracked(&given.root, "package/weir-nginx", "")?;
    stage.link("usr/sbin/nginx", "../bin/weir")?;
    stage.link("usr/share/man/man8/nginx.8.gz", "weir-edge.8.gz")?;
    finish(given, &stage, "weir-nginx", "all")
}

/// The files below `share/` that the package and the tarball have: pages, completions, labs, alerts and dashboards, guide, book,
/// examples.
pub fn share(given: &Given, stage: &Stage, share: &str) -> Result<(), String> {
    pages::Pages::of(&given.binary, &given.epoch)?.put(stage, share)?;
    stage.copy_tracked(&given.root, "labs", &format!("{share}/weir/labs"))?;
    let monitoring = given.root.join("package/monitoring");
    for (file, folder) in [("weir.rules.yml", "prometheus"), ("weir.json", "grafana"), ("weir.ko.json", "grafana")] {
        stage.copy(&monitoring.join(file), &format!("{share}/weir/{folder}/{file}"), FILE)?;
    }
    for folder in ["ci", "editors"] {
        stage.copy_tracked(&given.root, &format!("package/{folder}"), &format!("{share}/weir/{folder}"))?;
    }
    stage.copy_tracked(&given.root, "examples", &format!("{share}/doc/weir/examples"))?;
    for folder in ["guide", "reference"] {
        stage.copy_tracked(&given.root, &format!("docs/{folder}"), &format!("{share}/doc/weir/{folder}"))?;
    }
    if let Some(book) = &given.book {
        for file in files(book)? {
            stage.copy(&book.join(&file), &format!("{share}/doc/weir/html/{file}"), FILE)?;
        }
    }
    stage.write(&format!("{share}/doc/weir/third-party.txt.gz"), FILE, gzip(licences::of(&given.root)?.as_bytes())?)
}

/// Writes the package's own lists and packs it.
fn finish(given: &Given, stage: &Stage, name: &str, architecture: &str) -> Result<PathBuf, String> {
    let version = format!("{}-{REVISION}", given.version);
    stage.copy(&given.root.join("package/copyright"), &format!("usr/share/doc/{name}/copyright"), FILE)?;
    let changelog = format!("usr/share/doc/{name}/changelog.Debian.gz");
    stage.write(&changelog, FILE, gzip(changes(name, &version, &given.epoch)?.as_bytes())?)?;
    let all: Vec<String> = files(&stage.top)?.into_iter().filter(|file| !file.starts_with("DEBIAN/")).collect();
    let conffiles: String =
        all.iter().filter(|file| file.starts_with("etc/")).map(|file| format!("/{file}\n")).collect();
    if !conffiles.is_empty() {
        stage.write("DEBIAN/conffiles", FILE, conffiles)?;
    }
    let regular: Vec<&String> = all.iter().filter(|file| !stage.top.join(file).is_symlink()).collect();
    let sums = output(Command::new("md5sum").current_dir(&stage.top).args(&regular))?;
    stage.write("DEBIAN/md5sums", FILE, sums)?;
    let control = read(&stage.top.join("DEBIAN/control"))?;
    let control = control.replace("@VERSION@", &version);
    stage.write("DEBIAN/control", FILE, control.replace("@SIZE@", &kibibytes(&stage.top, &all)?.to_string()))?;
    let to = given.out.join(format!("{name}_{version}_{architecture}.deb"));
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.env("SOURCE_DATE_EPOCH", &given.epoch).args(["--root-owner-group", "--threads-max=1", "-Zxz", "--build"]);
    output(dpkg.arg(&stage.top).arg(&to))?;
    Ok(to)
}

/// `Installed-Size`, as dpkg-gencontrol counts it: each file in whole kibibytes.
fn kibibytes(top: &Path, files: &[String]) -> Result<u64, String> {
    files.iter().try_fold(0, |sum, file| {
        let path = top.join(file);
        let size = fs::symlink_metadata(&path).map_err(|error| told(&path, &error))?.len();
        Ok(sum + size.div_ceil(1024).max(1))
    })
}

/// The changelog in Debian's form; the changes themselves are in weir's own.
fn changes(name: &str, version: &str, epoch: &str) -> Result<String, String> {
    let date = output(Command::new("date").args(["-u", "-R", "-d"]).arg(format!("@{epoch}")).env("LC_ALL", "C"))?;
    let mut text = format!("{name} ({version}) unstable; urgency=medium\n\n");
    let _ = writeln!(
        text,
        "  * weir {}; /usr/share/doc/weir/changelog.gz lists the changes.\n",
        version.trim_end_matches("-1")
    );
    let _ = writeln!(text, " -- weir maintainers <maintainers@weir.invalid>  {}", date.trim());
    Ok(text)
}
