-- Memory, waits and idle work are bounded ---------------------------------------------------------------------------------------------------------

-- The worker takes a flow's input once for each run of a claim, instead of with each task.
alter table pgflow.workers add column flow_input_once boolean not null default false;
