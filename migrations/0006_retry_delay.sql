-- A task's row says for how long its next attempt was put off.

-- A busy database must not queue up behind this: give up, change nothing, and let the operator choose a quieter moment.
set local lock_timeout = '10s';

-- Seconds, as chosen when the latest attempt that is retried failed: the step's backoff, or what its error asked for. NULL while none was.
alter table pgflow.step_tasks add column retry_delay int;

-- Functions whose parameters have changed.
drop function if exists pgflow._start_claimed(uuid, text, uuid[], text[], int[], bigint[], int[], int[], boolean);
