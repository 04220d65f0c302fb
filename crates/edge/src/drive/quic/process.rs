//! This process among those that serve the same addresses of QUIC, one after another.

use std::fmt;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use weir_quic::keys;

/// The secret of configurations that name none.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostKey(String);

impl HostKey {
    /// A random one; empty, which serves no client, if the machine has no random bytes.
    pub fn random() -> HostKey {
        let bytes = keys::random_host_key();
        HostKey(bytes.iter().flatten().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The one that another process has written; `None` for other texts.
    pub fn from_text(text: &str) -> Option<HostKey> {
        let is_key = text.len() == 2 * keys::HOST_KEY_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_key.then(|| HostKey(text.to_owned()))
    }

    /// Its text.
    pub fn as_text(&self) -> &str {
        &self.0
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostKey")
    }
}

/// One of these processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuicProcess {
    /// The secret that all of them have.
    pub host_key: HostKey,
    /// Its number in connection ids: those that live have different ones.
    pub number: u16,
}

static THIS: OnceLock<QuicProcess> = OnceLock::new();

/// Makes this process one of several. It has no effect once [`this`] was called.
pub fn join(process: QuicProcess) {
    let _ = THIS.set(process);
}

/// This process; without [`join`], it is alone.
pub fn this() -> &'static QuicProcess {
    THIS.get_or_init(|| QuicProcess { host_key: HostKey::random(), number: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_as_it_was_written_and_shows_itself_to_nobody() {
        let key = HostKey::random();
        assert_eq!(HostKey::from_text(key.as_text()), Some(key.clone()));
        assert_ne!(HostKey::random(), key);
        assert!(!format!("{key:?}").contains(&key.as_text()[..4]));
        for text in ["", "12", &key.as_text()[1..], &format!("{}g", &key.as_text()[1..])] {
            assert_eq!(HostKey::from_text(text), None);
        }
    }
}
