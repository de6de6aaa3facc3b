//! Options of a stored flow.

use crate::support::{Database, json};

#[test]
fn options_are_set_and_shown_as_they_apply() {
    let database = Database::with_flow();
    let text = database
        .pgflow(&[
            "tune",
            "sums",
            "--max-attempts",
            "7",
            "--base-delay",
            "0s",
            "--max-delay",
            "10m",
            "--give-up-after",
            "2h",
            "--timeout",
            "1h30m",
        ])
        .done();
    assert_eq!(
        text,
        "flow sums: 7 attempts, base delay 0s, max delay 10m, give up after 2h, timeout 1h30m, for attempts that start from now on\n"
    );
    let text = database
        .pgflow(&["tune", "sums", "--step", "doubled", "--timeout", "2m"])
        .done();
    assert_eq!(
        text,
        "step doubled of flow sums: 7 attempts, base delay 0s, max delay 10m, give up after 2h, timeout 2m, for attempts that start from now on\n"
    );
    let answer = json(
        &database
            .pgflow(&[
                "tune",
                "sums",
                "--step",
                "doubled",
                "--start-delay",
                "5s",
                "--json",
            ])
            .done(),
    );
    assert_eq!(answer["effective_options"]["start_delay"], 5);
}

#[test]
fn what_can_not_be_set_is_refused() {
    let database = Database::with_flow();
    for (arguments, code, problem) in [
        (&["sums"][..], 2, "--max-attempts"),
        (&["sums", "--max-attempts", "0"], 2, "0 is not in 1.."),
        (&["sums", "--timeout", "30"], 2, "did you mean 30s?"),
        (&["sums", "--timeout", "1500ms"], 2, "only whole seconds"),
        (&["sums", "--start-delay", "5s"], 2, "--step"),
        (&["sums", "--timeout", "0s"], 1, "must be at least 1"),
        (&["sum", "--timeout", "1s"], 3, "did you mean \"sums\"?"),
        (
            &["sums", "--step", "other", "--timeout", "1s"],
            3,
            "Its steps: numbers, doubled",
        ),
    ] {
        let error = database
            .pgflow(&[&["tune"], arguments].concat())
            .failed(code);
        assert!(error.contains(problem), "{arguments:?}: {error}");
    }
}
