//! `conf`: see ARCHITECTURE.md.
