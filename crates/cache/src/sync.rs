//! The types of a flight that a test replaces: those that threads share by loom's, and the time limit by one that never
//! passes.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use weir_net::Deadline;
