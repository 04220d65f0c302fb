//! What every end-to-end test needs: which binary stands in front, and ports that are its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};

/// Ports given to tests: below Linux's ephemeral range, so that no outgoing connection takes one.
const PORT_FIRST: u16 = 20_000;
const PORT_COUNT: u16 = 12_000;

/// How far this process has gone through its ports.
static PORTS_TAKEN: AtomicU16 = AtomicU16::new(0);

/// The server under test, by a path whose last part is `nginx`: weir decides by its own name what it is.
///
/// `WEIR_VTC_BINARY` names another than the weir of this build; `scratch` takes the link to that one.
pub fn binary(scratch: &Path) -> PathBuf {
    std::env::var_os("WEIR_VTC_BINARY").map_or_else(
        || {
            let link = scratch.join("nginx");
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_weir"), &link)
                .expect("link to the binary");
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

/// A loopback port that nobody listens on and that no other test of this process was given.
pub fn free_port() -> u16 {
    // Processes start at different places, so that two of them seldom ask for the same port.
    let start = (std::process::id() % u32::from(PORT_COUNT)) as u16;
    for _ in 0..PORT_COUNT {
        let step = PORTS_TAKEN.fetch_add(1, Ordering::Relaxed) % PORT_COUNT;
        let port = PORT_FIRST + (start + step) % PORT_COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port in {PORT_FIRST}..{}", PORT_FIRST + PORT_COUNT);
}
