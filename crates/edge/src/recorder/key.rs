//! The key of a recorder: it hashes secrets and clients, so that nobody without it can guess them.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use weir_net::log::Os;
use weir_net::process::Identity;
use weir_net::{opening, path, random};

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// The key. A file has it as hexadecimal digits in one line.
#[derive(Clone, PartialEq, Eq)]
pub struct RecordKey(pub [u8; KEY_BYTES]);

/// A key that nobody knows.
///
/// # Errors
/// The system provides no randomness.
pub fn make() -> Result<RecordKey, String> {
    random::bytes().map(RecordKey).map_err(|error| format!("no random key {}", Os(&error)))
}

/// The key in a file.
///
/// # Errors
/// The file cannot be read, or has no key.
pub fn read(name: &str) -> Result<RecordKey, String> {
    let text = opening::read(name.as_bytes(), FILE_BYTES_MAX)
        .map_err(|error| format!("open() \"{name}\" failed {}", Os(&error)))?;
    of_text(text.trim_ascii()).ok_or_else(|| {
        format!(
            "\"{name}\" has no key of 32 hexadecimal digits: make one with openssl rand -hex 16, or remove the file"
        )
    })
}

/// Makes the file with a new key unless it is there, and gives it to the user of the server. A file of another kind keeps its
/// owner.
///
/// # Errors
/// The file cannot be made, or has no key.
pub fn prepare(name: &str, identity: Option<&Identity>) -> Result<(), String> {
    let failed = |error: io::Error| format!("open() \"{name}\" failed {}", Os(&error));
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(name) {
        Ok(mut file) => {
            let text = make()?.to_text();
            file.write_all(text.as_bytes()).map_err(failed)?;
        }
        // A name that is wrong must not give somebody else's file away.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read(name)?;
        }
        Err(error) => return Err(failed(error)),
    }
    match identity {
        Some(identity) => path::give(Path::new(name), identity.uid).map_err(failed),
        None => Ok(()),
    }
}

/// The largest file of a key: its digits and white space.
const FILE_BYTES_MAX: u64 = 256;

fn of_text(text: &[u8]) -> Option<RecordKey> {
    if text.len() != 2 * KEY_BYTES {
        return None;
    }
    let mut key = [0; KEY_BYTES];
    for (byte, pair) in key.iter_mut().zip(text.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?.trim_start_matches('+'), 16).ok()?;
    }
    Some(RecordKey(key))
}

impl RecordKey {
    fn to_text(&self) -> String {
        let mut text: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_read_again() {
        let path = std::env::temp_dir().join(format!("weir-record-key-{}", std::process::id()));
        let name = path.to_str().unwrap();
        prepare(name, None).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let key = read(name).unwrap();
        prepare(name, None).unwrap();
        assert!(read(name).unwrap() == key && make().unwrap() != key);
        std::fs::write(&path, "short").unwrap();
        for refused in [read(name).map(drop), prepare(name, None)] {
            assert!(refused.err().unwrap().contains("has no key of 32 hexadecimal digits"));
        }
        std::fs::remove_file(&path).unwrap();
        assert!(read(name).err().unwrap().contains("(2: No such file or directory)"));
    }
}
