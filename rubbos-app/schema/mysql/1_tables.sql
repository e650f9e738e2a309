-- Tables of RUBBoS (columns and types as in release 1.2.2). Data are loaded into these, indexes follow in 2_indexes.sql.
-- InnoDB, because it is what MySQL offers today; RUBBoS named no engine (MyISAM then). No foreign keys: RUBBoS has none.

DROP DATABASE IF EXISTS rubbos;
CREATE DATABASE rubbos CHARACTER SET utf8mb4;
USE rubbos;

CREATE TABLE categories (
  id   INT UNSIGNED NOT NULL PRIMARY KEY,
  name VARCHAR(50)
) ENGINE = InnoDB;

-- id 0 is "Anonymous Coward". access: 0 = regular user, 1 = author (may post and moderate). Nickname and password are compared
-- byte by byte, as PostgreSQL does; MySQL's default takes no notice of case and accents.
CREATE TABLE users (
  id            INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  firstname     VARCHAR(20),
  lastname      VARCHAR(20),
  nickname      VARCHAR(20) COLLATE utf8mb4_0900_bin NOT NULL,
  password      VARCHAR(20) COLLATE utf8mb4_0900_bin NOT NULL,
  email         VARCHAR(50) NOT NULL,
  rating        INT,
  access        INT,
  creation_date DATETIME
) ENGINE = InnoDB;

-- The newest 30 days; older ones are in old_stories. The ids of both are one sequence.
CREATE TABLE stories (
  id       INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  title    VARCHAR(100),
  body     TEXT,
  date     DATETIME,
  writer   INT UNSIGNED NOT NULL,
  category INT UNSIGNED NOT NULL
) ENGINE = InnoDB;

CREATE TABLE old_stories LIKE stories;

-- Stories that wait for an author's review.
CREATE TABLE submissions (
  id       INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  title    VARCHAR(100),
  body     TEXT,
  date     DATETIME,
  writer   INT UNSIGNED,
  category INT UNSIGNED NOT NULL
) ENGINE = InnoDB;

-- Comments of stories (old_comments: of old_stories; own id sequence). parent 0 = answers the story itself.
-- childs = number of direct answers. rating is -1..5.
CREATE TABLE comments (
  id       INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  writer   INT UNSIGNED,
  story_id INT UNSIGNED NOT NULL,
  parent   INT UNSIGNED,
  childs   INT UNSIGNED,
  rating   INT,
  date     DATETIME,
  subject  VARCHAR(100),
  comment  TEXT
) ENGINE = InnoDB;

CREATE TABLE old_comments LIKE comments;

CREATE TABLE moderator_log (
  id           INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  moderator_id INT UNSIGNED NOT NULL,
  comment_id   INT UNSIGNED NOT NULL,
  rating       INT,
  date         DATETIME
) ENGINE = InnoDB;
