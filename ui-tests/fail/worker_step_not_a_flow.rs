#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Package;

fn main() {
    let _ = StepWorker::<Package>::all();
}
