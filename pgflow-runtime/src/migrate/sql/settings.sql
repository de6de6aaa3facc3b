-- Every name is written with its schema; an unqualified one fails instead of landing somewhere.
set local search_path = '';
-- Functions may call each other, in whatever order they are applied.
set local check_function_bodies = off;
-- Signatures are recorded and compared as text.
set local quote_all_identifiers = off;
-- The defaults of a role are meant for its queries, not for a migration.
set local statement_timeout = 0;
set local idle_in_transaction_session_timeout = 0;
set local client_min_messages = warning;
