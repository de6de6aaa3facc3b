-- Fails the runs of map steps whose tasks have all ended, with outputs that are together larger
-- than JSON can be: no element of them is to blame, so the step fails, not a task. The arrays
-- `run_ids` and `step_slugs` name the steps; the others, of the batch that completed them, the
-- items. Returns the items of these steps.
-- Locks: needs the runs' rows; takes step states, tasks, queue rows. Callers: complete_tasks,
-- _fail_element.
create or replace function pgflow._fail_large_maps(
    run_ids uuid[], step_slugs text[], items int[], item_runs uuid[], item_slugs text[]
) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_step record;
    v_failed uuid[] := '{}';
begin
    for v_step in
        select u.run_id, u.step_slug, s.initial_tasks
        from unnest(_fail_large_maps.run_ids, _fail_large_maps.step_slugs) as u (run_id, step_slug)
        cross join lateral (
            select k.initial_tasks from pgflow.step_states k where k.run_id = u.run_id and k.step_slug = u.step_slug limit 1
        ) s
        order by u.run_id, u.step_slug
    loop
        update pgflow.step_states s
        set remaining_tasks = 0
        where s.run_id = v_step.run_id and s.step_slug = v_step.step_slug;
        -- The first of a run fails it.
        continue when v_step.run_id = any (v_failed);
        v_failed := v_failed || v_step.run_id;
        perform pgflow._fail_run(
            v_step.run_id, v_step.step_slug, null,
            format('the outputs of the %s elements of map step "%s" are together larger than a JSON value can be (256 MB); return less for each element, '
                || 'or keep large data elsewhere and return where it lies', v_step.initial_tasks, v_step.step_slug)
        );
    end loop;
    return array(
        select i.item
        from unnest(items, item_runs, item_slugs) as i (item, run_id, step_slug)
        join unnest(_fail_large_maps.run_ids, _fail_large_maps.step_slugs) as u (run_id, step_slug) on u.run_id = i.run_id and u.step_slug = i.step_slug
        order by i.item
    );
end
$$;
