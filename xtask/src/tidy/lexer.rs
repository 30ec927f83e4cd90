//! Rust source without its comments and literals, line for line.
//!
//! This is no parser: it knows where comments, strings and character literals begin and end, so that a rule that looks
//! for a word does not find it in prose.

/// Returns the source with every comment and every string and character literal turned into blanks. Line breaks stay, so
/// that line numbers agree.
pub(super) fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest),
            '\'' => character(rest).unwrap_or(0),
            'r' | 'b' | 'c' if !ends_in_word(&code) => prefixed_literal(rest).unwrap_or(0),
            _ => 0,
        };
        if length == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let blank = |c| if c == '\n' { '\n' } else { ' ' };
            code.extend(rest[..length].chars().map(blank));
            rest = &rest[length..];
        }
    }
    code
}

/// Tells whether a line of code holds a word, not as a part of a longer one.
pub(super) fn holds_word(line: &str, word: &str) -> bool {
    let mut rest = line;
    while let Some(start) = rest.find(word) {
        let end = start + word.len();
        let after = rest[end..].chars().next().is_some_and(is_word);
        if !ends_in_word(&rest[..start]) && !after {
            return true;
        }
        rest = &rest[end..];
    }
    false
}

/// Tells whether a character can be part of an identifier.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Tells whether a text ends within an identifier.
fn ends_in_word(text: &str) -> bool {
    text.chars().next_back().is_some_and(is_word)
}

/// Returns the length of a block comment, nested ones included.
fn block_comment(source: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < source.len() {
        let rest = &source.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at.min(source.len())
}

/// Returns the length of a string literal that begins with its quote.
fn string(source: &str) -> usize {
    let mut escaped = false;
    for (index, c) in source.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    source.len()
}

/// Returns the length of a character literal, `None` when the quote begins a lifetime or a label.
fn character(source: &str) -> Option<usize> {
    let mut characters = source.char_indices().skip(1);
    let (_, first) = characters.next()?;
    if first == '\\' {
        characters.next()?;
        let (end, _) = characters.find(|&(_, c)| c == '\'')?;
        return Some(end + 1);
    }
    let (end, quote) = characters.next()?;
    (quote == '\'').then_some(end + 1)
}

/// Returns the length of a literal with a prefix (`b"`, `c"`, `r#"`, `br"`, `b'`), `None` when none begins here.
fn prefixed_literal(source: &str) -> Option<usize> {
    let prefix = source.find(|c| !matches!(c, 'r' | 'b' | 'c'))?;
    if prefix > 2 {
        return None;
    }
    let rest = &source[prefix..];
    if source[..prefix].ends_with('r') {
        let hashes = rest.find(|c| c != '#')?;
        let body = rest[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", &rest[..hashes]);
        let length = body.find(&end).map_or(body.len(), |at| at + end.len());
        return Some(prefix + hashes + 1 + length);
    }
    match rest.chars().next()? {
        '"' => Some(prefix + string(rest)),
        '\'' if source.starts_with("b'") => Some(prefix + character(rest)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &str) {
        let code = code_only(source);
        assert_eq!(code.lines().count(), source.lines().count());
        let squeezed: Vec<&str> = code.split_whitespace().collect();
        assert_eq!(squeezed.join(" "), expected);
    }

    #[test]
    fn comments_are_blank() {
        check("a // b\nc /* d /* e */ f\n */ g", "a c g");
        check("//! unsafe\nfn f() {}", "fn f() {}");
    }

    #[test]
    fn strings_are_blank() {
        check(r#"a("b \" c"); d"#, "a( ); d");
        check(
            "x(r#\"a \" b\"#, br\"c\", b\"d\", c\"e\") y",
            "x( , , , ) y",
        );
        check("bar(\"b\"); r#type", "bar( ); r#type");
    }

    #[test]
    fn a_lifetime_is_no_character() {
        check(
            "fn f<'a>(x: &'a str, c: char) { c == '\"' || c == '\\'' || b'\"' == d }",
            "fn f<'a>(x: &'a str, c: char) { c == || c == || == d }",
        );
    }

    #[test]
    fn an_unfinished_literal_ends_with_the_file() {
        check("a \"b", "a");
        check("a /* b", "a");
        check("a r#\"b\"", "a");
        check("a 'b", "a 'b");
    }

    #[test]
    fn a_word_has_borders() {
        assert!(holds_word("pub unsafe fn", "unsafe"));
        assert!(holds_word("unsafe_code unsafe{", "unsafe"));
        assert!(!holds_word("unsafe_code, not_unsafe", "unsafe"));
    }
}
