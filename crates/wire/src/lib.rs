//! `wire`: see ARCHITECTURE.md.
