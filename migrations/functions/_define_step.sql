-- Appends a step to a stored flow that has no runs, see add_step; its slug has been checked.
-- Raises PF004 (graph, option, pattern, mode).
-- Locks: needs the definition lock. Callers: add_step, _define_flow.
create or replace function pgflow._define_step(
    flow_slug text,
    step_slug text,
    deps_slugs text[],
    max_attempts int,
    base_delay int,
    timeout int,
    start_delay int,
    step_type text,
    required_input_pattern jsonb,
    forbidden_input_pattern jsonb,
    when_unmet text,
    when_exhausted text,
    queue_name text,
    max_delay int default null,
    give_up_after int default null,
    on_element_failure text default 'fail',
    runs_on text default null
) returns setof pgflow.steps
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_flow text := _define_step.flow_slug;
    v_slug text := _define_step.step_slug;
    v_deps text[] := coalesce(_define_step.deps_slugs, '{}');
    v_type text := coalesce(_define_step.step_type, 'single');
    v_required jsonb := _define_step.required_input_pattern;
    v_forbidden jsonb := _define_step.forbidden_input_pattern;
    v_unmet text := coalesce(_define_step.when_unmet, 'skip');
    v_exhausted text := coalesce(_define_step.when_exhausted, 'fail');
    v_on_element text := coalesce(_define_step.on_element_failure, 'fail');
    v_runs_on text := _define_step.runs_on;
    v_stored pgflow.steps;
    v_found text;
begin
    if v_type not in ('single', 'map') then
        raise exception 'step "%": type is "%"; it must be "single" or "map"', v_slug, v_type using
            errcode = 'PF004',
            hint = 'A map step has a task for each element of an array, a single step has one.';
    end if;
    if v_unmet not in ('fail', 'skip', 'skip-cascade') or v_exhausted not in ('fail', 'skip', 'skip-cascade') then
        raise exception 'step "%": when_unmet is "%" and when_exhausted is "%"; each must be "fail", "skip" or "skip-cascade"', v_slug, v_unmet, v_exhausted using
            errcode = 'PF004',
            hint = 'Leave them out for "skip" and "fail".';
    end if;
    if v_on_element not in ('fail', 'null') then
        raise exception 'step "%": on_element_failure is "%"; it must be "fail" or "null"', v_slug, v_on_element using
            errcode = 'PF004',
            hint = 'Leave it out for "fail".';
    end if;
    if v_on_element = 'null' and v_type <> 'map' then
        raise exception 'step "%": on_element_failure is "null", but the step is no map and has no elements', v_slug using
            errcode = 'PF004',
            hint = 'Leave it out: when_exhausted says what follows when the step''s one task fails.';
    end if;
    if jsonb_typeof(v_required) <> 'object' or jsonb_typeof(v_forbidden) <> 'object' then
        raise exception 'step "%": a condition is a JSON object', v_slug using errcode = 'PF004', hint = 'For example {"plan": "premium"}.';
    end if;
    if v_type = 'map' and cardinality(v_deps) > 1 then
        raise exception 'map step "%" depends on % steps (%); a map runs over the list of one', v_slug, cardinality(v_deps), array_to_string(v_deps, ', ') using
            errcode = 'PF004',
            hint = 'Join the lists in a single step, and map over that.';
    end if;
    if v_type = 'map' and cardinality(v_deps) = 0 and (v_required is not null or v_forbidden is not null) then
        raise exception 'map step "%" runs over the flow''s input, which is a list; a condition is an object, so it could never hold', v_slug using
            errcode = 'PF004',
            hint = 'Put the condition on the steps after it.';
    end if;
    if v_runs_on not in ('failure', 'end') then
        raise exception 'step "%": runs_on is "%"; it must be "failure" or "end"', v_slug, v_runs_on using
            errcode = 'PF004',
            hint = 'Leave it out for a step that is part of the run.';
    end if;
    if v_runs_on is not null and (
        v_type = 'map' or v_deps <> '{}' or v_required is not null or v_forbidden is not null or v_unmet <> 'skip' or v_exhausted <> 'fail'
    ) then
        raise exception 'step "%" runs when the run has ended (%), so it can have no dependencies, no map, no condition and no mode', v_slug, v_runs_on using
            errcode = 'PF004',
            hint = 'Its input holds the outputs of all completed steps.';
    end if;
    if v_slug = any (v_deps) then
        raise exception 'step "%" depends on itself', v_slug using
            errcode = 'PF004',
            hint = 'Name only steps that were added before.';
    end if;
    select d into v_found from unnest(v_deps) d group by d having count(*) > 1 limit 1;
    if found then
        raise exception 'step "%" lists dependency "%" twice', v_slug, v_found using
            errcode = 'PF004',
            hint = 'Name each dependency once.';
    end if;
    select string_agg(coalesce(d, 'NULL'), ', ' order by d) into v_found
    from unnest(v_deps) d
    where d is null or not exists (select from pgflow.steps s where s.flow_slug = v_flow and s.step_slug = d);
    if v_found is not null then
        raise exception 'step "%" depends on steps that flow "%" does not have: %', v_slug, v_flow, v_found using
            errcode = 'PF004',
            hint = 'Add the steps in the order of their dependencies.';
    end if;
    select s.step_slug into v_found
    from pgflow.steps s
    where s.flow_slug = v_flow and s.step_slug = any (v_deps) and s.runs_on is not null
    limit 1;
    if found then
        raise exception 'step "%" depends on step "%", which runs when the run has ended', v_slug, v_found using
            errcode = 'PF004',
            hint = 'Depend on steps that are part of the run.';
    end if;
    perform pgflow._assert_options('step ' || v_slug, max_attempts, base_delay, timeout, start_delay, max_delay, give_up_after);

    select s.* into v_stored from pgflow.steps s where s.flow_slug = v_flow and lower(s.step_slug collate "C") = lower(v_slug collate "C");
    if found then
        if v_stored.step_slug <> v_slug then
            raise exception 'step "%" differs from step "%" only in case', v_slug, v_stored.step_slug using
                errcode = 'PF004',
                hint = 'Queue names ignore case. Choose another slug.';
        end if;
        if v_stored.step_type <> v_type
            or v_stored.required_input_pattern is distinct from v_required
            or v_stored.forbidden_input_pattern is distinct from v_forbidden
            or v_stored.when_unmet <> v_unmet
            or v_stored.when_exhausted <> v_exhausted
            or v_stored.on_element_failure <> v_on_element
            or v_stored.runs_on is distinct from v_runs_on
            or (select array_agg(d order by d) from unnest(v_deps) d)
                is distinct from (select array_agg(d.dep_slug order by d.dep_slug) from pgflow.deps d where d.flow_slug = v_flow and d.step_slug = v_slug)
        then
            raise exception 'step "%" of flow "%" is defined already, with another structure', v_slug, v_flow using
                errcode = 'PF004',
                hint = 'A shape is immutable. Define the new one under a new flow slug.';
        end if;
        return next v_stored;
        return;
    end if;

    select s.step_slug into v_found from pgflow.steps s where s.flow_slug = v_flow and s.runs_on = v_runs_on;
    if found then
        raise exception 'steps "%" and "%" of flow "%" both run on %', v_found, v_slug, v_flow, v_runs_on using
            errcode = 'PF004',
            hint = 'A flow has at most one step for each. Do both in one step.';
    end if;

    insert into pgflow.steps (
        flow_slug, step_slug, step_type, step_index, deps_count, queue_name,
        opt_max_attempts, opt_base_delay, opt_timeout, opt_start_delay, opt_max_delay, opt_give_up_after,
        required_input_pattern, forbidden_input_pattern, when_unmet, when_exhausted, on_element_failure, runs_on
    )
    values (
        v_flow, v_slug, v_type, (select count(*) from pgflow.steps s where s.flow_slug = v_flow), cardinality(v_deps), _define_step.queue_name,
        max_attempts, base_delay, timeout, start_delay, max_delay, give_up_after,
        v_required, v_forbidden, v_unmet, v_exhausted, v_on_element, v_runs_on
    )
    returning * into v_stored;
    insert into pgflow.deps (flow_slug, dep_slug, step_slug) select v_flow, d, v_slug from unnest(v_deps) d;
    if v_type = 'map' then
        update pgflow.steps s set feeds_map = true where s.flow_slug = v_flow and s.step_slug = any (v_deps);
    end if;
    return next v_stored;
end
$$;
