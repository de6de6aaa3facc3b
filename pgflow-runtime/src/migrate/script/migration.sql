
do ${tag}_guard$
begin
    if not exists (select from pgflow.schema_migrations where version = {version}) then
        execute ${tag}$
{sql}
${tag}$;
        insert into pgflow.schema_migrations (version, name, digest) values ({version}, '{name}', '{digest}');
    end if;
end
${tag}_guard$;
