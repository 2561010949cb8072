package org.apache.kafka.common.utils;

/**
 * Where the file connectors of Kafka 4.3 look for a version; in 4.4 the class has moved. Needed until those of 4.4 are
 * on Maven Central.
 */
public final class AppInfoParser {
    private AppInfoParser() { }

    public static String getVersion() {
        return org.apache.kafka.common.utils.internals.AppInfoParser.getVersion();
    }
}
