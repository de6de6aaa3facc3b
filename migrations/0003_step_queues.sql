-- Private queues: a flow has one queue for all its steps, or one for each (queue mode `flow` or `step`).
--
-- Names of step queues are made of slugs, so slugs must not run into each other: the rule for them gets stricter, and they are unique
-- whatever their case. Refuses, before it changes anything, data that breaks this: see the checks below.

-- A busy database must not queue up behind this: give up, change nothing, and let the operator choose a quieter moment.
set local lock_timeout = '10s';

lock table pgflow.flows, pgflow.steps in access exclusive mode;

do $$
declare
    v_found text;
    -- The same rule as in pgflow.is_valid_slug.
    v_rule constant text := '^[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?$';
begin
    select string_agg(quote_ident(f.flow_slug), ', ' order by f.flow_slug) into v_found
    from pgflow.flows f
    where f.flow_slug !~ v_rule or f.flow_slug ~ '__';
    if v_found is not null then
        raise exception 'these flow slugs are not valid any more: %', v_found using
            errcode = 'PF004',
            hint = 'A slug starts with a letter, ends with a letter or digit, and has no "__". Let their runs end, delete these flows, and define them again under another slug.';
    end if;

    select string_agg(format('%I.%I', s.flow_slug, s.step_slug), ', ' order by s.flow_slug, s.step_index) into v_found
    from pgflow.steps s
    where s.step_slug !~ v_rule or s.step_slug ~ '__';
    if v_found is not null then
        raise exception 'these step slugs are not valid any more: %', v_found using
            errcode = 'PF004',
            hint = 'A slug starts with a letter, ends with a letter or digit, and has no "__". Let the runs of these flows end, delete them, and define them again.';
    end if;

    select string_agg(slugs, '; ' order by slugs) into v_found
    from (
        select string_agg(f.flow_slug, ', ' order by f.flow_slug) as slugs
        from pgflow.flows f
        group by lower(f.flow_slug collate "C")
        having count(*) > 1
    ) twins;
    if v_found is not null then
        raise exception 'these flow slugs differ only in case: %', v_found using
            errcode = 'PF006',
            hint = 'Queue names ignore case. Let the runs of all but one end, and delete these flows.';
    end if;

    select string_agg(slugs, '; ' order by slugs) into v_found
    from (
        select string_agg(format('%I.%I', s.flow_slug, s.step_slug), ', ' order by s.step_index) as slugs
        from pgflow.steps s
        group by s.flow_slug, lower(s.step_slug collate "C")
        having count(*) > 1
    ) twins;
    if v_found is not null then
        raise exception 'these step slugs differ only in case: %', v_found using
            errcode = 'PF004',
            hint = 'Queue names ignore case. Let the runs of these flows end, delete them, and define them again.';
    end if;

    select string_agg(format('%I.%I in queue %I', s.flow_slug, s.step_slug, s.queue_name), ', ' order by s.flow_slug, s.step_index) into v_found
    from pgflow.steps s
    where s.queue_name <> lower(s.flow_slug collate "C");
    if v_found is not null then
        raise exception 'these steps are routed to another queue than that of their flow: %', v_found using
            errcode = 'PF012',
            hint = 'Up to now every step uses the queue of its flow, so this was changed by hand. Set pgflow.steps.queue_name to lower(flow_slug).';
    end if;
end
$$;

alter table pgflow.flows
    -- How the flow is deployed; no part of its shape.
    add column queue_mode text not null default 'flow',
    add constraint queue_mode_is_valid check (queue_mode in ('flow', 'step')),
    drop constraint slug_is_valid,
    add constraint slug_is_valid check (
        flow_slug ~ '^[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?$' and flow_slug !~ '__' and length(flow_slug) <= 128 and flow_slug <> 'run'
    );
alter table pgflow.steps
    drop constraint steps_step_slug_check,
    add constraint steps_step_slug_check check (
        step_slug ~ '^[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?$' and step_slug !~ '__' and length(step_slug) <= 128 and step_slug <> 'run'
    );

-- Queue names ignore case, and so do slugs that name queues.
create unique index idx_flows_slug_ignoring_case on pgflow.flows (lower(flow_slug collate "C"));
create unique index idx_steps_slug_ignoring_case on pgflow.steps (flow_slug, lower(step_slug collate "C"));

-- The view needs it; its text of today stands in functions/.
create function pgflow._waiting_messages(queue_name text, out messages bigint, out oldest_at timestamptz)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
end
$$;

-- One row per queue of a flow: who serves it, and what waits in it. A step-queued flow has a row for each step, a plain one a single row.
-- A worker lives while its heartbeat is newer than 6 seconds; a deprecated one takes no new work, so it does not count.
create view pgflow.coverage as
select
    r.flow_slug, r.queue_mode, r.step_slug, r.queue_name,
    coalesce(w.live_workers, 0) > 0 as is_covered,
    coalesce(w.live_workers, 0) as live_workers,
    w.last_heartbeat_at,
    m.messages as waiting_messages,
    m.oldest_at as oldest_waiting_at
from (
    select f.flow_slug, f.queue_mode, null::text as step_slug, lower(f.flow_slug collate "C") as queue_name, -1 as step_index
    from pgflow.flows f
    where f.queue_mode = 'flow'
    union all
    select s.flow_slug, f.queue_mode, s.step_slug, s.queue_name, s.step_index
    from pgflow.flows f
    join pgflow.steps s on s.flow_slug = f.flow_slug
    where f.queue_mode = 'step'
) r
left join lateral (
    select
        count(*) filter (
            where x.stopped_at is null and x.deprecated_at is null and x.last_heartbeat_at > now() - interval '6 seconds'
        ) as live_workers,
        max(x.last_heartbeat_at) as last_heartbeat_at
    from pgflow.workers x
    where x.flow_slug = r.flow_slug and x.queue_name = r.queue_name
) w on true
cross join lateral pgflow._waiting_messages(r.queue_name) m
order by r.flow_slug, r.step_index;
