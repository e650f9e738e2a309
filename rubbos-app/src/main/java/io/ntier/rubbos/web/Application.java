package io.ntier.rubbos.web;

import io.ntier.rubbos.db.ConnectionPool;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletContextEvent;
import jakarta.servlet.ServletContextListener;
import jakarta.servlet.ServletRegistration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Puts the application together when Tomcat starts it, and takes it apart when it stops. */
public final class Application implements ServletContextListener {
    private Set<ConnectionPool> pools = Set.of();
    private StatusWriter status;
    private Tracer tracer;

    @Override
    public void contextInitialized(ServletContextEvent event) {
        Config config = Config.load();
        Map<String, Routes.Route> routes = Routes.all(config.losesIndex());
        List<ConnectionPool> poolOfServlet = config.openPools(routes.size());
        pools = new LinkedHashSet<>(poolOfServlet);
        tracer = config.traceFile() == null ? null : new Tracer(config.traceFile());
        ServletContext context = event.getServletContext();
        int i = 0;
        for (Map.Entry<String, Routes.Route> route : routes.entrySet()) {
            InteractionServlet servlet = new InteractionServlet(route.getKey(), route.getValue(), poolOfServlet.get(i++), tracer);
            register(context, route.getKey(), servlet, Routes.PREFIX + route.getKey());
        }
        register(context, "error", new ErrorServlet(), ErrorServlet.PATH);
        if (config.statusFile() != null) {
            status = new StatusWriter(config.statusFile(), pools);
            status.start();
        }
    }

    private static void register(ServletContext context, String name, jakarta.servlet.Servlet servlet, String path) {
        ServletRegistration.Dynamic registration = context.addServlet(name, servlet);
        registration.addMapping(path);
        registration.setLoadOnStartup(1);
    }

    @Override
    public void contextDestroyed(ServletContextEvent event) {
        if (status != null) {
            status.stop();
        }
        if (tracer != null) {
            tracer.close();
        }
        pools.forEach(ConnectionPool::close);
    }
}
