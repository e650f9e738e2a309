package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;

/** Who a request's nickname and password belong to. {@code access} other than 0 marks an author. */
record Account(long id, int access) {
    static final String ACCOUNT = "SELECT id, access FROM users WHERE nickname = ? AND password = ?";

    /** Null if there is none; so is it for the request that names nobody. */
    static Account of(Params params, Db db) throws SQLException {
        return db.first(ACCOUNT, row -> new Account(row.getLong(1), row.getInt(2)),
                params.text("nickname"), params.text("password"));
    }

    boolean isAuthor() {
        return access != 0;
    }
}
