-- Returns the reason why a value can't be the list of a map step: its type unless it is an array,
-- or that it has too many elements; NULL when it can be. All tasks of a map are made in one
-- transaction: 250,000 of them take about half a minute and 400 MB there.
-- Locks: none. Callers: start_flows, complete_tasks.
create or replace function pgflow._map_refusal(list jsonb) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
return case
    when jsonb_typeof(list) is distinct from 'array' then coalesce(jsonb_typeof(list), 'null')
    when jsonb_array_length(list) > 250000 then format('an array of %s elements, of 250000 at most', jsonb_array_length(list))
end;
