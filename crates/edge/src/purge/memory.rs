//! The state of the purge log that an edge keeps over a restart: the last applied entry, and the zones it was applied
//! to.

use std::io;
use std::path::Path;

use serde_json::{Value, json};
use weir_net::whole_file;

use crate::purge::entry::Id;

/// A longer file is not a state file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The content of the state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The last entry applied.
    pub applied: Id,
    /// The zones it was applied to.
    pub zones: Vec<String>,
}

impl Memory {
    /// Reads the file; `None` if there is none, if it belongs to another stream, or if it cannot be read: then the
    /// edge knows nothing, and must act on that.
    pub fn read(path: &Path, stream: &str) -> Option<Memory> {
        let value: Value = serde_json::from_slice(&whole_file::read(path, FILE_BYTES_MAX).ok()?).ok()?;
        if value.get("stream")?.as_str()? != stream {
            return None;
        }
        let applied = Id::parse(value.get("applied")?.as_str()?.as_bytes())?;
        let zones = value.get("zones")?.as_array()?.iter().map(|zone| zone.as_str().map(str::to_owned));
        Some(Memory { applied, zones: zones.collect::<Option<_>>()? })
    }

    /// Writes the file anew: the file is replaced whole or not at all.
    pub fn write(&self, path: &Path, stream: &str) -> io::Result<()> {
        let text = json!({"stream": stream, "applied": self.applied.to_string(), "zones": self.zones});
        whole_file::replace(path, format!("{text}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_written_comes_back_and_nothing_else() {
        let path = std::env::temp_dir().join(format!("weir-memory-{}", std::process::id()));
        assert_eq!(Memory::read(&path, "s"), None);
        let memory = Memory { applied: Id { ms: 7, number: 1 }, zones: vec!["one".to_owned()] };
        memory.write(&path, "s").unwrap();
        assert_eq!(Memory::read(&path, "s"), Some(memory));
        assert_eq!(Memory::read(&path, "other"), None);
        for damaged in ["", "{", r#"{"stream":"s"}"#, r#"{"stream":"s","applied":"x","zones":[]}"#] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(Memory::read(&path, "s"), None, "{damaged}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
