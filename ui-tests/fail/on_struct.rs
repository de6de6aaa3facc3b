#![allow(unused)]

use pgflow::prelude::*;

pub struct CrateAudit;

fn main() {}
