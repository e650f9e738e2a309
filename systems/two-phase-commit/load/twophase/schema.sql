-- The data of one node: a shop with items in stock, and orders that move stock from some items to others.
-- The same on every node. Variable `items`: how many. The public schema is what must agree between nodes.
SET client_min_messages = warning;
DROP TABLE IF EXISTS items, orders;
DROP SCHEMA IF EXISTS replication CASCADE;
CREATE TABLE items (
  id integer PRIMARY KEY,
  stock bigint NOT NULL,
  note text NOT NULL, -- what makes a row as large as the study wants it
  hlc bigint NOT NULL DEFAULT 0, -- hybrid logical clock of the last writer: ms since 1970 x 65536 + counter
  origin integer NOT NULL DEFAULT 0 -- node of the last writer; decides where two clocks agree
) WITH (fillfactor = 50); -- room for the new version of a row beside the old one
INSERT INTO items (id, stock, note) SELECT id, 1000, '' FROM generate_series(1, :items) AS id;
-- One row for each alter that was committed: its moves say what it did, so that a checker can find half of one.
CREATE TABLE orders (id text PRIMARY KEY, moves jsonb NOT NULL);
CREATE SCHEMA replication;
-- BASE: what this node committed and not all others have yet. In the order (xid, seq), which is final below the oldest
-- transaction that still runs; by seq alone a reader could pass a transaction that commits later.
CREATE TABLE replication.outbox (
  xid bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  queued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  changes jsonb NOT NULL,
  PRIMARY KEY (xid, seq)
);
-- BASE: how far this node has applied each other node's queue.
CREATE TABLE replication.positions (origin integer PRIMARY KEY, xid bigint NOT NULL, seq bigint NOT NULL);
ANALYZE items;
