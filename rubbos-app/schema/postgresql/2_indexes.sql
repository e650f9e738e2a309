-- Indexes of RUBBoS, built after the data are in. As for MySQL, but:
-- * the primary key is the unique index on id (MySQL's second one would be a mere copy);
-- * varchar_pattern_ops, so that LIKE 'word%' can use an index whatever the locale;
-- * the index that searches use is a matter of search_index.sh.

ALTER TABLE categories ADD PRIMARY KEY (id);

ALTER TABLE users ADD PRIMARY KEY (id);
CREATE UNIQUE INDEX users_nickname ON users (nickname);
CREATE INDEX users_auth ON users (nickname, password);
CREATE INDEX users_search ON users (nickname varchar_pattern_ops);

ALTER TABLE stories ADD PRIMARY KEY (id);
CREATE INDEX stories_writer ON stories (writer);
CREATE INDEX stories_category ON stories (category);
CREATE INDEX stories_day ON stories (date);

ALTER TABLE old_stories ADD PRIMARY KEY (id);
CREATE INDEX old_stories_writer ON old_stories (writer);
CREATE INDEX old_stories_category ON old_stories (category);
CREATE INDEX old_stories_day ON old_stories (date);

ALTER TABLE submissions ADD PRIMARY KEY (id);
CREATE INDEX submissions_writer ON submissions (writer);
CREATE INDEX submissions_category ON submissions (category);
CREATE INDEX submissions_day ON submissions (date);

ALTER TABLE comments ADD PRIMARY KEY (id);
CREATE INDEX comments_story ON comments (story_id);
CREATE INDEX comments_parent ON comments (parent);
CREATE INDEX comments_rating ON comments (rating);

ALTER TABLE old_comments ADD PRIMARY KEY (id);
CREATE INDEX old_comments_story ON old_comments (story_id);
CREATE INDEX old_comments_parent ON old_comments (parent);
CREATE INDEX old_comments_rating ON old_comments (rating);

ALTER TABLE moderator_log ADD PRIMARY KEY (id);
CREATE INDEX moderator_log_comment ON moderator_log (comment_id);

-- New rows get ids beyond the loaded ones; the next story's id is beyond those of both tables.
SELECT setval(pg_get_serial_sequence('users', 'id'), (SELECT GREATEST(MAX(id), 1) FROM users));
SELECT setval(pg_get_serial_sequence('stories', 'id'), (SELECT GREATEST(MAX(id), 1) FROM stories));
SELECT setval(pg_get_serial_sequence('old_stories', 'id'), (SELECT GREATEST(MAX(id), 1) FROM old_stories));
SELECT setval(pg_get_serial_sequence('submissions', 'id'), (SELECT COALESCE(MAX(id), 1) FROM submissions));
SELECT setval(pg_get_serial_sequence('comments', 'id'), (SELECT GREATEST(MAX(id), 1) FROM comments));
SELECT setval(pg_get_serial_sequence('old_comments', 'id'), (SELECT GREATEST(MAX(id), 1) FROM old_comments));
ANALYZE;
