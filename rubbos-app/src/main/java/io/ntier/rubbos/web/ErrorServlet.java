package io.ntier.rubbos.web;

import io.ntier.rubbos.html.Page;
import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/** The page for what no interaction answered (unknown path, wrong method, defect): status and nothing from inside. */
final class ErrorServlet extends HttpServlet {
    static final String PATH = "/error";

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
        Object status = request.getAttribute(RequestDispatcher.ERROR_STATUS_CODE);
        int code = status instanceof Integer number ? number : HttpServletResponse.SC_NOT_FOUND;
        response.setStatus(code);
        response.setContentType("text/html;charset=UTF-8");
        Page page = new Page("Error");
        page.html("<p>ERROR: HTTP status ").number(code).html("</p>\n");
        response.getOutputStream().write(page.end(0, 0));
    }
}
