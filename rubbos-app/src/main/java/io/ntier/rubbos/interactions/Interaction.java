package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.web.BadRequestException;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;

/** One action of a RUBBoS user: reads parameters, runs statements, writes the page. Without state, used by all threads. */
public interface Interaction {
    /** As RUBBoS names it; the page says that it made it. */
    default String name() {
        return getClass().getSimpleName();
    }

    /** @throws BadRequestException if a parameter is missing or out of range, before any statement runs */
    void answer(Params params, Db db, Page page) throws SQLException;
}
