//! Compile-fail and compile-pass cases live in `fail/` and `pass/`; `tests/ui.rs` runs them.
