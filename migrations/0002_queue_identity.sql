-- Queue identity: a message is named by (queue_name, message_id), never by its flow.
--
-- Each step stores the queue that its future tasks go to; each task keeps the queue that it was sent to, for good.
-- Refuses, before it changes anything, data that it can't carry: see the checks below.

-- A busy database must not queue up behind this: give up, change nothing, and let the operator choose a quieter moment.
set local lock_timeout = '10s';

lock table pgflow.flows, pgflow.steps, pgflow.step_tasks in access exclusive mode;

do $$
declare
    v_found text;
begin
    select string_agg(format('%s (%s characters)', flow_slug, length(flow_slug)), ', ' order by flow_slug) into v_found
    from pgflow.flows
    where length(flow_slug) > 47;
    if v_found is not null then
        raise exception 'these flow slugs can not name a queue: %; the limit is 47 characters', v_found using
            errcode = 'PF010',
            hint = 'Let their runs end, delete these flows, and define them again under a shorter slug.';
    end if;

    select string_agg(slugs, '; ' order by slugs) into v_found
    from (
        select string_agg(flow_slug, ', ' order by flow_slug) as slugs
        from pgflow.flows
        group by lower(flow_slug)
        having count(*) > 1
    ) twins;
    if v_found is not null then
        raise exception 'these flows share one queue, because their slugs differ only in case: %; each flow needs a queue of its own', v_found using
            errcode = 'PF006',
            hint = 'Let the runs of all but one end, and delete these flows.';
    end if;

    select string_agg(format('%s of flow %s', slugs, flow_slug), '; ' order by flow_slug, slugs) into v_found
    from (
        select flow_slug, string_agg(step_slug, ', ' order by step_slug) as slugs
        from pgflow.steps
        group by flow_slug, lower(step_slug)
        having count(*) > 1
    ) twins;
    if v_found is not null then
        raise exception 'these steps could not have queues of their own, because their slugs differ only in case: %', v_found using
            errcode = 'PF004',
            hint = 'Let the runs of these flows end, delete them, and define them again under other slugs.';
    end if;

    select string_agg(format('%s in queue %s (%s tasks)', message_id, queue_name, tasks), ', ' order by queue_name, message_id) into v_found
    from (
        select message_id, lower(flow_slug) as queue_name, count(*) as tasks
        from pgflow.step_tasks
        where message_id is not null
        group by message_id, lower(flow_slug)
        having count(*) > 1
        limit 20
    ) shared;
    if v_found is not null then
        raise exception 'these messages stand for more than one task: %; each message must stand for one', v_found using
            errcode = 'PF012',
            hint = 'Find out which task each message was sent for, and set message_id of the others to null.';
    end if;
end
$$;

alter table pgflow.steps add column queue_name text;
alter table pgflow.step_tasks add column queue_name text;

update pgflow.steps set queue_name = lower(flow_slug);
update pgflow.step_tasks set queue_name = lower(flow_slug);

alter table pgflow.steps
    alter column queue_name set not null,
    add constraint queue_name_is_canonical check (queue_name = lower(queue_name) and length(queue_name) between 1 and 47);
alter table pgflow.step_tasks
    alter column queue_name set not null;

-- Queue names ignore case: two slugs that differ in nothing else would mean one queue. The functions look first and say it better.
create unique index idx_flows_slug_ignoring_case on pgflow.flows (lower(flow_slug));
create unique index idx_steps_slug_ignoring_case on pgflow.steps (flow_slug, lower(step_slug));

-- From a message to its one task, and the proof that there is only one.
create unique index idx_step_tasks_message on pgflow.step_tasks (queue_name, message_id) where message_id is not null;
drop index pgflow.idx_step_tasks_message_id;
