//! (module docs)

#[doc(hidden)]
pub mod __private;
