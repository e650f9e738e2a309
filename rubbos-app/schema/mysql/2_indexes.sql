-- Indexes of RUBBoS, built after the data are in (faster than row by row). As in the original:
-- * every id has a UNIQUE index beside the primary key;
-- * comments have no index on date: every search in them sorts;
-- * the index that searches use is a matter of search_index.sh.

ALTER TABLE categories ADD UNIQUE INDEX id (id);

ALTER TABLE users
  ADD UNIQUE INDEX id (id),
  ADD UNIQUE INDEX nickname (nickname),
  ADD INDEX auth (nickname, password),
  ADD INDEX search (nickname);

ALTER TABLE stories
  ADD UNIQUE INDEX id (id),
  ADD INDEX writer_id (writer),
  ADD INDEX category_id (category),
  ADD INDEX day (date);

ALTER TABLE old_stories
  ADD UNIQUE INDEX id (id),
  ADD INDEX writer_id (writer),
  ADD INDEX category_id (category),
  ADD INDEX day (date);

ALTER TABLE submissions
  ADD UNIQUE INDEX id (id),
  ADD INDEX writer_id (writer),
  ADD INDEX category_id (category),
  ADD INDEX day (date);

ALTER TABLE comments
  ADD UNIQUE INDEX id (id),
  ADD INDEX story (story_id),
  ADD INDEX parent_id (parent),
  ADD INDEX rating_num (rating);

ALTER TABLE old_comments
  ADD UNIQUE INDEX id (id),
  ADD INDEX story (story_id),
  ADD INDEX parent_id (parent),
  ADD INDEX rating_num (rating);

ALTER TABLE moderator_log
  ADD UNIQUE INDEX id (id),
  ADD INDEX comment (comment_id);

ANALYZE TABLE categories, users, stories, old_stories, submissions, comments, old_comments, moderator_log;
