package io.ntier.shardingsphere;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.netty.channel.embedded.EmbeddedChannel;
import org.apache.shardingsphere.db.protocol.mysql.constant.MySQLServerErrorCode;
import org.apache.shardingsphere.db.protocol.mysql.packet.generic.MySQLErrPacket;
import org.apache.shardingsphere.db.protocol.mysql.packet.generic.MySQLOKPacket;
import org.junit.jupiter.api.Test;

class AuthenticationGuardTest {
    private final EmbeddedChannel channel = new EmbeddedChannel(new AuthenticationGuard());

    @Test
    void aRefusedLogInEndsTheConnection() {
        channel.writeOutbound(new MySQLErrPacket(2, MySQLServerErrorCode.ER_ACCESS_DENIED_ERROR, "user", "host", "YES"));
        assertFalse(channel.isOpen());
    }

    @Test
    void commandsSentTogetherWithARefusedLogInAreDropped() {
        channel.write(new MySQLErrPacket(2, MySQLServerErrorCode.ER_ACCESS_DENIED_ERROR, "user", "host", "YES")); // not flushed
        channel.writeInbound("a command");
        assertNull(channel.readInbound());
    }

    @Test
    void anErrorAfterTheLogInDoesNotEndTheConnection() {
        channel.writeOutbound(new MySQLOKPacket(2));
        channel.writeOutbound(new MySQLErrPacket(1, MySQLServerErrorCode.ER_BAD_DB_ERROR, "no_such_schema"));
        assertTrue(channel.isOpen());
        assertNull(channel.pipeline().get(AuthenticationGuard.class));
    }
}
