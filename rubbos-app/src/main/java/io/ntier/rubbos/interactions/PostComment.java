package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.CommentTable;
import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.FormHtml;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.web.Params;

/** The form of a comment on a story (parent 0) or of an answer to a comment. */
public final class PostComment implements Interaction {
    @Override
    public void answer(Params params, Db db, Page page) {
        CommentTable table = params.commentTable();
        FormHtml.comment(page, table, params.id("storyId"), params.id("parent"));
    }
}
