//! A place whose exchanges are recorded.

use std::sync::Arc;

use weir_http::text::template::Template;

use super::Recorder;
use super::options::RecordOptions;

/// A place with `record`.
pub struct RecordPlace {
    /// The recorder of the file.
    pub recorder: Arc<Recorder>,
    /// `client=`: what tells clients apart; `None` for the address.
    pub client: Option<Template>,
    /// The options of the file.
    pub options: Arc<RecordOptions>,
}
