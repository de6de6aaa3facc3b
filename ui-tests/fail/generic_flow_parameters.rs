#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

mod lifetime {
    use super::*;

    pub struct CrateAudit<'a>(&'a str);

    #[flow(input = Lockfile)]
    impl<'a> CrateAudit<'a> {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

mod constant {
    use super::*;

    pub struct CrateAudit<const N: usize>;

    #[flow(input = Lockfile)]
    impl<const N: usize> CrateAudit<N> {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<[Package; N]> { unreachable!() }
    }
}

mod argument {
    use super::*;

    pub struct CrateAudit<T>(T);

    #[flow(input = Lockfile)]
    impl CrateAudit<u8> {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

mod where_clause {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile)]
    impl CrateAudit where Self: Sized {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

fn main() {
    let _ = [lifetime::Step::Parse.slug(), constant::Step::Parse.slug()];
}
