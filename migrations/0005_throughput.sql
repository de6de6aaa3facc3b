-- Functions whose results or parameters have changed.

-- A busy database must not queue up behind this: give up, change nothing, and let the operator choose a quieter moment.
set local lock_timeout = '10s';

drop function if exists pgflow._settle_steps(uuid[], text[], text);
drop function if exists pgflow._start_claimed(uuid, text, bigint[], boolean);
