//! The OCI image, as an archive that docker, podman, skopeo and containerd read.
//!
//! It has three layers: glibc with busybox, weir, and the configuration, which belongs to the unprivileged user. The
//! libraries are those of this machine, which therefore must be a Debian 12; the list of dpkg goes with them, so that
//! scanners know their versions.

use super::build;
use super::given::Given;
use super::stage::{FILE, PROGRAM, Stage, gzip, sha256};
use crate::files::{read, told};
use crate::run::output;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The archive may not be larger.
const BYTES_MAX: u64 = 30_000_000;
/// nginx's unprivileged image has this user.
const USER: u32 = 101;
/// Where Debian has the libraries.
const LIBRARIES: &str = "lib/x86_64-linux-gnu";
/// The packages whose files are in the image, with the commands that install them on the machine that builds it.
const PACKAGES: [&str; 4] = ["libc6", "libgcc-s1", "busybox-static", "ca-certificates"];
const BUSYBOX: &str = "/bin/busybox";
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Packs the image.
pub fn write(given: &Given) -> Result<PathBuf, String> {
    if !Path::new(BUSYBOX).is_file() {
        return Err(format!("{BUSYBOX} is not there: apt-get install busybox-static"));
    }
    let layers = [layer(given, "base", 0, base)?, layer(given, "weir", 0, weir)?, layer(given, "nginx", USER, nginx)?];
    let layout = Stage::new(given.out.join("stage/image"))?;
    let mut described = Vec::new();
    for layer in &layers {
        described.push(put(&layout, "application/vnd.oci.image.layer.v1.tar+gzip", &layer.compressed)?);
    }
    let config = put_json(&layout, "application/vnd.oci.image.config.v1+json", &config(given, &layers)?)?;
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": described,
    });
    let mut manifest = put_json(&layout, "application/vnd.oci.image.manifest.v1+json", &manifest)?;
    manifest["annotations"] = json!({
        "org.opencontainers.image.ref.name": given.version, "io.containerd.image.name": format!("docker.io/library/weir:{}", given.version),
    });
    let index =
        json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]});
    layout.write("index.json", FILE, index.to_string())?;
    layout.write("oci-layout", FILE, r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    let to = given.out.join(format!("weir-{}.oci.tar", given.version));
    layout.tar(&to, 0, &given.epoch)?;
    match fs::metadata(&to).map_err(|error| told(&to, &error))?.len() {
        size if size > BYTES_MAX => Err(format!("{}: {size} bytes, more than {BYTES_MAX}", to.display())),
        _ => Ok(to),
    }
}

struct Layer {
    compressed: Vec<u8>,
    /// The digest of the layer before its compression.
    id: String,
}

fn layer(
    given: &Given,
    name: &str,
    owner: u32,
    fill: fn(&Given, &Stage) -> Result<(), String>,
) -> Result<Layer, String> {
    let stage = Stage::new(given.out.join("stage/layers").join(name))?;
    fill(given, &stage)?;
    let tar = given.out.join(format!("stage/layers/{name}.tar"));
    stage.tar(&tar, owner, &given.epoch)?;
    let compressed = gzip(&fs::read(&tar).map_err(|error| told(&tar, &error))?)?;
    Ok(Layer { compressed, id: format!("sha256:{}", sha256(&tar)?) })
}

/// glibc, a shell, the authorities, the users.
fn base(_given: &Given, stage: &Stage) -> Result<(), String> {
    for name in build::LIBRARIES {
        stage.copy(&Path::new("/").join(LIBRARIES).join(name), &format!("{LIBRARIES}/{name}"), PROGRAM)?;
    }
    stage.link("lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")?;
    stage.copy(Path::new(BUSYBOX), "bin/busybox", PROGRAM)?;
    for name in output(Command::new(BUSYBOX).arg("--list"))?.lines().filter(|name| *name != "busybox") {
        stage.link(&format!("bin/{name}"), "busybox")?;
    }
    stage.copy(&Path::new("/").join(AUTHORITIES), AUTHORITIES, FILE)?;
    for package in PACKAGES {
        let said = output(Command::new("dpkg-query").args(["--status", package]))?;
        stage.write(&format!("var/lib/dpkg/status.d/{package}"), FILE, said)?;
        let licence = format!("usr/share/doc/{package}/copyright");
        stage.copy(&Path::new("/").join(&licence), &licence, FILE)?;
    }
    stage.copy(Path::new("/usr/lib/os-release"), "usr/lib/os-release", FILE)?;
    stage.link("etc/os-release", "../usr/lib/os-release")?;
    stage.folder("tmp", 0o1777)?;
    stage.folder("root", 0o700)
}

fn weir(given: &Given, stage: &Stage) -> Result<(), String> {
    stage.copy(&given.binary, "usr/bin/weir", PROGRAM)?;
    stage.link("usr/sbin/nginx", "../bin/weir")?;
    stage.copy_tracked(&given.root, "package/image/root", "")?;
    // The script for IPv6 changes the default server only while it is as the image brought it.
    stage.copy(
        &given.root.join("package/image/nginx/etc/nginx/conf.d/default.conf"),
        "usr/share/weir/default.conf",
        FILE,
    )?;
    stage.copy(&given.root.join("package/copyright"), "usr/share/doc/weir/copyright", FILE)
}

fn nginx(given: &Given, stage: &Stage) -> Result<(), String> {
    stage.copy_tracked(&given.root, "package/image/nginx", "")?;
    stage.copy_tracked(&given.root, "package/lists", "etc/nginx")?;
    for folder in ["etc/nginx/templates", "var/cache/nginx", "var/lib/nginx"] {
        stage.folder(folder, PROGRAM)?;
    }
    stage.link("var/log/nginx/access.log", "/dev/stdout")?;
    stage.link("var/log/nginx/error.log", "/dev/stderr")
}

fn config(given: &Given, layers: &[Layer]) -> Result<Value, String> {
    let date = output(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ", "-d"]).arg(format!("@{}", given.epoch)))?;
    let ids: Vec<&String> = layers.iter().map(|layer| &layer.id).collect();
    let step = |name: &str| json!({"created": date.trim(), "created_by": format!("cargo xtask package: {name}")});
    Ok(json!({
        "created": date.trim(), "architecture": "amd64", "os": "linux",
        "config": {
            "User": USER.to_string(), "ExposedPorts": {"8080/tcp": {}}, "StopSignal": "SIGQUIT",
            "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", format!("WEIR_VERSION={}", given.version)],
            "Entrypoint": ["/docker-entrypoint.sh"], "Cmd": ["nginx", "-g", "daemon off;"],
            "Labels": {"org.opencontainers.image.title": "weir", "org.opencontainers.image.version": given.version,
                       "org.opencontainers.image.licenses": "MIT OR Apache-2.0"},
        },
        "rootfs": {"type": "layers", "diff_ids": ids},
        "history": [step("glibc and busybox"), step("weir"), step("configuration")],
    }))
}

/// Writes a blob, and describes it as a manifest does.
fn put(layout: &Stage, kind: &str, bytes: &[u8]) -> Result<Value, String> {
    layout.write("blob", FILE, bytes)?;
    let digest = sha256(&layout.top.join("blob"))?;
    layout.folder("blobs/sha256", PROGRAM)?;
    let (from, to) = (layout.top.join("blob"), layout.top.join("blobs/sha256").join(&digest));
    fs::rename(&from, &to).map_err(|error| told(&to, &error))?;
    Ok(json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": bytes.len()}))
}

fn put_json(layout: &Stage, kind: &str, value: &Value) -> Result<Value, String> {
    put(layout, kind, value.to_string().as_bytes())
}

/// Says which packages of this machine are in the image.
pub fn origin() -> Result<String, String> {
    let list =
        output(Command::new("dpkg-query").args(["--show", "--showformat", "${Package} ${Version}, "]).args(PACKAGES))?;
    let system = read(Path::new("/etc/debian_version"))?;
    Ok(format!("the image has, from this Debian {}: {}", system.trim(), list.trim_end_matches(", ")))
}
