//! Ids of runs, as they are given to commands.

use uuid::Uuid;

const EXAMPLE: &str = "0198c0de-0000-7000-8000-000000000001";

/// Reads the id of a run that exists.
pub(crate) fn parse(text: &str) -> Result<Uuid, String> {
    read(text).ok_or_else(|| {
        format!(
            "that is no run's id; expected one as `pgflow start` and `pgflow runs` print it, whole, such as {EXAMPLE}"
        )
    })
}

/// Reads the id that a new run is to have.
pub(crate) fn parse_new(text: &str) -> Result<Uuid, String> {
    read(text).ok_or_else(|| {
        format!("that is no UUID; expected one of your own making, such as {EXAMPLE}; without it, the run gets one")
    })
}

fn read(text: &str) -> Option<Uuid> {
    // Copied together with the space or the line's end beside it.
    Uuid::try_parse(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_printed_and_as_it_is_copied() {
        for text in [EXAMPLE, &format!(" {EXAMPLE}\n"), &EXAMPLE.to_uppercase()] {
            assert_eq!(parse(text).unwrap().to_string(), EXAMPLE);
            assert_eq!(parse_new(text).unwrap().to_string(), EXAMPLE);
        }
    }

    #[test]
    fn what_is_no_id_is_refused_with_one_that_is() {
        for text in [
            "",
            "abc",
            "0198c0de",
            "0198c0de-0000-7000-8000-00000000000g",
        ] {
            for problem in [parse(text).unwrap_err(), parse_new(text).unwrap_err()] {
                assert!(problem.contains(EXAMPLE), "{text}: {problem}");
            }
        }
    }
}
