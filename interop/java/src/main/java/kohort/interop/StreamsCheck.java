package kohort.interop; final class StreamsCheck { static void all(Cluster c, Checks k, java.nio.file.Path p) {} }
