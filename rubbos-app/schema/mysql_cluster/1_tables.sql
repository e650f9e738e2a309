-- Tables of RUBBoS in NDB (columns as in release 1.2.2 and in ../mysql). Data are loaded into these, indexes follow in 2_indexes.sql.
-- What differs from InnoDB, and why, is in docs/rubbos.md:
-- * no second, unique index on an id that is the primary key: in NDB it would be a table of its own;
-- * comments are spread by story, so their primary key holds story_id, and an id alone is found by a unique index;
-- * of a TEXT 256 bytes are in the row, the rest in rows of a hidden table.

DROP DATABASE IF EXISTS rubbos;
CREATE DATABASE rubbos CHARACTER SET utf8mb4;
USE rubbos;

CREATE TABLE categories (
  id   INT UNSIGNED NOT NULL,
  name VARCHAR(50),
  PRIMARY KEY (id)
) ENGINE = NDBCLUSTER;

-- id 0 is "Anonymous Coward". access: 0 = regular user, 1 = author (may post and moderate). Nickname and password are compared byte
-- by byte, as PostgreSQL does; MySQL's default takes no notice of case and accents. Nobody asks for a range of ids: USING HASH.
CREATE TABLE users (
  id            INT UNSIGNED NOT NULL AUTO_INCREMENT,
  firstname     VARCHAR(20),
  lastname      VARCHAR(20),
  nickname      VARCHAR(20) COLLATE utf8mb4_0900_bin NOT NULL,
  password      VARCHAR(20) COLLATE utf8mb4_0900_bin NOT NULL,
  email         VARCHAR(50) NOT NULL,
  rating        INT,
  access        INT,
  creation_date DATETIME,
  PRIMARY KEY (id) USING HASH
) ENGINE = NDBCLUSTER;

-- The newest 30 days; older ones are in old_stories. The ids of both are one sequence.
CREATE TABLE stories (
  id       INT UNSIGNED NOT NULL AUTO_INCREMENT,
  title    VARCHAR(100),
  body     TEXT,
  date     DATETIME,
  writer   INT UNSIGNED NOT NULL,
  category INT UNSIGNED NOT NULL,
  PRIMARY KEY (id)
) ENGINE = NDBCLUSTER PARTITION BY KEY (id);

CREATE TABLE old_stories LIKE stories;

-- Stories that wait for an author's review.
CREATE TABLE submissions (
  id       INT UNSIGNED NOT NULL AUTO_INCREMENT,
  title    VARCHAR(100),
  body     TEXT,
  date     DATETIME,
  writer   INT UNSIGNED,
  category INT UNSIGNED NOT NULL,
  PRIMARY KEY (id)
) ENGINE = NDBCLUSTER;

-- Comments of stories (old_comments: of old_stories; own id sequence). parent 0 = answers the story itself. childs = number of direct
-- answers. rating is -1..5. A story's comments are in one partition, that of the story.
CREATE TABLE comments (
  id       INT UNSIGNED NOT NULL AUTO_INCREMENT,
  writer   INT UNSIGNED,
  story_id INT UNSIGNED NOT NULL,
  parent   INT UNSIGNED,
  childs   INT UNSIGNED,
  rating   INT,
  date     DATETIME,
  subject  VARCHAR(100),
  comment  TEXT,
  PRIMARY KEY (id, story_id),
  UNIQUE INDEX id (id) USING HASH
) ENGINE = NDBCLUSTER PARTITION BY KEY (story_id);

CREATE TABLE old_comments LIKE comments;

CREATE TABLE moderator_log (
  id           INT UNSIGNED NOT NULL AUTO_INCREMENT,
  moderator_id INT UNSIGNED NOT NULL,
  comment_id   INT UNSIGNED NOT NULL,
  rating       INT,
  date         DATETIME,
  PRIMARY KEY (id) USING HASH
) ENGINE = NDBCLUSTER;
