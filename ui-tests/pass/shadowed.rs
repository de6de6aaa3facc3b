//! Flows among names that generated code must not take for its own.
#![deny(warnings)]

/// A module in which names of the language and its library mean something else.
mod shadows {
    #![allow(dead_code, non_camel_case_types, unused_macros)]

    use ::pgflow::{Flow as _, StepId as _, StepResult, flow};
    use ::pgflow_ui_tests::{Lockfile, Package, Report};

    mod alloc {}
    mod clippy {}
    mod core {}
    mod diagnostic {}
    mod pgflow {}
    mod rustfmt {}
    mod serde {}
    mod std {}
    // Called as the steps are.
    mod parse {
        #[derive(Clone, Copy, ::serde::Serialize, ::serde::Deserialize)]
        pub(super) struct Inspection;
    }
    mod report {}
    const fn inspect() -> usize {
        1
    }

    trait Clone {}
    trait Copy {}
    trait Debug {}
    trait Display {}
    trait Eq {}
    trait Flow {}
    trait From {}
    trait Future {}
    trait Into {}
    trait IntoIterator {}
    trait Ord {}
    trait PartialEq {}
    trait Send {}
    trait Sized {}
    trait StepId {}
    trait Sync {}
    struct Box;
    struct Err;
    struct Formatter;
    struct None;
    struct Ok;
    struct Option;
    struct Pin;
    struct Some;
    struct String;
    struct Task;
    struct Vec;
    struct bool;
    struct str;
    struct u32;

    macro_rules! refuse {
        ($($name:ident)*) => {$(
            macro_rules! $name {
                () => {
                    ::core::compile_error!("a macro of the module is called")
                };
            }
        )*};
    }
    refuse!(assert concat format matches panic todo unreachable vec write);

    pub(super) struct Audit;

    #[flow(input = Lockfile)]
    impl Audit {
        #[step(timeout = "5m")]
        async fn parse(_input: &Lockfile) -> StepResult<::std::vec::Vec<Package>> {
            ::core::result::Result::Ok(::std::vec::Vec::new())
        }

        #[step(map = parse, when_exhausted = "skip")]
        async fn inspect(_item: Package, _input: &Lockfile) -> StepResult<parse::Inspection> {
            ::core::result::Result::Ok(parse::Inspection)
        }

        #[step(depends_on = [inspect])]
        async fn sizes(
            #[from(inspect)] list: ::core::option::Option<&[parse::Inspection]>,
        ) -> StepResult<[usize; inspect()]> {
            ::core::result::Result::Ok([list.unwrap_or_default().len()])
        }

        #[step(depends_on = [inspect, sizes], if_not = { sizes: [0] })]
        async fn report(
            _inspect: ::core::option::Option<::std::vec::Vec<parse::Inspection>>,
            _sizes: [usize; inspect()],
        ) -> StepResult<Report> {
            ::core::result::Result::Ok(Report)
        }
    }

    #[test]
    fn the_flow_is_what_it_says() {
        let slugs = ["parse", "inspect", "sizes", "report"];
        ::core::assert!(Step::ALL.iter().map(|step| step.slug()).eq(slugs));
        ::core::assert_eq!(Audit::DEFINITION.steps.len(), 4);
    }
}

/// A module without the names of any prelude.
mod bare {
    #![no_implicit_prelude]

    use ::pgflow::{Flow as _, StepResult, flow};
    use ::pgflow_ui_tests::{Lockfile, Package, Report};

    pub(super) struct Audit;

    #[flow(input = Lockfile, with_step_queues)]
    impl Audit {
        #[step]
        async fn parse(_input: &Lockfile) -> StepResult<::std::vec::Vec<Package>> {
            ::core::result::Result::Ok(::std::vec::Vec::new())
        }

        #[step(map = parse)]
        async fn inspect(_item: Package) -> StepResult<Package> {
            ::core::result::Result::Err(::pgflow::StepError::permanent("no"))
        }

        #[step(depends_on = [inspect], if = { inspect: [] })]
        async fn report(_inspect: &[Package]) -> StepResult<Report> {
            ::core::result::Result::Ok(Report)
        }
    }

    #[::core::prelude::v1::test]
    fn the_flow_is_what_it_says() {
        ::core::assert_eq!(Audit::DEFINITION.steps.len(), 3);
    }
}
