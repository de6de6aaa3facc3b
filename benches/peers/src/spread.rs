//! Several figures as one.

use std::fmt;

use serde::Serialize;

/// The median, and how far the others lie from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` of nothing.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        Some(Self {
            median: if sorted.len() % 2 == 1 {
                upper
            } else {
                f64::midpoint(sorted[middle - 1], upper)
            },
            min: sorted[0],
            max: sorted[sorted.len() - 1],
        })
    }
}

/// `1250 [1200..1300]`, with the precision that was asked for.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(0);
        let Self { median, min, max } = self;
        write!(f, "{median:.digits$} [{min:.digits$}..{max:.digits$}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_odd_number_is_the_middle_one() {
        let spread = Spread::of([3.0, 1.0, 10.0]).unwrap();
        assert_eq!(format!("{spread:.1}"), "3.0 [1.0..10.0]");
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        let spread = Spread::of([4.0, 1.0, 2.0, 100.0]).unwrap();
        assert_eq!(format!("{spread}"), "3 [1..100]");
    }

    #[test]
    fn nothing_has_no_spread() {
        assert_eq!(Spread::of([]), None);
    }
}
