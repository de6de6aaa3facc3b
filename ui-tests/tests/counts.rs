//! Each case of `fail/` gives as many errors as it holds mistakes: overwriting the expected texts
//! can't hide that one is lost or repeated.

use std::{collections::BTreeMap, fs, path::Path};

/// The cases that hold more than one mistake, and two in which rustc has more to say.
const MORE_THAN_ONE: &[(&str, usize)] = &[
    ("arg_colon", 3),
    ("arg_in_parentheses", 7),
    ("arg_missing_comma", 5),
    ("arg_near", 5),
    ("arg_of_another_library", 11),
    ("arg_of_the_other_attribute", 2),
    ("arg_twice", 2),
    ("arg_twice_raw", 2),
    ("arg_unknown", 5),
    ("arg_without_key", 7),
    ("attempts_bad", 4),
    ("attempts_suffix", 5),
    ("body_type_error", 2),
    ("broken_attribute", 2),
    // rustc's own two.
    ("broken_body_dot", 2),
    ("broken_signatures", 2),
    ("condition_bad", 7),
    ("condition_bare_word", 5),
    ("crate_path_wrong", 2),
    ("dep_as_expression", 7),
    ("dep_by_slug", 2),
    ("dep_by_variant", 4),
    ("dep_cycle_and_more", 3),
    ("dep_cycles_that_overlap", 2),
    ("dep_in_place_of_another", 8),
    ("dep_list_empty", 2),
    ("dep_of_another_flow", 2),
    ("dep_on_a_word", 4),
    ("dep_unreadable", 2),
    ("dep_without_brackets", 6),
    ("duration_bad", 8),
    ("duration_of_another_kind", 10),
    ("duration_unquoted", 9),
    ("elements_mode_wrong", 5),
    ("elements_null_themselves", 2),
    ("elements_skippable_without_option", 2),
    ("elements_taken_without_option", 3),
    ("end_of_a_step_of_the_run", 2),
    ("end_step_as_dependency", 2),
    ("end_step_params", 4),
    ("end_step_with_parts", 6),
    ("end_step_word", 4),
    ("five_mistakes", 5),
    ("flow_args_bad", 6),
    ("flow_twice", 2),
    ("from_twice", 3),
    ("from_unknown", 2),
    ("generic_flow_parameters", 4),
    ("if_an_expression", 6),
    ("if_comparison", 8),
    ("if_constant", 4),
    ("if_contradiction", 3),
    ("if_empty", 3),
    ("if_not_a_dependency", 2),
    ("if_of_a_later_step", 2),
    ("if_without_object", 4),
    ("impl_of_a_list", 3),
    ("input_borrowed", 3),
    ("input_hidden_lifetime", 2),
    ("input_quoted", 2),
    ("input_unsized", 3),
    ("input_with_a_value", 2),
    ("items_stay", 7),
    ("many_mistakes", 8),
    ("map_alias_input_item_mismatch", 2),
    ("map_input_unknown", 2),
    ("map_unknown", 3),
    ("mode_unknown", 2),
    ("mode_unquoted", 3),
    ("names_of_types_built_in", 2),
    ("names_of_types_clash", 4),
    // rustc's own: for each name, and for what is done with each field of an output.
    ("names_of_types_taken", 8),
    ("output_derive_without_brackets", 3),
    ("output_hidden_lifetime", 4),
    ("output_lifetime", 5),
    ("output_nested_not_serde", 2),
    ("output_not_shared", 5),
    ("output_of_another_crate", 2),
    ("output_unsized", 3),
    ("param_borrowed_list_mismatch", 5),
    ("param_mut_ref_of_a_word", 4),
    ("param_other_name", 7),
    ("param_same_name", 2),
    ("param_step_not_dependency", 2),
    ("param_unsized", 3),
    ("return_associated", 2),
    ("return_future", 3),
    ("return_swapped", 2),
    ("return_without_arguments", 4),
    ("signature_bad", 4),
    ("skippable_option", 2),
    ("slug_bad_of_a_dependency", 2),
    ("slug_constant", 3),
    ("slug_of_step_bad", 4),
    ("snapshot_step_of_another_flow", 2),
    ("start_of_no_flow", 3),
    ("start_on_a_value", 4),
    ("state_none_to_list", 2),
    ("state_wrong_type", 3),
    ("step_forgotten", 4),
    ("step_in_cfg_attr", 2),
    ("step_misspelt_alone", 2),
    ("step_named_start", 3),
    ("step_twice", 2),
    ("steps_from_a_macro", 2),
    // rustc's own: for the type, and for each name of its enum and its output.
    ("two_flows_one_type_same_names", 6),
    ("value_suffix", 3),
    ("vis_of_the_types", 3),
    ("worker_generic_flow", 3),
    ("worker_not_started", 3),
    ("worker_state_of_stateless", 3),
    ("worker_step_of_another_flow_unnamed", 3),
    ("worker_step_state_missing", 2),
    ("worker_wrong_constructor", 27),
];

#[test]
fn each_mistake_is_one_error() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fail");
    let more: BTreeMap<&str, usize> = MORE_THAN_ONE.iter().copied().collect();
    let mut seen = 0;
    for entry in fs::read_dir(directory).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        if path
            .extension()
            .is_none_or(|extension| extension != "stderr")
        {
            continue;
        }
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .expect("a name");
        let text = fs::read_to_string(&path).expect("text");
        let errors = text
            .lines()
            .filter(|line| line.starts_with("error"))
            .count();
        assert_eq!(errors, more.get(name).copied().unwrap_or(1), "{name}");
        seen += usize::from(more.contains_key(name));
    }
    assert_eq!(seen, more.len(), "a case of the list is gone");
}
