//! Words by which other libraries call what the arguments here are.

/// Each argument with the other words for it.
const OTHER_WORDS: &[(&str, &[&str])] = &[
    (
        "max_attempts",
        &[
            "retries",
            "max_retries",
            "retry",
            "retry_limit",
            "attempts",
            "tries",
            "max_tries",
        ],
    ),
    (
        "base_delay",
        &[
            "retry_delay",
            "backoff",
            "retry_backoff",
            "backoff_base",
            "initial_delay",
            "initial_interval",
        ],
    ),
    (
        "timeout",
        &[
            "deadline",
            "time_limit",
            "max_duration",
            "execution_timeout",
            "start_to_close",
        ],
    ),
    ("start_delay", &["delay", "wait", "defer", "run_after"]),
    (
        "depends_on",
        &[
            "after",
            "needs",
            "deps",
            "dependencies",
            "depends",
            "requires",
            "parents",
            "upstream",
            "inputs",
        ],
    ),
    (
        "map",
        &["for_each", "foreach", "each", "over", "fan_out", "iterate"],
    ),
    ("if", &["when", "condition", "only_if", "run_if", "cond"]),
    ("if_not", &["unless", "skip_if", "when_not"]),
    (
        "when_unmet",
        &["when_not_met", "on_unmet", "when_false", "otherwise"],
    ),
    (
        "when_exhausted",
        &[
            "on_failure",
            "on_error",
            "when_failed",
            "on_exhausted",
            "continue_on_error",
            "retries_exhausted",
        ],
    ),
    ("slug", &["name", "id"]),
    (
        "with_step_queues",
        &["step_queues", "queues", "queue_per_step", "separate_queues"],
    ),
    ("state", &["context", "ctx", "app", "app_state", "data"]),
    ("output_derive", &["derive", "derives"]),
];

/// The argument that is meant.
pub(super) fn meant(word: &str) -> Option<&'static str> {
    let mut arguments = OTHER_WORDS.iter();
    arguments
        .find(|(_, words)| words.contains(&word))
        .map(|(argument, _)| *argument)
}

/// What one who knows the other word should know of the argument.
pub(super) fn remark(argument: &str) -> &'static str {
    match argument {
        "max_attempts" => "; it counts the first attempt too",
        _ => "",
    }
}
