//! Configurations that a lab writes itself: a file beside the one they are made of, gone again when it is done.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_conf::{Tree, lay_out};
use weir_lab::ask::Side;

/// A draft as one file beside the configuration, where relative paths mean the same; gone again with this.
pub(super) struct Sheet {
    /// The draft, served by what serves the configuration.
    pub side: Side,
}

impl Sheet {
    /// Writes it.
    pub fn write(beginning: &Side, tree: Tree) -> Result<Sheet, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = beginning.file.with_file_name(format!(".weir-lab-{}-{number}.conf", std::process::id()));
        fs::write(&file, lay_out(&tree.root)).map_err(|error| {
            format!(
                "{}: {error}; drafts stand beside the configuration, so that its paths lead where they did",
                file.display()
            )
        })?;
        Ok(Sheet { side: Side { file, tree, edge: beginning.edge.clone() } })
    }
}

impl Drop for Sheet {
    fn drop(&mut self) {
        // Whoever removed it already did what is wanted.
        let _ = fs::remove_file(&self.side.file);
    }
}
