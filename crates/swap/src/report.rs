//! The result of a swap, and its forms: `model`, text, JSON, a page.

mod html;
mod json;
mod model;
mod text;

pub use html::html;
pub use json::json;
pub use model::{ReportedDifference, SwapReport, gathered};
pub use text::text;
