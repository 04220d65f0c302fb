//! Reads statements into a `Conf`. Problems are collected, not thrown.
//!
//! - `families`, `macros`: the parts of a family, and the list of all families, which `edge` hands in; macros that declare
//!   a crate's families
//! - `contexts`, `directive`, `known`, `authority`: where a directive may be, and with how many arguments; how a statement
//!   finds its directive; readers of hosts and ports
//! - `build/`, `compile`: the blocks; blocks become flat arenas of servers and locations
//! - `listens`, `found`, `media_types`: the `listen` statements of all servers become sockets; the server of a connection;
//!   types of files
//! - `nginx_only/`: the directives that weir does not have, each with an alternative

pub mod authority;
pub mod build;
pub mod compile;
pub mod contexts;
pub mod directive;
pub mod families;
pub mod found;
pub mod known;
pub mod listens;
mod macros;
pub mod media_types;
pub mod nginx_only;
