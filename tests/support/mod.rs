//! Helpers for every end-to-end test: the binary under test, and ports that no other test has.

use std::fs::File;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// First port for tests, here and in tests/ports.py: below Linux's ephemeral range, so that no outgoing connection takes one.
const PORT_FIRST: u16 = 20_000;
/// Ports of one process: more than its scripts need, so that no port is given twice.
const BLOCK_PORTS: u16 = 600;
/// Number of processes that can run tests at the same time.
const BLOCKS: u16 = 20;

/// This process's block, after its first request for a port.
static BLOCK: OnceLock<Block> = OnceLock::new();
/// Number of ports of the block that are given already.
static PORTS_TAKEN: AtomicU16 = AtomicU16::new(0);

/// The server under test, by a path whose last part is `nginx`: weir's behaviour depends on its own name.
///
/// `WEIR_VTC_BINARY` names another binary than this build's weir; the link to it is made in `scratch`.
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

/// A folder for this process's files, without the files of an earlier process with the same id.
pub fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("weir-{name}.{}", std::process::id()));
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).expect("scratch folder");
    folder
}

/// A self-signed certificate for `localhost`, and its key: PEM files in a folder.
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

/// Timeout of a test: far longer than anything takes.
#[allow(dead_code)]
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until the condition is true.
#[allow(dead_code, clippy::disallowed_methods)]
pub fn within(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A loopback port on which no process listens, and that no other test in any process got.
pub fn free_port() -> u16 {
    let first = BLOCK.get_or_init(claim_block).first_port;
    for _ in 0..BLOCK_PORTS {
        let port = first + PORTS_TAKEN.fetch_add(1, Ordering::Relaxed) % BLOCK_PORTS;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() && UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port in {first}..{}", first + BLOCK_PORTS);
}

/// Test processes run at the same time, so each takes a block of ports, held by a lock that ends with the process.
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
