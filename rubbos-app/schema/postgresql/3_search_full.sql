-- Searches use an index on the whole title or subject.
CREATE INDEX stories_search ON stories (title varchar_pattern_ops);
CREATE INDEX old_stories_search ON old_stories (title varchar_pattern_ops);
CREATE INDEX comments_search ON comments (subject varchar_pattern_ops);
CREATE INDEX old_comments_search ON old_comments (subject varchar_pattern_ops);
ANALYZE;
