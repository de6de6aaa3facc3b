//! All arguments of the attributes.

/// One argument of one attribute.
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "a test writes the reference from the descriptions"
    )
)]
pub(crate) struct Argument {
    pub(crate) key: &'static str,
    /// `true` if it has no value.
    pub(crate) is_flag: bool,
    /// The words of other libraries for it.
    pub(crate) other_words: &'static [&'static str],
    /// Follows the name where one of those words was written.
    pub(crate) remark: &'static str,
    /// The cell of the reference that says what it takes.
    pub(crate) form: &'static str,
    /// The cell that says what holds without it.
    pub(crate) default: &'static str,
    /// The text that editors show.
    pub(crate) hover: &'static str,
}

const ARGUMENT: Argument = Argument {
    key: "",
    is_flag: false,
    other_words: &[],
    remark: "",
    form: "",
    default: "",
    hover: "",
};

const MAX_ATTEMPTS: Argument = Argument {
    key: "max_attempts",
    other_words: &[
        "retries",
        "max_retries",
        "retry",
        "retry_limit",
        "attempts",
        "tries",
        "max_tries",
    ],
    remark: "; it counts the first attempt too",
    form: "an integer from 1 to 2147483647: how often a task is tried, the first attempt included",
    ..ARGUMENT
};

const BASE_DELAY: Argument = Argument {
    key: "base_delay",
    other_words: &[
        "retry_delay",
        "backoff",
        "retry_backoff",
        "backoff_base",
        "initial_delay",
        "initial_interval",
    ],
    form: "a duration of at least 1 s: retry *n* waits this times 2^*n* and up to a quarter more, `max_delay` at most",
    ..ARGUMENT
};

const MAX_DELAY: Argument = Argument {
    key: "max_delay",
    other_words: &[
        "max_backoff",
        "backoff_max",
        "max_interval",
        "maximum_interval",
        "max_retry_delay",
    ],
    form: "a duration of at least 1 s: the longest delay between attempts; one that `StepError::retry_after` or `postpone` chose may be longer",
    ..ARGUMENT
};

const GIVE_UP_AFTER: Argument = Argument {
    key: "give_up_after",
    other_words: &["schedule_to_start", "max_postponement"],
    form: "a duration of at least 1 s: a task that has only been postponed (`StepError::postpone`) for longer fails",
    ..ARGUMENT
};

const TIMEOUT: Argument = Argument {
    key: "timeout",
    other_words: &[
        "deadline",
        "time_limit",
        "max_duration",
        "execution_timeout",
        "start_to_close",
    ],
    form: "a duration of at least 3 s: how long an attempt may run; `\"none\"`: as long as its worker lives",
    ..ARGUMENT
};

const SLUG: Argument = Argument {
    key: "slug",
    other_words: &["name", "id"],
    ..ARGUMENT
};

pub(crate) const FLOW: &[Argument] = &[
    Argument {
        key: "input",
        form: "a type that owns its data and is `Serialize + DeserializeOwned + Send + Sync`",
        default: "required",
        hover: "`input = Type`: what a run starts from.",
        ..ARGUMENT
    },
    Argument {
        key: "state",
        other_words: &["context", "ctx", "app", "app_state", "data"],
        form: "a type that is `Send + Sync + 'static`; the worker shares it, so it needs no `Arc` around it",
        default: "`()`",
        hover: "`state = Type`: what steps can take as `state`.",
        ..ARGUMENT
    },
    Argument {
        form: "a string: the flow's name in the database; ASCII letters, digits and single `_`, at most 47 characters, 44 with step queues",
        default: "the type's name in snake case",
        hover: "`slug = \"my_flow_v2\"`: the flow's name in the database; the type's name in snake case by default.",
        ..SLUG
    },
    Argument {
        key: "with_step_queues",
        is_flag: true,
        other_words: &["step_queues", "queues", "queue_per_step", "separate_queues"],
        form: "a flag: one private queue, and so one worker pool, per step",
        default: "one queue for the flow",
        hover: "One private queue, and so one worker pool, per step.",
        ..ARGUMENT
    },
    Argument {
        default: "3",
        hover: "`max_attempts = 3`: how often a task is tried, the first attempt included; at least 1, 3 by default; steps can set their own.",
        ..MAX_ATTEMPTS
    },
    Argument {
        default: "`\"5s\"`",
        hover: "`base_delay = \"5s\"`: the delay that the back-off between attempts starts from; at least 1 s, 5 s by default; steps can set their own.",
        ..BASE_DELAY
    },
    Argument {
        default: "`\"1h\"`",
        hover: "`max_delay = \"1h\"`: the longest delay between attempts; at least 1 s, 1 h by default; steps can set their own.",
        ..MAX_DELAY
    },
    Argument {
        default: "`\"1d\"`",
        hover: "`give_up_after = \"1d\"`: how long a task may be postponed without an attempt that counts; at least 1 s, 1 day by default; steps can set their own.",
        ..GIVE_UP_AFTER
    },
    Argument {
        default: "`\"60s\"`",
        hover: "`timeout = \"60s\"`: how long an attempt may run; at least 3 s, 60 s by default; steps can set their own.",
        ..TIMEOUT
    },
    Argument {
        key: "step_enum",
        form: "a name for the generated enum, other than the flow's; needed for the second flow of a module",
        default: "`Step`",
        hover: "`step_enum = MyStep`: the name of the generated step enum, `Step` by default.",
        ..ARGUMENT
    },
    Argument {
        key: "output",
        form: "a name for the generated struct, other than those two",
        default: "the type's name and `Output`",
        hover: "`output = MyOutput`: the name of the generated output struct.",
        ..ARGUMENT
    },
    Argument {
        key: "output_derive",
        other_words: &["derive", "derives"],
        form: "a list of derives for it besides `Debug`, which it has: `[PartialEq, Clone]`; a `#[derive(..)]` above `#[flow]`, which rustc proposes, is of no use",
        default: "none",
        hover: "`output_derive = [PartialEq, Clone]`: derives for the output struct.",
        ..ARGUMENT
    },
    Argument {
        key: "vis",
        other_words: &["visibility"],
        form: "a visibility for both, `pub(crate)` or `pub(self)`: a flow that a library keeps for itself",
        default: "`pub`",
        hover: "`vis = pub(crate)`: the visibility of the step enum and the output struct, `pub` by default.",
        ..ARGUMENT
    },
    Argument {
        key: "crate",
        form: "the path of `pgflow`, where it is re-exported or has another name in `Cargo.toml`: `crate = ::workflows`",
        default: "`::pgflow`",
        // A keyword is no name of a constant, so editors have nothing to look up.
        ..ARGUMENT
    },
];

pub(crate) const STEP: &[Argument] = &[
    Argument {
        key: "depends_on",
        other_words: &[
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
        form: "`[parse, fetch]`: run after these steps",
        default: "a root step",
        hover: "`depends_on = [a, b]`: run after these steps; each is available as a parameter of its name.",
        ..ARGUMENT
    },
    Argument {
        key: "map",
        other_words: &["for_each", "foreach", "each", "over", "fan_out", "iterate"],
        form: "`map = parse`: one task per element of that step's list; `map = input`: of the flow's input; not with `depends_on`: what a task needs from other steps goes into the elements",
        default: "one task",
        hover: "`map = step` or `map = input`: one task per element of that list; the element is the parameter `item`.",
        ..ARGUMENT
    },
    Argument {
        form: "a string: the step's name in the database; ASCII letters, digits and single `_`, at most 128 characters, fewer with step queues",
        default: "the function's name",
        hover: "`slug = \"fetch_v1\"`: the step's name in the database; the function's name by default.",
        ..SLUG
    },
    Argument {
        default: "the flow's, or 3",
        hover: "`max_attempts = 3`: how often a task is tried, the first attempt included; at least 1, by default the flow's.",
        ..MAX_ATTEMPTS
    },
    Argument {
        default: "the flow's, or `\"5s\"`",
        hover: "`base_delay = \"5s\"`: the delay that the back-off between attempts starts from; at least 1 s, by default the flow's.",
        ..BASE_DELAY
    },
    Argument {
        default: "the flow's, or `\"1h\"`",
        hover: "`max_delay = \"1h\"`: the longest delay between attempts; at least 1 s, by default the flow's.",
        ..MAX_DELAY
    },
    Argument {
        default: "the flow's, or `\"1d\"`",
        hover: "`give_up_after = \"1d\"`: how long a task may be postponed without an attempt that counts; at least 1 s, by default the flow's.",
        ..GIVE_UP_AFTER
    },
    Argument {
        default: "the flow's, or `\"60s\"`",
        hover: "`timeout = \"60s\"`: how long an attempt may run; at least 3 s, by default the flow's.",
        ..TIMEOUT
    },
    Argument {
        key: "start_delay",
        other_words: &["delay", "wait", "defer", "run_after"],
        form: "a duration: the wait before the first attempt",
        default: "none",
        hover: "`start_delay = \"5m\"`: the wait before the first attempt; none by default.",
        ..ARGUMENT
    },
    Argument {
        key: "if",
        other_words: &["when", "condition", "only_if", "run_if", "cond"],
        form: "an object, `{ plan: \"premium\", size: [1, 2] }`: run only where the input, or the outputs of the dependencies, contain it; not with `map = input`",
        default: "none",
        hover: "`if = { .. }`: run only if the input contains this.",
        ..ARGUMENT
    },
    Argument {
        key: "if_not",
        other_words: &["unless", "skip_if", "when_not"],
        form: "an object: run only where they don't contain it; not with `map = input`",
        default: "none",
        hover: "`if_not = { .. }`: run only if the input does not contain this.",
        ..ARGUMENT
    },
    Argument {
        key: "when_unmet",
        other_words: &["when_not_met", "on_unmet", "when_false", "otherwise"],
        form: "`\"skip\"`, `\"skip-cascade\"` or `\"fail\"`: what follows when the condition does not hold; only with a condition",
        default: "`\"skip\"`",
        hover: "`when_unmet = \"skip\"`: what happens when the condition does not hold: `\"skip\"` (the default), `\"skip-cascade\"` or `\"fail\"`.",
        ..ARGUMENT
    },
    Argument {
        key: "when_exhausted",
        other_words: &[
            "on_failure",
            "on_error",
            "when_failed",
            "on_exhausted",
            "continue_on_error",
            "retries_exhausted",
        ],
        form: "the same, when the last attempt has failed, or one permanently",
        default: "`\"fail\"`",
        hover: "`when_exhausted = \"fail\"`: what happens when the last attempt has failed: `\"fail\"` (the default), `\"skip\"` or `\"skip-cascade\"`.",
        ..ARGUMENT
    },
    Argument {
        key: "on_element_failure",
        other_words: &[
            "on_item_failure",
            "on_task_failure",
            "on_partial_failure",
            "allow_failures",
            "allow_partial",
            "tolerate_failures",
            "failure_tolerance",
        ],
        form: "`\"fail\"` or `\"null\"`, on a map step: what an element is whose last attempt has failed, or one permanently; `\"null\"`: a `None` in the list, which dependents take as `Vec<Option<T>>`. When every element fails, so does the step",
        default: "`\"fail\"`",
        hover: "`on_element_failure = \"null\"`: an element whose last attempt has failed is `None` in the list of this map step, `Vec<Option<T>>` for its dependents; `\"fail\"` (the default): `when_exhausted` decides.",
        ..ARGUMENT
    },
    Argument {
        key: "on",
        other_words: &[
            "finally",
            "on_end",
            "on_finish",
            "on_completion",
            "after_run",
            "runs_on",
        ],
        form: "`failure` or `end`: an end step, which runs when the run has failed, or has ended in any way, and changes nothing about that; at most one of each; alone or with `slug`, attempts, delays and `timeout`",
        default: "a step of the run",
        hover: "`on = failure` or `on = end`: run when the run has failed, or has ended in any way; that end is the parameter `end`.",
        ..ARGUMENT
    },
];

fn all() -> impl Iterator<Item = &'static Argument> {
    FLOW.iter().chain(STEP)
}

/// The argument that a word of another library stands for.
pub(super) fn meant_by(word: &str) -> Option<&'static Argument> {
    all().find(|argument| argument.other_words.contains(&word))
}

pub(super) fn is_key(word: &str) -> bool {
    all().any(|argument| argument.key == word)
}

pub(super) fn is_flag(word: &str) -> bool {
    all().any(|argument| argument.is_flag && argument.key == word)
}
