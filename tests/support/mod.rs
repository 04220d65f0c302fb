//! What every end-to-end test needs: which binary stands in front, and ports that are its own.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Ports given to tests: below Linux's ephemeral range, so that no outgoing connection takes one.
const PORT_FIRST: u16 = 20_000;
/// Ports of one process: more than its scripts ask for, so that none is given twice.
const BLOCK_PORTS: u16 = 600;
/// How many processes can test at once.
const BLOCKS: u16 = 20;

/// This process's block, once it asked for a port.
static BLOCK: OnceLock<Block> = OnceLock::new();
/// How far this process has gone through its block.
static PORTS_TAKEN: AtomicU16 = AtomicU16::new(0);

/// The server under test, by a path whose last part is `nginx`: weir decides by its own name what it is.
///
/// `WEIR_VTC_BINARY` names another than the weir of this build; `scratch` takes the link to that one.
pub fn binary(scratch: &Path) -> PathBuf {
    std::env::var_os("WEIR_VTC_BINARY").map_or_else(
        || {
            let link = scratch.join("nginx");
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_weir"), &link).expect("link to the binary");
            link
        },
        PathBuf::from,
    )
}

/// A folder for this process's files, emptied of what an earlier one of the same id left.
pub fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("weir-{name}.{}", std::process::id()));
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).expect("scratch folder");
    folder
}

/// A certificate of `localhost` that is its own authority, and its key: PEM files in a folder.
#[allow(dead_code)]
pub fn certificate(room: &Path) -> (PathBuf, PathBuf) {
    let (certificate, key) = (room.join("localhost.crt"), room.join("localhost.key"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .expect("openssl runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (certificate, key)
}

/// Patience of a test: far more than anything takes.
#[allow(dead_code)]
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so.
#[allow(dead_code, clippy::disallowed_methods)]
pub fn within(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A loopback port that nobody listens on and that no other test, of this process or another, was given.
pub fn free_port() -> u16 {
    let first = BLOCK.get_or_init(claim_block).first_port;
    for _ in 0..BLOCK_PORTS {
        let port = first + PORTS_TAKEN.fetch_add(1, Ordering::Relaxed) % BLOCK_PORTS;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port in {first}..{}", first + BLOCK_PORTS);
}

/// Test processes run beside each other, so each takes a block of ports, held by a lock that ends with the process.
fn claim_block() -> Block {
    for number in 0..BLOCKS {
        let path = std::env::temp_dir().join(format!("weir-ports.{number}"));
        let lock = File::options().create(true).append(true).open(path).expect("lock file");
        if lock.try_lock().is_ok() {
            return Block { first_port: PORT_FIRST + number * BLOCK_PORTS, _lock: lock };
        }
    }
    panic!("{BLOCKS} other test processes run already");
}

struct Block {
    first_port: u16,
    _lock: File,
}
