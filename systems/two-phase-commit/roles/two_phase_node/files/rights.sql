-- What the load's account needs besides its own database: it sets up PostgreSQL's own replication, and looks at its state.
ALTER ROLE ntier_middleware REPLICATION;
GRANT pg_create_subscription, pg_read_all_stats TO ntier_middleware;
GRANT ALTER SYSTEM ON PARAMETER synchronous_standby_names TO ntier_middleware;
GRANT EXECUTE ON FUNCTION pg_reload_conf() TO ntier_middleware;
