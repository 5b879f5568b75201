//! `long id; //@key`: annotations in comments after the annotated declaration.
//!
//! XTypes 1.0 had this form beside `@key long id;`, for files that compilers without
//! annotations read as well. Connext DDS had an older form with an argument
//! without parentheses: `//@ID 20`, `//@top-level false`. Files of that age declare
//! their keys in this way.
//!
//! A comment with any other text is only a comment.

use super::lex_from;
use super::token::{Token, TokenKind};
use crate::source::{FileId, Span};

const MARK: &str = "//@";

/// Annotations that Connext DDS writes with an argument without parentheses.
const WITH_A_WORD: &[&str] = &["id", "optional", "extensibility"];

/// The tokens of the annotations in the comment from `start` to the end of `text`: each
/// with its `@`, and with its arguments in parentheses.
pub(super) fn annotations(
    file: FileId,
    text: &str,
    replaced: &[usize],
    start: usize,
) -> Option<Vec<Token>> {
    let comment = text.get(start..)?;
    if !comment.starts_with(MARK) {
        return None;
    }
    let mut all = Vec::new();
    let mut rest = comment.get(MARK.len()..)?;
    loop {
        let (one, more) = match rest.split_once(MARK) {
            Some((one, more)) => (one, Some(more)),
            None => (rest, None),
        };
        // From the `@` on, so that each token has its position.
        let begin = text.len() - rest.len() - 1;
        let end = begin + 1 + one.len();
        let tokens = lex_from(file, text.get(..end)?, replaced, begin);
        all.extend(annotation(&tokens)?);
        match more {
            Some(more) => rest = more,
            None => return Some(all),
        }
    }
}

/// One annotation that consists of all of these tokens.
fn annotation(tokens: &[Token]) -> Option<Vec<Token>> {
    let (at, [name, rest @ ..]) = tokens.split_first()? else {
        return None;
    };
    let word = name.kind.word().filter(|_| name.glued)?;
    let punct = |token: &Token, c| token.kind.is_punct(c);
    match rest {
        [] => Some(tokens.to_vec()),
        [open, .., close] if punct(open, '(') && punct(close, ')') => Some(tokens.to_vec()),
        [dash, level, value] if punct(dash, '-') && word == "top" => {
            let span = name.span.to(level.span);
            let kind = TokenKind::Identifier("top_level".into());
            let whole = Token {
                kind,
                span,
                ..name.clone()
            };
            (level.kind.word() == Some("level")).then(|| with_argument(at, &whole, value))
        }
        [value] if WITH_A_WORD.iter().any(|it| it.eq_ignore_ascii_case(word)) => {
            Some(with_argument(at, name, value))
        }
        _ => None,
    }
}

/// `@name(value)`
fn with_argument(at: &Token, name: &Token, value: &Token) -> Vec<Token> {
    let punct = |c: char, place: usize| Token {
        kind: TokenKind::Punct(c),
        span: Span {
            start: place,
            end: place,
            ..value.span
        },
        ..value.clone()
    };
    let truth = match value.kind.word() {
        Some("true") => Some("TRUE"),
        Some("false") => Some("FALSE"),
        _ => None,
    };
    let kind = truth.map_or_else(|| value.kind.clone(), TokenKind::Keyword);
    vec![
        at.clone(),
        name.clone(),
        punct('(', value.span.start),
        Token {
            kind,
            ..value.clone()
        },
        punct(')', value.span.end),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(comment: &str, expected: Option<&str>) {
        let text = format!("long a; {comment}");
        let found = annotations(FileId(0), &text, &[], "long a; ".len());
        let spelled = |tokens: Vec<Token>| -> String {
            let words = tokens.iter().map(|token| token.kind.spelled());
            words.collect::<Vec<_>>().concat()
        };
        assert_eq!(found.map(spelled).as_deref(), expected, "{comment}");
    }

    #[test]
    fn comments_that_are_annotations() {
        check("//@key", Some("@key"));
        check("//@Key  // which one it is", Some("@Key"));
        check("//@ID 20", Some("@ID(20)"));
        check("//@id(0x14)", Some("@id(20)"));
        check("//@Optional true", Some("@Optional(TRUE)"));
        check(
            "//@Extensibility FINAL_EXTENSIBILITY",
            Some("@Extensibility(FINAL_EXTENSIBILITY)"),
        );
        check("//@top-level false", Some("@top_level(FALSE)"));
        check(
            "//@key //@range(min=1, max=2)",
            Some("@key@range(min=1,max=2)"),
        );
    }

    #[test]
    fn comments_that_are_none() {
        check("// @key", None);
        check("///@key", None);
        check("//@", None);
        check("//@ key", None);
        check("//@key of the whole", None);
        check("//@key long b;", None);
        check("//@definition(", None);
        check("//@copy something", None);
        check("//@top-secret false", None);
        check("//@key //@", None);
    }

    #[test]
    fn tokens_know_their_place() {
        let text = "long a; //@key //@ID 20";
        let found = annotations(FileId(0), text, &[], 8).unwrap_or_default();
        let places: Vec<&str> = found
            .iter()
            .filter_map(|token| text.get(token.span.start..token.span.end))
            .collect();
        assert_eq!(places, ["@", "key", "@", "ID", "", "20", ""]);
    }
}
