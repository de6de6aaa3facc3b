-- Which queues a flow has, and which options apply to a step, is said in one place each.

-- A busy database must not queue up behind this: give up, change nothing, and let the operator choose a quieter moment.
set local lock_timeout = '10s';

-- The queues of each flow: one for all its steps, or one for each (then `step_slug` names the step). A step of the former kind that was routed
-- elsewhere by hand has a row too: its tasks lie there. Every other place that asks for a flow's queues reads this view.
create view pgflow.flow_queues as
select f.flow_slug, f.queue_mode, null::text as step_slug, lower(f.flow_slug collate "C") as queue_name, -1 as step_index
from pgflow.flows f
where f.queue_mode = 'flow'
union all
select f.flow_slug, f.queue_mode, s.step_slug, s.queue_name, s.step_index
from pgflow.flows f
join pgflow.steps s on s.flow_slug = f.flow_slug
where f.queue_mode = 'step' or s.queue_name <> lower(f.flow_slug collate "C");

-- One row per queue of a flow: who serves it, and what waits in it. A deprecated worker takes no new work, so it does not count.
create or replace view pgflow.coverage as
select
    r.flow_slug, r.queue_mode, r.step_slug, r.queue_name,
    w.live_workers > 0 as is_covered,
    w.live_workers,
    (select max(x.last_heartbeat_at) from pgflow.workers x where x.flow_slug = r.flow_slug and x.queue_name = r.queue_name) as last_heartbeat_at,
    m.messages as waiting_messages,
    m.oldest_at as oldest_waiting_at
from pgflow.flow_queues r
cross join lateral (
    select count(*) as live_workers
    from pgflow.live_workers x
    where x.flow_slug = r.flow_slug and x.queue_name = r.queue_name and x.deprecated_at is null
) w
cross join lateral pgflow._waiting_messages(r.queue_name) m
order by r.flow_slug, r.step_index;

-- The options that apply to each step, its own or its flow's, and the queue of its future tasks.
create view pgflow.step_options as
select
    d.flow_slug, d.step_slug, d.queue_name,
    coalesce(d.opt_timeout, f.opt_timeout) as timeout,
    coalesce(d.opt_max_attempts, f.opt_max_attempts) as max_attempts,
    coalesce(d.opt_base_delay, f.opt_base_delay) as base_delay
from pgflow.steps d
join pgflow.flows f on f.flow_slug = d.flow_slug;
