-- Indexes of RUBBoS, built after the data are in. As in ../mysql, but for the second indexes on ids, and the index that searches use is on
-- the whole title and subject: NDB has no index on the first characters of a column. A statement adds one index, in place: NDB would
-- copy the whole table for two of them (needs room for a second table, and ends in "the table is full").

CREATE UNIQUE INDEX nickname ON users (nickname) ALGORITHM = INPLACE;
CREATE INDEX auth ON users (nickname, password) ALGORITHM = INPLACE;
CREATE INDEX search ON users (nickname) ALGORITHM = INPLACE;

CREATE INDEX writer_id ON stories (writer) ALGORITHM = INPLACE;
CREATE INDEX category_id ON stories (category) ALGORITHM = INPLACE;
CREATE INDEX search ON stories (title) ALGORITHM = INPLACE;
CREATE INDEX day ON stories (date) ALGORITHM = INPLACE;

CREATE INDEX writer_id ON old_stories (writer) ALGORITHM = INPLACE;
CREATE INDEX category_id ON old_stories (category) ALGORITHM = INPLACE;
CREATE INDEX search ON old_stories (title) ALGORITHM = INPLACE;
CREATE INDEX day ON old_stories (date) ALGORITHM = INPLACE;

CREATE INDEX writer_id ON submissions (writer) ALGORITHM = INPLACE;
CREATE INDEX category_id ON submissions (category) ALGORITHM = INPLACE;
CREATE INDEX day ON submissions (date) ALGORITHM = INPLACE;

CREATE INDEX story ON comments (story_id) ALGORITHM = INPLACE;
CREATE INDEX search ON comments (subject) ALGORITHM = INPLACE;
CREATE INDEX parent_id ON comments (parent) ALGORITHM = INPLACE;
CREATE INDEX rating_num ON comments (rating) ALGORITHM = INPLACE;

CREATE INDEX story ON old_comments (story_id) ALGORITHM = INPLACE;
CREATE INDEX search ON old_comments (subject) ALGORITHM = INPLACE;
CREATE INDEX parent_id ON old_comments (parent) ALGORITHM = INPLACE;
CREATE INDEX rating_num ON old_comments (rating) ALGORITHM = INPLACE;

CREATE INDEX comment ON moderator_log (comment_id) ALGORITHM = INPLACE;

ANALYZE TABLE categories, users, stories, old_stories, submissions, comments, old_comments, moderator_log;
