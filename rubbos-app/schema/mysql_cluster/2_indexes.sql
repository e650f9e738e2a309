-- Indexes of RUBBoS, built after the data are in. As in ../mysql, but for the second indexes on ids, and the index that searches use is on
-- the whole title and subject: NDB has no index on the first characters of a column.

ALTER TABLE users
  ADD UNIQUE INDEX nickname (nickname),
  ADD INDEX auth (nickname, password),
  ADD INDEX search (nickname);

ALTER TABLE stories
  ADD INDEX writer_id (writer),
  ADD INDEX category_id (category),
  ADD INDEX search (title),
  ADD INDEX day (date);

ALTER TABLE old_stories
  ADD INDEX writer_id (writer),
  ADD INDEX category_id (category),
  ADD INDEX search (title),
  ADD INDEX day (date);

ALTER TABLE submissions
  ADD INDEX writer_id (writer),
  ADD INDEX category_id (category),
  ADD INDEX day (date);

ALTER TABLE comments
  ADD INDEX story (story_id),
  ADD INDEX search (subject),
  ADD INDEX parent_id (parent),
  ADD INDEX rating_num (rating);

ALTER TABLE old_comments
  ADD INDEX story (story_id),
  ADD INDEX search (subject),
  ADD INDEX parent_id (parent),
  ADD INDEX rating_num (rating);

ALTER TABLE moderator_log
  ADD INDEX comment (comment_id);

ANALYZE TABLE categories, users, stories, old_stories, submissions, comments, old_comments, moderator_log;
