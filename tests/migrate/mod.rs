//! Migrations: fresh, again, at once, with few privileges, over what does not fit; by hand through the script.

mod blank;
mod fresh;

use blank::blank;
