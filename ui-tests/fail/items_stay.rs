//! One mistake in each module; whatever it is, the items of the `impl` can be used, and so can the steps' names.
#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

mod bad_argument {
    use super::*;

    pub struct Audit;

    #[flow(input = Lockfile, timout = "3s")]
    impl Audit {
        pub const LIMIT: usize = 10;
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
        fn helper() -> usize { Self::LIMIT }
    }

    async fn elsewhere(input: &Lockfile, out: AuditOutput) -> Package {
        let _ = (Audit::helper(), Step::Parse, Audit::parse(input).await);
        let _ = FlowWorker::<Audit>::new();
        out.parse
    }
}

mod unknown_dependency {
    use super::*;

    pub struct Audit;

    #[flow(input = Lockfile)]
    impl Audit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
        #[step(depends_on = [nobody])]
        async fn report(nobody: Package) -> StepResult<Report> { unreachable!() }
        fn helper() {}
    }

    async fn elsewhere(input: &Lockfile, out: AuditOutput) -> (Package, Report) {
        let _ = (Audit::helper(), Step::Parse, Audit::parse(input).await);
        let _ = FlowWorker::<Audit>::new();
        (out.parse, out.report)
    }
}

mod not_async {
    use super::*;

    pub struct Audit;

    #[flow(input = Lockfile)]
    impl Audit {
        #[step]
        fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
        fn helper() {}
    }

    fn elsewhere(input: &Lockfile, out: AuditOutput) -> Package {
        let _ = (Audit::helper(), Step::Parse, Audit::parse(input));
        let _ = FlowWorker::<Audit>::new();
        out.parse
    }
}

mod no_input {
    use super::*;

    pub struct Audit;

    #[flow()]
    impl Audit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
        fn helper() {}
    }

    async fn elsewhere(input: &Lockfile, out: AuditOutput) -> Package {
        let _ = (Audit::helper(), Step::Parse, Audit::parse(input).await);
        let _ = FlowWorker::<Audit>::new();
        out.parse
    }
}

mod generic {
    use super::*;

    pub struct Audit<T>(T);

    #[flow(input = Lockfile)]
    impl<T> Audit<T> {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
        fn helper() {}
    }

    async fn elsewhere(input: &Lockfile) {
        let _ = (Audit::<u8>::helper(), Step::Parse, Audit::<u8>::parse(input).await);
    }
}

mod of_a_trait {
    use super::*;

    pub struct Audit;

    trait Steps {
        async fn parse(input: &Lockfile) -> StepResult<Package>;
    }

    #[flow(input = Lockfile)]
    impl Steps for Audit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
    }

    async fn elsewhere(input: &Lockfile) {
        let _ = Audit::parse(input).await;
    }
}

mod not_a_function {
    use super::*;

    pub struct Audit;

    #[flow(input = Lockfile)]
    impl Audit {
        #[step]
        const LIMIT: usize = 3;
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
        fn helper() {}
    }

    async fn elsewhere(input: &Lockfile, out: AuditOutput) -> Package {
        let _ = (Audit::helper(), Audit::LIMIT, Step::Parse, Audit::parse(input).await);
        let _ = FlowWorker::<Audit>::new();
        out.parse
    }
}

fn main() {}
