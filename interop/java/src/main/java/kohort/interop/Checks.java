package kohort.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import org.apache.kafka.common.KafkaFuture;

/** A list of named checks. Each prints one line: {@code ok NAME} or {@code FAILED NAME reason}. */
final class Checks {
    interface Body {
        void run() throws Exception;
    }

    private record Check(String name, Body body) { }

    /** No check waits longer than this for any one thing. */
    static final long PATIENCE_MS = 30_000;
    private static final long CHECK_LIMIT_S = 150;

    private final List<Check> checks = new ArrayList<>();

    void add(String name, Body body) {
        checks.add(new Check(name, body));
    }

    /** Runs what `only` names (all when empty), `threads` at a time; answers how many failed. */
    int run(String only, int threads) throws InterruptedException {
        ExecutorService pool = Executors.newFixedThreadPool(threads, task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });
        // Each check has its own thread besides, so that one that hangs costs only its own line.
        List<Future<Boolean>> results = new ArrayList<>();
        for (Check check : checks) {
            if (check.name.contains(only)) results.add(pool.submit(() -> runOne(check)));
        }
        int failed = 0;
        for (Future<Boolean> result : results) {
            try {
                if (!result.get()) failed++;
            } catch (ExecutionException unexpected) {
                failed++;
            }
        }
        report((results.size() - failed) + " passed, " + failed + " failed");
        return failed;
    }

    private static boolean runOne(Check check) {
        long began = System.nanoTime();
        ExecutorService own = Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task, check.name);
            thread.setDaemon(true);
            return thread;
        });
        Future<?> done = own.submit(() -> {
            check.body.run();
            return null;
        });
        try {
            done.get(CHECK_LIMIT_S, TimeUnit.SECONDS);
            report("ok " + check.name + " (" + (System.nanoTime() - began) / 1_000_000 + " ms)");
            return true;
        } catch (ExecutionException failure) {
            report("FAILED " + check.name + " " + reason(failure.getCause()));
        } catch (TimeoutException | InterruptedException late) {
            report("FAILED " + check.name + " still running after " + CHECK_LIMIT_S + " s");
        } finally {
            own.shutdownNow();
        }
        return false;
    }

    /** One line: the failure, its causes, and where in these programs it was noticed. */
    private static String reason(Throwable failure) {
        StringBuilder text = new StringBuilder();
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (text.length() > 0) text.append(" <- ");
            text.append(cause instanceof AssertionError ? cause.getMessage() : cause.toString());
        }
        for (StackTraceElement frame : failure.getStackTrace()) {
            boolean here = frame.getClassName().startsWith("kohort.")
                && !frame.getClassName().equals(Checks.class.getName());
            if (here) {
                text.append(" (").append(frame.getFileName()).append(':').append(frame.getLineNumber()).append(')');
                break;
            }
        }
        return text.toString().replaceAll("\\s+", " ");
    }

    /** The real standard output, which checks of the command-line tools replace for a while. */
    private static final java.io.PrintStream OUT = System.out;

    static synchronized void report(String line) {
        OUT.println(line);
        OUT.flush();
    }

    static void that(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    static void equal(Object expected, Object actual, String what) {
        if (!Objects.equals(expected, actual)) {
            throw new AssertionError(what + ": expected " + expected + ", found " + actual);
        }
    }

    /** Waits for a future, and gives its failure as itself. */
    static <T> T get(Future<T> future) throws Exception {
        try {
            return future.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
        } catch (ExecutionException failure) {
            if (failure.getCause() instanceof Exception cause) throw cause;
            throw failure;
        }
    }

    /** The future must fail with exactly this kind of error. */
    static void fails(Class<? extends Throwable> kind, KafkaFuture<?> future, String what) throws Exception {
        fails(kind, () -> get(future), what);
    }

    static void fails(Class<? extends Throwable> kind, Callable<?> action, String what) throws Exception {
        Object answer;
        try {
            answer = action.call();
        } catch (Throwable failure) {
            Throwable cause = failure instanceof ExecutionException ? failure.getCause() : failure;
            if (kind.isInstance(cause)) return;
            throw new AssertionError(what + ": expected " + kind.getSimpleName() + ", got " + cause, failure);
        }
        throw new AssertionError(what + ": expected " + kind.getSimpleName() + ", but it succeeded: " + answer);
    }

    /** Waits until the condition holds; a condition that throws does not hold yet. */
    static void eventually(String what, Callable<Boolean> condition) throws InterruptedException {
        eventually(what, PATIENCE_MS, condition);
    }

    static void eventually(String what, long patienceMs, Callable<Boolean> condition) throws InterruptedException {
        long deadline = System.nanoTime() + patienceMs * 1_000_000;
        Throwable last = null;
        while (true) {
            try {
                if (condition.call()) return;
                last = null;
            } catch (InterruptedException interrupted) {
                throw interrupted;
            } catch (Exception | AssertionError notYet) {
                last = notYet;
            }
            if (System.nanoTime() > deadline) {
                throw new AssertionError("not within " + patienceMs / 1000 + " s: " + what, last);
            }
            Thread.sleep(50);
        }
    }
}
