-- A sink for events that keeps them in the order in which they were sent.
create schema realtime;
create table realtime.messages (
    n bigint generated always as identity primary key,
    payload jsonb,
    event text,
    topic text,
    private boolean
);
create function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void language sql as $$
    insert into realtime.messages (payload, event, topic, private) values (payload, event, topic, private)
$$;

-- What the queries of these tests call.
create schema model;
create function model.us(at timestamptz) returns bigint language sql stable as $$
    select (extract(epoch from at) * 1000000)::bigint
$$
