//! Sends an answer.
//!
//! - `respond/`, `head_out`, `framed`: decides what goes out; the head; HTTP/2's frames
//! - `filtering`, `altered`: passes a body through filters; takes back what a head says about a changed body
//! - `kept`: stored answers
//! - `composed/`: bodies that contain the answers of subrequests, in order
//! - `writing`, `pace`: the few ways to send bytes; rates

pub mod altered;
mod composed;
pub mod filtering;
pub mod framed;
pub mod head_out;
pub mod kept;
pub mod pace;
pub mod respond;
pub mod writing;
