//! Text of somebody else, made fit for a terminal or a log.

use alloc::string::String;

use unicode_general_category::{GeneralCategory, get_general_category};

/// Returns true for characters that a terminal obeys or hides: Unicode's control and format characters,
/// line and paragraph separators, and ignorable characters.
pub fn is_hidden(c: char) -> bool {
    use GeneralCategory::{Control, Format, LineSeparator, ParagraphSeparator};
    let category = get_general_category(c);
    matches!(category, Control | Format | LineSeparator | ParagraphSeparator) || is_ignorable(c)
}

/// Characters of other categories that are ignorable (Unicode 16, `Default_Ignorable_Code_Point`).
/// Variation selectors of emoji (U+FE00 to U+FE0F) stay: they only choose between two pictures.
fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2065}'
            | '\u{3164}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The text with a blank for each control character and U+FFFD for every other hidden one.
pub fn plain(text: &str) -> String {
    text.chars().map(shown).collect()
}

/// Replaces a hidden character as [`plain`] does.
fn shown(c: char) -> char {
    match c {
        c if c.is_control() => ' ',
        c if is_hidden(c) => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_never_reach_a_terminal() {
        let hidden = [
            "\0\u{7}\u{8}\t\n\r\u{1b}\u{1f}\u{7f}\u{80}\u{85}\u{9b}\u{9f}",
            "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}",
            "\u{2066}\u{2067}\u{2068}\u{2069}\u{206a}\u{206f}",
            "\u{ad}\u{200b}\u{200c}\u{200d}\u{2060}\u{2061}\u{2064}\u{feff}\u{180e}",
            "\u{2028}\u{2029}\u{fff9}\u{fffb}\u{e0001}\u{e0020}\u{e0061}\u{e007f}",
            "\u{34f}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{2065}\u{e0100}\u{e01ef}",
        ];
        for c in hidden.iter().flat_map(|row| row.chars()) {
            assert!(is_hidden(c), "U+{:04x}", u32::from(c));
            let shown = plain(alloc::format!("a{c}b").as_str());
            assert!(shown == "a b" || shown == "a\u{fffd}b", "U+{:04x}: {shown}", u32::from(c));
        }
    }

    #[test]
    fn letters_of_all_scripts_stay() {
        let text = "Zürich e\u{301} 東京 עברית العربية ไทย ☎\u{fe0f} 🛰 - <a>\"'\\ \u{fffd}";
        assert_eq!(plain(text), text);
        assert!(!text.chars().any(is_hidden));
    }
}
