//! `meter`: see ARCHITECTURE.md.
