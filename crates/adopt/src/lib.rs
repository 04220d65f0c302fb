//! `adopt`: looks at the nginx that runs here, and shows how weir would serve the same configuration.
//!
//! ```text
//!   /proc, nginx -V, -T, systemctl ─► host ─┐
//!   files ─► load::load ────────────────────┼─► page: refusals, differences, commands
//!   access logs ─► urls ─► plan ─► send ────┘
//!                    weir beside ─┘ └─► compare
//! ```
//! For an nginx in a container, `elsewhere` starts all of this again inside of it.
//!
//! Not here: the switch itself. The page prints the commands, and the user runs them.
//!
//! Invariants: nothing of nginx's changes. weir beside nginx listens on loopback ports that the kernel chooses, and
//! writes only below its own temporary directory. Requests are GET and HEAD; their number and their rate have bounds.
#![forbid(unsafe_code)]

pub mod beside;
pub mod compare;
pub mod doors;
pub mod elsewhere;
pub mod host;
mod nginx;
pub mod page;
mod plan;
mod run;
mod send;
mod switch;
mod tail;
mod urls;

pub use run::{Asked, Wish, container, run};
