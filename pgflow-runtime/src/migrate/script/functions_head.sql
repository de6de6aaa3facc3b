
-- The functions that were there before: what applying the files adds to them replaces a recorded one.
do $$
begin
    perform pg_catalog.set_config(
        'pgflow.signatures_before',
        (
            select coalesce(pg_catalog.jsonb_agg(live.signature), '[]')::text
            from (
                {live_functions}
            ) live
        ),
        true
    );
end
$$;
