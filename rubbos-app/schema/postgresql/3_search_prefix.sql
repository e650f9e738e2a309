-- What MySQL's subject(10) becomes in PostgreSQL: an index on an expression. The searches name the column, not the expression, so
-- PostgreSQL cannot use it: every search reads its table.
CREATE INDEX stories_search ON stories (left(title, 10));
CREATE INDEX old_stories_search ON old_stories (left(title, 10));
CREATE INDEX comments_search ON comments (left(subject, 10));
CREATE INDEX old_comments_search ON old_comments (left(subject, 10));
ANALYZE;
