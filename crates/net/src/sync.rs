//! The types that threads share in the mailbox and in a reply; a test puts loom's in their place.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
