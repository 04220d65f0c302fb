//! `edge`: see ARCHITECTURE.md.
