/**
 * What ShardingSphere-Proxy 5.1.0 lacks for a C tier that behaves as C-JDBC did: reads go to the replica with the least
 * pending statements, the choice is recorded every second, and the proxy listens on one address only.
 */
package io.ntier.shardingsphere;
