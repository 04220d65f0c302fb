//! Certificates that weir gets from authorities by itself (ACME).
//!
//! ```text
//!  family::acme (the file) ─► Agent: a thread of its own ─ tend (weir_acme) ─► authority
//!       cells ◄─ certificate ─┘     │ shows
//!        │ every handshake          ▼
//!        ▼                      Challenges ◄─ the authority looks, through any worker
//! ```
//!
//! The thread reads and writes the files below `state_path` and asks the authorities. Invariants: no worker waits for the
//! thread or for an authority; a certificate is in force for all workers at once, without a reload; a file is replaced
//! whole or not at all.

pub mod agent;
pub mod cell;
pub mod challenges;
mod outside;
pub mod publish;
pub mod responder;
pub mod share;
pub mod state;
mod together;
pub mod work;

pub use agent::Agent;
pub use cell::{Cell, Held, WantedCertificate};
pub use challenges::{Challenges, Unregistered};
pub use publish::Publisher;
pub use share::AcmeShare;
pub use work::{AccountKeySource, KeptWork, Work};
