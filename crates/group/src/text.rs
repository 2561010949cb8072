//! Text from a peer, made safe to print or log.

use std::borrow::Cow;

/// How many characters of a name are printed. Topic names are shorter, and Java clients cut the
/// reasons they give at this length.
pub const NAME_CHARS_MAX: usize = 255;

/// Makes text from a peer safe to print as part of a line: a group id, a client id, an error message.
///
/// Replaces each character that could do more than show itself: control characters (they move the
/// cursor, change the terminal's title or begin another line), the Unicode line separators, and the
/// characters that change the direction of text (CVE-2021-42574) or that are invisible.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(is_unsafe) {
        Cow::Owned(text.replace(is_unsafe, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// [`printable`], and cut after [`NAME_CHARS_MAX`] characters.
pub fn printable_name(text: &str) -> Cow<'_, str> {
    cut(text, NAME_CHARS_MAX)
}

/// How many characters of a line are printed that is made of several such texts.
const LINE_CHARS_MAX: usize = 8_000;

/// A whole line that contains text from peers: [`printable`], and cut if it is overlong.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    cut(text, LINE_CHARS_MAX)
}

fn cut(text: &str, chars_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => Cow::Owned(format!("{}…", printable(&text[..end]))),
        None => printable(text),
    }
}

fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{00ad}'
                | '\u{061c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_do_more_than_show_themselves_are_replaced() {
        assert_eq!(printable("a\nb"), "a\u{fffd}b");
        for hostile in [
            "\x1b[2J",
            "\x1b]0;title\x07",
            "a\nb",
            "a\rb",
            "a\tb",
            "\u{9b}2J",
            "\u{202e}gpj.exe",
            "\u{2066}a",
            "a\u{200b}b",
            "a\u{2028}b",
            "\u{feff}a",
            "\u{e0041}a",
            "\0",
            "\x7f",
        ] {
            let safe = printable(hostile);
            assert!(safe.contains('\u{fffd}'), "{hostile:?}");
            assert!(!safe.contains(is_unsafe), "{hostile:?}");
        }
    }

    #[test]
    fn text_in_any_language_stays_as_it_is() {
        for text in [
            "orders",
            "commandes-été",
            "注文",
            "заказы",
            "الطلبات",
            "🚚 1",
        ] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn long_names_are_cut() {
        let long = "é".repeat(10_000);
        let cut = printable_name(&long);
        assert_eq!(cut.chars().count(), NAME_CHARS_MAX + 1);
        assert!(cut.ends_with('…'));
        let just = "é".repeat(NAME_CHARS_MAX);
        assert_eq!(printable_name(&just), just);
    }
}
