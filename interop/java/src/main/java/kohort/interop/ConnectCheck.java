package kohort.interop; final class ConnectCheck { static void all(Cluster c, Checks k, java.nio.file.Path p) {} }
