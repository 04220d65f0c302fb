//! Configurations that a lab writes itself: a file beside the original configuration, removed when the lab is done.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_conf::{Tree, lay_out};
use weir_lab::ask::Side;
use weir_lab::texts;
use weir_words::{Said, say};

/// A draft in a file beside the configuration, so that relative paths keep their meaning. Removed when dropped.
pub(super) struct Sheet {
    /// The draft, with the program that serves the configuration.
    pub side: Side,
}

impl Sheet {
    /// Writes the file.
    pub fn write(beginning: &Side, tree: Tree) -> Result<Sheet, Said> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = beginning.file.with_file_name(format!(".weir-lab-{}-{number}.conf", std::process::id()));
        fs::write(&file, lay_out(&tree.root))
            .map_err(|error| say!(texts::ERR_SHEET, file.display().to_string(), error.to_string()))?;
        Ok(Sheet { side: Side { file, tree, ..beginning.clone() } })
    }
}

impl Drop for Sheet {
    fn drop(&mut self) {
        // It does not matter if the file is already gone.
        let _ = fs::remove_file(&self.side.file);
    }
}
