//! The settings of a zone: its identity, and the values that a reload may change.

use std::time::Duration;

use super::directory::Directory;

/// The identity of a zone: two configurations with equal settings share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `keys_zone`'s name.
    pub name: String,
    /// Bytes of keys and nodes: `keys_zone`'s size.
    pub keys_bytes: u64,
    /// Bytes of objects in memory.
    pub memory_bytes: u64,
    /// The place of the files; `None` for a zone in memory only.
    pub directory: Option<Directory>,
}

/// The settings that may change at a reload while the zone exists. The defaults are nginx's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// An object without a request for this time is removed.
    pub inactive: Duration,
    /// The most bytes on disk.
    pub max_size: Option<u64>,
    /// Bytes that must stay free on the disk.
    pub min_free: Option<u64>,
    /// The most files removed in one slice.
    pub manager_files: u32,
    /// The pause between slices.
    pub manager_sleep: Duration,
    /// The longest duration of a slice.
    pub manager_threshold: Duration,
    /// The most files read in one slice.
    pub loader_files: u32,
    /// The pause between slices.
    pub loader_sleep: Duration,
    /// The longest duration of a slice.
    pub loader_threshold: Duration,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            inactive: Duration::from_secs(600),
            max_size: None,
            min_free: None,
            manager_files: 100,
            manager_sleep: Duration::from_millis(50),
            manager_threshold: Duration::from_millis(200),
            loader_files: 100,
            loader_sleep: Duration::from_millis(50),
            loader_threshold: Duration::from_millis(200),
        }
    }
}
