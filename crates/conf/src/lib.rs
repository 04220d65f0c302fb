//! `conf`: nginx.conf text to a tree with spans, and back.
//!
//! ```text
//!   Files --load--> Tree { files, root } --print / crossplane--> text, JSON
//!                     \--> Problems --render--> nginx's line, excerpt, remedy
//! ```
//! Not here: the meaning of directives, their allowed blocks, their number of arguments. A *statement* is written, a
//! *directive* is defined (crate `edge`). This crate opens no file either: bytes come through [`Files`].
//!
//! Invariants: parsing never fails and never panics; it returns everything that could be read, and every problem.
//! Printing loses no byte of a source.
//!
//! - `lex`, `parse`, `tree`: bytes to words, words to statements and blocks
//! - `pieces`: words, ends and comments without a tree, for half-written text and for layout
//! - `include`, `glob`, `memory`: a configuration and the files that it names; files in memory, for tests and for the
//!   lab
//! - `print`, `crossplane`, `edit`: back to text, to crossplane's JSON, and a change in place
//! - `problem`, `lines`: a problem with its place and remedy; lines and columns of bytes, and back
//! - `log_format/`: reads the lines of an access log back
#![forbid(unsafe_code)]

mod crossplane;
pub mod edit;
pub mod glob;
mod include;
mod lex;
mod lines;
pub mod log_format;
mod memory;
mod parse;
mod pieces;
mod print;
mod problem;
mod tree;

pub use crossplane::{crossplane, crossplane_with_comments};
pub use include::{
    FILES_MAX, Files, INCLUDE_DEPTH_MAX, LoadBounds, PARSED_BYTES_MAX, STATEMENTS_MAX, load, load_with_globals,
    load_within,
};
pub use lex::{PARAMETER_BYTES_MAX, PROBLEMS_MAX, decode};
pub use lines::{ColumnUnit, LineEnd, LineTable, TextPosition, TextRegion, TreeLines};
pub use memory::MemoryFiles;
pub use parse::{BLOCK_DEPTH_MAX, Parsed, parse};
pub use pieces::{PieceKind, TextPiece, TextPieces, pieces};
pub use print::{lay_out, print, quote};
pub use problem::{Level, Problem, did_you_mean, places, render, sort_as_read};
pub use tree::{At, Comment, Include, Source, Span, Statement, Tree, Word};
