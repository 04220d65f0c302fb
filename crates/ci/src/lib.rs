//! `ci`: two revisions of a repository for one comparison, and verdicts in the forms that pipelines read.
//!
//! ```text
//!   git revisions ─► checkout ─► build ─► weir_lab::ab ─► judge ─► report ─► text, Markdown, JUnit, JSON
//!   files ─► weir_doctor, problems of `edge -t` ─► findings ─► SARIF, JUnit, Markdown, JSON
//! ```
//! Not here: the measurement (crate `lab`), rules about configurations (`doctor`), flags (the program).
//!
//! Invariants: the user's working tree and repository never change. The texts of a revision (its subject, its names,
//! its configuration) is text of strangers: it is cut and escaped, and never becomes markup. Whatever is claimed has its
//! interval, and a run that could not see a difference says how large one it could have seen.
//!
//! - `revision`, `checkout`, `build`: what a name of a revision means; revisions as directories, which end with the run; the
//!   user's build command
//! - `plan`: blocks and pairs that a budget has time for; pure
//! - `judge`, `noise`: one outcome from all figures, and its exit code; what disturbed the run; pure
//! - `report/`: a comparison as text, Markdown and JSON (`table`)
//! - `finding`, `check`: findings of files, the ones that a revision brought, and their report
//! - `sarif`, `junit`, `escape`: the forms of others, and texts of strangers in them; pure
//! - `texts`: every sentence, in English and Korean
#![forbid(unsafe_code)]

pub mod build;
pub mod check;
pub mod checkout;
pub mod escape;
pub mod finding;
pub mod judge;
pub mod junit;
pub mod noise;
pub mod plan;
pub mod report;
pub mod revision;
pub mod sarif;
pub mod texts;
