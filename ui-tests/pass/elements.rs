//! Maps that do without elements that fail: the types of their outputs, in every form in which they
//! are taken.
#![deny(warnings)]
#![allow(
    clippy::ptr_arg,
    clippy::ref_option,
    reason = "the longer forms are allowed, so they are here"
)]

use pgflow::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
pub struct Page {
    pub title: Option<String>,
}

pub struct Crawl;

#[flow(input = Vec<String>)]
impl Crawl {
    /// Fetches a page.
    #[step(map = input, on_element_failure = "null")]
    async fn fetch(item: &str) -> StepResult<Page> {
        let title = Some(item.to_owned());
        Ok(Page { title })
    }

    #[step(depends_on = [fetch])]
    async fn owned(fetch: Vec<Option<Page>>) -> StepResult<usize> {
        Ok(fetch.into_iter().flatten().count())
    }

    #[step(depends_on = [fetch])]
    async fn borrowed(fetch: &[Option<Page>]) -> StepResult<usize> {
        Ok(fetch.iter().flatten().count())
    }

    #[step(depends_on = [fetch])]
    async fn whole(fetch: &Vec<Option<Page>>) -> StepResult<usize> {
        Ok(fetch.len())
    }

    #[step(map = fetch)]
    async fn each(item: Option<Page>) -> StepResult<bool> {
        Ok(item.is_some())
    }

    #[step(map = fetch, on_element_failure = "null", when_exhausted = "skip")]
    async fn each_borrowed(item: &Option<Page>) -> StepResult<String> {
        Ok(item
            .as_ref()
            .and_then(|page| page.title.clone())
            .ok_or("no title")?)
    }

    #[step(depends_on = [each_borrowed])]
    async fn skippable(each_borrowed: Option<Vec<Option<String>>>) -> StepResult<()> {
        drop(each_borrowed);
        Ok(())
    }

    #[step(depends_on = [each_borrowed])]
    async fn skippable_list(each_borrowed: Option<&[Option<String>]>) -> StepResult<usize> {
        Ok(each_borrowed.map_or(0, <[_]>::len))
    }

    #[step(map = input, on_element_failure = "null", when_exhausted = "skip")]
    async fn leaf(item: String) -> StepResult<String> {
        Ok(item)
    }

    #[step(map = input, on_element_failure = "null")]
    async fn certain_leaf(item: String) -> StepResult<String> {
        Ok(item)
    }

    /// The default, written out.
    #[step(map = input, on_element_failure = "fail")]
    async fn plain(item: String) -> StepResult<Option<String>> {
        Ok(Some(item))
    }

    #[step(on_element_failure = "fail")]
    async fn single() -> StepResult<()> {
        Ok(())
    }
}

const _: fn(CrawlOutput) = |output| {
    let _: Option<Vec<Option<String>>> = output.leaf;
    let _: Vec<Option<String>> = output.certain_leaf;
    let _: Vec<Option<String>> = output.plain;
    let _: Vec<bool> = output.each;
};

#[test]
fn the_mode_is_in_the_definition() {
    let steps = Crawl::DEFINITION.steps.iter();
    let tolerant: Vec<&str> = steps
        .filter(|step| step.on_element_failure.as_str() == "null")
        .map(|step| step.slug)
        .collect();
    assert_eq!(tolerant, ["fetch", "each_borrowed", "leaf", "certain_leaf"]);
}
