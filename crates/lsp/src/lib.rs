//! `lsp`: a language server for nginx.conf, for editors.
//!
//! ```text
//!  client ──stdin──► reader thread ──Inbox──► worker: LspSession ──Outbox──stdout──► client
//!                                              │ documents over files (WorkspaceFiles)
//!                                              ▼
//!                                    Config { tree } ─► check, actions, features
//! ```
//! The crate starts no process, opens no socket, looks up no name, and writes no file. It reads only configuration files
//! inside the folders of the workspace.
//!
//! Invariants: no bytes of a client and no file of a workspace can make the server panic, wait for ever or use memory without a
//! bound; every refusal has a name. A feature is a pure function of a tree and an offset.
//!
//! - `serve`, `inbox`, `frame`, `rpc`: the loop of the worker; the queue between reader and worker; messages in bytes;
//!   JSON-RPC
//! - `session`, `requests`: the state of one client and its notifications; the answers of requests
//! - `settings`, `client`: the wishes of the user; the abilities of the client
//! - `document`, `uri`: the text of an open file; names of files
//! - `workspace`, `files`, `scan`: open documents over the disk; the files that are read; the search for main files
//! - `config`, `part`, `template`: the configuration that a document belongs to; a file that is a part; placeholders
//! - `check`, `publish`, `actions`, `changes`: diagnostics and who gets them; code actions; new bytes of files as edits
//! - `answer`: the JSON of the features
//! - `look`, `place`, `under`, `inside`: the configuration of a request; bytes of its files; the statement and the blocks
//!   at an offset, also of half-written text; the directives that a block may hold
//! - `names`, `mentions`, `variables`: which argument has a name of which kind; all places of names in a tree; the
//!   variables that every configuration has
//! - `arguments`: the words that directives take (`arguments.txt`)
//! - `hover/`, `value`, `complete/`, `find`, `outline`, `layout/`: the features; times and sizes in words
//! - `korean`, `meanings`, `blocks`: the Korean of the tables' sentences (`directives.ko.txt`); a sentence for each
//!   variable (`variables.txt`) and for each directive that weir lacks (`nginx_only.txt`); the form of these files
//! - `texts`: the texts
//! - `tests/`, `trial/`: the features on files and on random edits; tests that play a client against a session
#![forbid(unsafe_code)]

mod actions;
mod answer;
pub mod arguments;
mod blocks;
mod changes;
mod check;
mod client;
pub mod complete;
mod config;
mod document;
mod files;
pub mod find;
mod frame;
pub mod hover;
mod inbox;
pub mod inside;
pub mod korean;
pub mod layout;
pub mod look;
pub mod meanings;
pub mod mentions;
pub mod names;
pub mod outline;
mod part;
pub mod place;
mod publish;
mod requests;
mod rpc;
mod scan;
mod serve;
mod session;
mod settings;
mod template;
#[cfg(test)]
mod tests;
mod texts;
#[cfg(test)]
mod trial;
pub mod under;
mod uri;
pub mod value;
pub mod variables;
mod workspace;

pub use serve::serve;
pub use settings::{LspWish, TargetWish};
