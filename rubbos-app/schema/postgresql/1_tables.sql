-- Tables of RUBBoS (columns as in release 1.2.2; INTEGER for INT UNSIGNED, TIMESTAMP for DATETIME). Data are loaded into these,
-- keys and indexes follow in 2_indexes.sql. No foreign keys: RUBBoS has none. SERIAL and not IDENTITY, because middlewares tell by
-- its default which column the database numbers.

CREATE TABLE categories (
  id   INTEGER NOT NULL,
  name VARCHAR(50)
);

-- id 0 is "Anonymous Coward". access: 0 = regular user, 1 = author (may post and moderate).
CREATE TABLE users (
  id            SERIAL,
  firstname     VARCHAR(20),
  lastname      VARCHAR(20),
  nickname      VARCHAR(20) NOT NULL,
  password      VARCHAR(20) NOT NULL,
  email         VARCHAR(50) NOT NULL,
  rating        INTEGER,
  access        INTEGER,
  creation_date TIMESTAMP(0)
);

-- The newest 30 days; older ones are in old_stories. The ids of both are one sequence.
CREATE TABLE stories (
  id       SERIAL,
  title    VARCHAR(100),
  body     TEXT,
  date     TIMESTAMP(0),
  writer   INTEGER NOT NULL,
  category INTEGER NOT NULL
);

CREATE TABLE old_stories (
  id       SERIAL,
  title    VARCHAR(100),
  body     TEXT,
  date     TIMESTAMP(0),
  writer   INTEGER NOT NULL,
  category INTEGER NOT NULL
);

-- Stories that wait for an author's review.
CREATE TABLE submissions (
  id       SERIAL,
  title    VARCHAR(100),
  body     TEXT,
  date     TIMESTAMP(0),
  writer   INTEGER,
  category INTEGER NOT NULL
);

-- Comments of stories (old_comments: of old_stories; own id sequence). parent 0 = answers the story itself.
-- childs = number of direct answers. rating is -1..5.
CREATE TABLE comments (
  id       SERIAL,
  writer   INTEGER,
  story_id INTEGER NOT NULL,
  parent   INTEGER,
  childs   INTEGER,
  rating   INTEGER,
  date     TIMESTAMP(0),
  subject  VARCHAR(100),
  comment  TEXT
);

CREATE TABLE old_comments (
  id       SERIAL,
  writer   INTEGER,
  story_id INTEGER NOT NULL,
  parent   INTEGER,
  childs   INTEGER,
  rating   INTEGER,
  date     TIMESTAMP(0),
  subject  VARCHAR(100),
  comment  TEXT
);

CREATE TABLE moderator_log (
  id           SERIAL,
  moderator_id INTEGER NOT NULL,
  comment_id   INTEGER NOT NULL,
  rating       INTEGER,
  date         TIMESTAMP(0)
);
