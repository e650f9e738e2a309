package io.ntier.shardingsphere;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.epoll.EpollEventLoopGroup;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.socket.SocketChannel;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.sql.SQLException;
import org.apache.shardingsphere.infra.config.props.ConfigurationPropertyKey;
import org.apache.shardingsphere.proxy.backend.context.ProxyContext;
import org.apache.shardingsphere.proxy.config.ProxyConfigurationLoader;
import org.apache.shardingsphere.proxy.frontend.netty.FrontendChannelInboundHandler;
import org.apache.shardingsphere.proxy.frontend.netty.ServerHandlerInitializer;
import org.apache.shardingsphere.proxy.frontend.protocol.FrontDatabaseProtocolTypeFactory;
import org.apache.shardingsphere.proxy.initializer.BootstrapInitializer;

/**
 * Starts ShardingSphere-Proxy on one address. The proxy's own main class can only listen on all addresses.
 *
 * <p>Arguments: ADDRESS PORT CONFIGURATION_DIRECTORY STATUS_FILE. System property {@value #TRACE}: file of the trace of all
 * statements ({@link Trace}); without it there is none. Exit code 2: the configuration is wrong.
 */
public final class ProxyMain {
    static final String TRACE = "ntier.trace";

    private ProxyMain() {
    }

    public static void main(final String[] args) throws IOException, InterruptedException, SQLException {
        if (args.length != 4) {
            fail("usage: ProxyMain ADDRESS PORT CONFIGURATION_DIRECTORY STATUS_FILE");
        }
        InetSocketAddress address = new InetSocketAddress(args[0], Integer.parseInt(args[1]));
        try {
            new BootstrapInitializer().init(ProxyConfigurationLoader.load(args[2]), address.getPort());
        } catch (IllegalArgumentException | IllegalStateException e) {
            fail(args[2] + ": " + e.getMessage());
        }
        Trace trace = trace();
        for (String schema : ProxyContext.getInstance().getAllSchemaNames()) {
            Replicas.register(ProxyContext.getInstance().getContextManager().getDataSourceMap(schema), trace);
        }
        StatusWriter.start(Path.of(args[3]));
        Channel server = listen(address);
        tellServiceManager();
        server.closeFuture().sync();
    }

    private static Trace trace() {
        String file = System.getProperty(TRACE);
        if (file == null) {
            return null;
        }
        Trace trace = new Trace(Path.of(file));
        trace.start();
        return trace;
    }

    /** The same options as the proxy's own start, but bound to {@code address}. */
    private static Channel listen(final InetSocketAddress address) throws InterruptedException {
        int workers = ProxyContext.getInstance().getContextManager().getMetaDataContexts().getProps()
                .getValue(ConfigurationPropertyKey.PROXY_FRONTEND_EXECUTOR_SIZE);
        EventLoopGroup workerGroup = new EpollEventLoopGroup(workers);
        return new ServerBootstrap().group(new EpollEventLoopGroup(1), workerGroup)
                .channel(EpollServerSocketChannel.class)
                .option(ChannelOption.SO_BACKLOG, 1024)
                .childOption(ChannelOption.WRITE_BUFFER_WATER_MARK, new WriteBufferWaterMark(8 << 20, 16 << 20))
                .childOption(ChannelOption.ALLOCATOR, PooledByteBufAllocator.DEFAULT)
                .childOption(ChannelOption.TCP_NODELAY, true)
                .childHandler(new ClientInitializer())
                .bind(address).sync().channel();
    }

    /** systemd (Type=notify) regards the service as started only now. */
    private static void tellServiceManager() throws IOException, InterruptedException {
        if (System.getenv("NOTIFY_SOCKET") != null) {
            new ProcessBuilder("systemd-notify", "--ready").redirectError(ProcessBuilder.Redirect.INHERIT).start().waitFor();
        }
    }

    private static void fail(final String message) {
        System.err.println(message);
        System.exit(2);
    }

    private static final class ClientInitializer extends ChannelInitializer<SocketChannel> {
        @Override
        protected void initChannel(final SocketChannel channel) {
            ChannelPipeline pipeline = channel.pipeline();
            pipeline.addLast(new ServerHandlerInitializer(FrontDatabaseProtocolTypeFactory.getDatabaseType()));
            pipeline.addBefore(pipeline.context(FrontendChannelInboundHandler.class).name(), "authentication-guard",
                    new AuthenticationGuard());
        }
    }
}
