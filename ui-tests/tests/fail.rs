//! Compiles each case of `fail/` and compares what the compiler says.
//!
//! `TRYBUILD=overwrite cargo test -p pgflow-ui-tests --test fail` writes what it says now; read
//! each difference before you keep it.

#[test]
fn fail() {
    trybuild::TestCases::new().compile_fail("fail/*.rs");
}
