//! Two sessions at once: each test holds one in the middle of its transaction, and lets the other
//! continue.

mod claims;
mod definitions;
mod deletions;
mod failures;
mod fences;
mod heartbeats;
mod load;
mod recompilations;
mod recovery;
mod runs;
mod starts;
mod startups;
mod wakeups;
mod workers;
