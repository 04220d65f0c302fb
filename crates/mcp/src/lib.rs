//! `mcp`: weir's questions as tools of the Model Context Protocol, over standard input and output.
//!
//! ```text
//!   client ── a line of JSON ──► serve ──► a thread for each call
//!                                            │ 1. weir mcp call   reads files within bounds: an answer, or the words of a verb
//!                                            │ 2. weir mcp run    that verb: the lab, weir why, weir status
//!          ◄── a line of JSON ── answer ◄────┘ 3. its JSON becomes the answer of the tool
//! ```
//!
//! Each call is done by children of this process, for four reasons. A child can be ended at any moment, and with it everything
//! that it started, so a cancelled call leaves nothing. A child that reads files gives up the rest of the file system (Landlock).
//! A file that needs too much time or memory ends a child and not the server. And the verbs of the lab print to a terminal, catch
//! signals and raise limits of their process.
//!
//! Step 3 reads no file of the user again: step 1 gives the lab private copies of the bytes that it has checked (`tool/copies`).
//!
//! Invariants: this crate writes no file of the user. No argument of a tool is a command line, a flag or a host; the person who
//! starts the server names these. A text that comes from a file, a log or an answer stands only in members with the name `data`,
//! without control characters, and cut ([`clean`]). A child ends when its standard input closes.
//!
//! - `serve`, `message`, `era`: the loop; JSON-RPC messages within bounds; the versions of the protocol
//! - `settings`: the choices of the person who starts the server
//! - `tools`, `input`: the table of tools; their arguments, as a JSON schema and as a check
//! - `child`, `call`: starts, watches and ends a child; the work of a child that reads files
//! - `guard`: the files that a tool may read
//! - `answer`, `clean`: the shape of all answers, as JSON, as text and as a schema; text of others made harmless
//! - `tool/`: a file for each tool: reads, or chooses the words of a verb, and makes the answer
//! - `texts`: every sentence, in English and in Korean
#![forbid(unsafe_code)]

pub mod answer;
pub mod call;
mod child;
pub mod clean;
mod era;
pub mod guard;
pub mod input;
mod message;
mod serve;
pub mod settings;
pub mod texts;
mod tool;
pub mod tools;

pub use serve::serve;
pub use settings::ServerSettings;
