package io.ntier.rubbos.web;

import io.ntier.rubbos.db.ConnectionPool;
import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.interactions.Interaction;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Between HTTP and an interaction: connection, page frame, status. GET and POST are alike, as in the original. */
final class InteractionServlet extends HttpServlet {
    private static final Logger LOG = Logger.getLogger(InteractionServlet.class.getName());
    /** Set by Tomcat if it could not decode the parameters. */
    private static final String PARSE_FAILED = "org.apache.catalina.parameter_parse_failed";

    private final String name;
    private final transient Routes.Route route;
    private final transient ConnectionPool pool;

    InteractionServlet(String name, Routes.Route route, ConnectionPool pool) {
        this.name = name;
        this.route = route;
        this.pool = pool;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        long start = System.nanoTime();
        request.setCharacterEncoding("UTF-8");
        Page page = new Page(name);
        int statements = 0;
        try {
            Params params = new Params(request::getParameter);
            Interaction interaction = route.choose(params);
            if (request.getAttribute(PARSE_FAILED) != null) {
                throw new BadRequestException("the parameters cannot be decoded");
            }
            page = new Page(interaction.name());
            statements = interaction.usesDatabase() ? withConnection(interaction, params, page) : without(interaction, params, page);
        } catch (BadRequestException e) {
            fail(response, HttpServletResponse.SC_BAD_REQUEST, page, e.getMessage());
        } catch (SQLException e) {
            LOG.log(Level.WARNING, "{0}: {1}", new Object[] {page.name(), e.toString()});
            fail(response, HttpServletResponse.SC_SERVICE_UNAVAILABLE, page, "the database does not answer");
        }
        byte[] body = page.end((System.nanoTime() - start) / 1_000_000, statements);
        response.setContentType("text/html;charset=UTF-8");
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }

    @Override
    protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
        doGet(request, response);
    }

    private static void fail(HttpServletResponse response, int status, Page page, String message) {
        response.setStatus(status);
        page.restart();
        page.html("<p>ERROR: ").text(message).html("</p>\n");
    }

    private static int without(Interaction interaction, Params params, Page page) throws SQLException {
        interaction.answer(params, new Db(null), page);
        return 0;
    }

    /** The connection is held until the page is complete. If it was broken, one new one is tried: all interactions only read. */
    private int withConnection(Interaction interaction, Params params, Page page) throws SQLException {
        Connection connection = pool.take();
        try {
            Db db = new Db(connection);
            try {
                interaction.answer(params, db, page);
            } catch (SQLException e) {
                if (!ConnectionPool.broke(connection, e)) {
                    throw e;
                }
                connection = pool.replace(connection);
                page.restart();
                db = new Db(connection);
                interaction.answer(params, db, page);
            }
            return db.statements();
        } finally {
            pool.give(connection);
        }
    }
}
