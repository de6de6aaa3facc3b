//! Programs as users of earlier releases wrote them: they compile and run unchanged. Never edit
//! them to make them fit.

mod plain_flow;
