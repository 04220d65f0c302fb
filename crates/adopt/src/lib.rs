//! `adopt`: looks at the nginx that runs here, and shows how weir would serve the same configuration.
//!
//! ```text
//!   /proc, nginx -V, -T, systemctl ─► host ─┐
//!   files ─► load::load ────────────────────┼─► page: refusals, differences, commands
//!   access logs, weir beside nginx ─► swap ─┘
//! ```
//! For an nginx in a container, `elsewhere` starts all of this again inside of it.
//!
//! Not here: the switch itself. The page prints the commands, and the user runs them.
//!
//! Invariants: nothing of nginx's changes. weir beside nginx listens on loopback ports that the kernel chooses, and
//! writes only below its own temporary directory. Requests are GET and HEAD; their number and their rate have bounds.
//!
//! - `host`, `nginx`: the master processes in `/proc`; their `-V` and `-T`, their systemd unit, their files
//! - `run`, `page`, `switch`: the whole; its page and its JSON; the commands for the switch and for the way back
#![forbid(unsafe_code)]

pub mod elsewhere;
pub mod host;
mod nginx;
pub mod page;
mod run;
mod switch;

pub use run::{Wish, container, run};
