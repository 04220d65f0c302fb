//! Texts and the values that they mean. Nothing here knows a configuration, an exchange or a worker.
//!
//! - `refusal`, `value`, `cidr`, `base64`: a problem with its place; readers of numbers, sizes, times and addresses
//! - `template`, `slots`, `regex`: texts with `$names`; the values that an exchange keeps for variables; PCRE2
//! - `texts`: how the error log names a status and an error

pub mod base64;
pub mod cidr;
pub mod refusal;
pub mod regex;
pub mod slots;
pub mod template;
pub mod texts;
pub mod value;
