package io.ntier.rubbos.web;

import io.ntier.rubbos.db.ConnectionPool;
import io.ntier.rubbos.db.Db;
import io.ntier.rubbos.html.Page;
import io.ntier.rubbos.interactions.Interaction;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.sql.SQLException;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Between HTTP and an interaction: page frame, status, second try. GET and POST are alike, as in the original. HEAD is GET without
 * the page (the container sees to that), but it never writes: where GET would, the answer is 405.
 */
final class InteractionServlet extends HttpServlet {
    private static final Logger LOG = Logger.getLogger(InteractionServlet.class.getName());
    /** Set by Tomcat if it could not decode the parameters. */
    private static final String PARSE_FAILED = "org.apache.catalina.parameter_parse_failed";

    private final String name;
    private final transient Routes.Route route;
    private final transient ConnectionPool pool;
    private final transient Tracer tracer;

    /** @param tracer null: no request is followed */
    InteractionServlet(String name, Routes.Route route, ConnectionPool pool, Tracer tracer) {
        this.name = name;
        this.route = route;
        this.pool = pool;
        this.tracer = tracer;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        long start = System.nanoTime();
        Tracer.Request trace = tracer == null ? null : tracer.begin(request.getHeader("traceparent"));
        request.setCharacterEncoding("UTF-8");
        Page page = null;
        int statements = 0;
        try {
            Params params = new Params(request::getParameter);
            Interaction interaction = route.choose(params);
            if (request.getAttribute(PARSE_FAILED) != null) {
                throw new BadRequestException("the parameters cannot be decoded");
            }
            page = new Page(interaction.name());
            statements = run(interaction, params, page, !request.getMethod().equals("HEAD"), trace);
        } catch (BadRequestException e) {
            page = failure(response, HttpServletResponse.SC_BAD_REQUEST, e.getMessage());
        } catch (Db.ReadOnlyException e) {
            response.setHeader("Allow", "GET, POST");
            page = failure(response, HttpServletResponse.SC_METHOD_NOT_ALLOWED, "HEAD does not write");
        } catch (SQLException e) {
            LOG.log(Level.WARNING, "{0}: {1}", new Object[] {name, e.toString()});
            page = failure(response, HttpServletResponse.SC_SERVICE_UNAVAILABLE, "the database does not answer");
        }
        byte[] body = page.end((System.nanoTime() - start) / 1_000_000, statements);
        response.setContentType("text/html;charset=UTF-8");
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
        if (trace != null) {
            trace.end(name);
        }
    }

    @Override
    protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
        doGet(request, response);
    }

    private Page failure(HttpServletResponse response, int status, String message) {
        response.setStatus(status);
        return new Page(name).html("<p>ERROR: ").text(message).html("</p>\n");
    }

    /** If the connection was broken before anything was written, a new one is tried, once. */
    private int run(Interaction interaction, Params params, Page page, boolean mayWrite, Tracer.Request trace)
            throws SQLException {
        try (Db db = new Db(pool, mayWrite, trace)) {
            try {
                interaction.answer(params, db, page);
            } catch (SQLException e) {
                if (!db.recover(e)) {
                    throw e;
                }
                page.restart();
                interaction.answer(params, db, page);
            }
            return db.statements();
        }
    }
}
