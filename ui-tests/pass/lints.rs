//! Flows under lints that can't be allowed again.
#![deny(warnings)]

/// Less visible than the output that holds it.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Secret(bool);

/// A module of a strict program.
mod strict {
    #![forbid(
        clippy::all,
        dead_code,
        deprecated,
        elided_lifetimes_in_paths,
        missing_copy_implementations,
        missing_debug_implementations,
        missing_docs,
        nonstandard_style,
        private_bounds,
        private_interfaces,
        rust_2018_idioms,
        single_use_lifetimes,
        trivial_casts,
        trivial_numeric_casts,
        unreachable_pub,
        unsafe_code,
        unused,
        unused_import_braces,
        unused_lifetimes,
        unused_must_use,
        unused_qualifications,
        unused_results,
        variant_size_differences
    )]

    use pgflow::prelude::*;
    use pgflow_ui_tests::{Inspection, Lockfile, Package};

    use super::Secret;

    /// Its output is never read.
    #[derive(Debug, Clone, Copy)]
    struct Private;

    #[flow(input = Vec<Lockfile>, state = String, output_derive = [Clone])]
    impl Private {
        #[step(map = input)]
        async fn parse(item: Lockfile, state: &String) -> StepResult<Package> {
            let name = format!("{state}{}", item.plan);
            Ok(Package { name })
        }

        #[step(depends_on = [parse], if = { parse: [{ name: "a" }] })]
        async fn inspect(parse: &[Package], ctx: &StepContext) -> anyhow::Result<Inspection> {
            anyhow::ensure!(ctx.attempt() == 1, "again");
            let name = parse.iter().map(|package| package.name.as_str()).collect();
            Ok(Inspection { name })
        }

        #[step(depends_on = [inspect])]
        async fn report(inspect: Option<&Inspection>) -> StepResult<Secret> {
            Ok(Secret(inspect.is_some()))
        }
    }

    #[test]
    fn an_output_shows_what_its_fields_can_show() {
        let output = PrivateOutput {
            report: Secret(true),
        };
        assert_eq!(
            format!("{output:?}"),
            "PrivateOutput { report: Secret(true) }"
        );
        assert!(output.report.0);
        let worker = FlowWorker::<Private>::with_state(String::new());
        assert!(format!("{worker:?}").contains("private"));
    }

    #[test]
    fn steps_have_an_order_and_a_text() {
        assert!(Step::Parse < Step::Report);
        assert_eq!(format!("{:>8}", Step::Inspect), " inspect");
    }
}

/// A flow that a library keeps for itself.
mod kept {
    #![forbid(dead_code, missing_docs, unreachable_pub, unused)]

    use pgflow::prelude::*;
    use pgflow_ui_tests::{Lockfile, Package};

    pub(super) struct Kept;

    #[flow(input = Lockfile, vis = pub(super), step_enum = KeptStep)]
    impl Kept {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> {
            let name = input.plan.clone();
            Ok(Package { name })
        }
    }

    struct Alone;

    #[flow(input = Lockfile, vis = pub(self))]
    impl Alone {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> {
            let name = input.plan.clone();
            Ok(Package { name })
        }
    }
}

#[test]
fn types_are_seen_where_they_may_be() {
    use pgflow::{Flow, StepId as _};

    assert_eq!(kept::KeptStep::Parse.slug(), "parse");
    let _: Option<kept::KeptOutput> = None::<<kept::Kept as Flow>::Output>;
}
