//! `load`: see ARCHITECTURE.md.
