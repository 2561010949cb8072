package kohort.interop;

import java.util.HashMap;
import java.util.Map;

/** The words of a command line: a verb, then {@code --name value} pairs. */
final class Arguments {
    final String verb;
    private final Map<String, String> values = new HashMap<>();

    Arguments(String[] words) {
        if (words.length == 0) throw new IllegalArgumentException("a verb is missing");
        verb = words[0];
        for (int i = 1; i < words.length; i += 2) {
            if (!words[i].startsWith("--") || i + 1 == words.length) {
                throw new IllegalArgumentException("expected --name value, found " + words[i]);
            }
            values.put(words[i].substring(2), words[i + 1]);
        }
    }

    String text(String name) {
        String value = values.get(name);
        if (value == null) throw new IllegalArgumentException("--" + name + " is missing");
        return value;
    }

    String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    int number(String name) {
        return Integer.parseInt(text(name));
    }
}
