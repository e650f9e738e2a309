package io.ntier.rubbos.interactions;

import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.web.Params;
import java.sql.SQLException;

/** A new user, if nobody has the nickname yet. A taken one is no error for RUBBoS' clients: their random numbers do meet. */
public final class RegisterUser implements Interaction {
    static final String NICKNAME = "SELECT id, nickname FROM users WHERE nickname = ?";
    static final String NEW_USER = """
            INSERT INTO users (firstname, lastname, nickname, password, email, rating, access, creation_date) \
            VALUES (?, ?, ?, ?, ?, 0, 0, NOW())""";
    static final String REGISTERED = "SELECT id, creation_date FROM users WHERE nickname = ?";
    /** As the schema. */
    private static final int NAME_MAX_CHARS = 20;
    private static final int EMAIL_MAX_CHARS = 50;

    @Override
    public void answer(Params params, Db db, Page page) throws SQLException {
        String firstname = params.required("firstname", NAME_MAX_CHARS);
        String lastname = params.required("lastname", NAME_MAX_CHARS);
        String nickname = params.required("nickname", NAME_MAX_CHARS);
        String email = params.required("email", EMAIL_MAX_CHARS);
        String password = params.required("password", NAME_MAX_CHARS);
        if (db.first(NICKNAME, row -> row.getLong(1), nickname) != null
                || !db.insert(NEW_USER, firstname, lastname, nickname, password, email)) {
            page.html("<p>The nickname ").text(nickname).html(" is already in use. Please choose another one.</p>\n");
            return;
        }
        page.html("<h2>Welcome to RUBBoS, ").text(nickname).html("</h2>\n<p>");
        db.list(REGISTERED, row -> page.html("User ").number(row.getLong(1)).html(", registered on ").date(Db.date(row, 2)), nickname);
        page.html("</p>\n<p>Name: ").text(firstname).html(" ").text(lastname).html("<br>E-mail address: ").text(email)
                .html("</p>\n");
    }
}
