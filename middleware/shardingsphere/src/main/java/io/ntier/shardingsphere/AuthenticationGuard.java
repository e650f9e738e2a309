package io.ntier.shardingsphere;

import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import io.netty.util.ReferenceCountUtil;
import org.apache.shardingsphere.db.protocol.mysql.packet.generic.MySQLErrPacket;
import org.apache.shardingsphere.db.protocol.mysql.packet.generic.MySQLOKPacket;
import org.apache.shardingsphere.db.protocol.postgresql.packet.generic.PostgreSQLErrorResponsePacket;
import org.apache.shardingsphere.db.protocol.postgresql.packet.handshake.PostgreSQLAuthenticationOKPacket;

/**
 * Ends a connection whose log-in failed. 5.1.0 only sends the error and then takes commands as if the log-in had
 * succeeded (CVE-2022-45347, mended in 5.3.0).
 */
final class AuthenticationGuard extends ChannelDuplexHandler {
    private boolean refused;

    @Override
    public void write(final ChannelHandlerContext context, final Object message, final ChannelPromise promise) {
        ChannelPromise result = promise;
        if (message instanceof MySQLErrPacket || message instanceof PostgreSQLErrorResponsePacket) {
            refused = true;
            result = promise.unvoid().addListener(ChannelFutureListener.CLOSE);
        } else if (message instanceof MySQLOKPacket || message instanceof PostgreSQLAuthenticationOKPacket) {
            context.pipeline().remove(this);
        }
        context.write(message, result);
    }

    @Override
    public void channelRead(final ChannelHandlerContext context, final Object message) {
        if (refused) {
            ReferenceCountUtil.release(message);
        } else {
            context.fireChannelRead(message);
        }
    }
}
