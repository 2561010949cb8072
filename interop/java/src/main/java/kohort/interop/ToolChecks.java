package kohort.interop; final class ToolChecks { static void all(Cluster c, Checks k, java.nio.file.Path p) {} }
