//! The role of each token, derived from those before it: spaces, contents of braces, and
//! the width of every range on one line.

use super::tokens::{Bracket, Kind, Token, Tokens};

/// The contents of brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A list with commas.
    List,
    /// A list with one part per line: fields, variants.
    Fields,
    /// Items or statements.
    Block,
    /// The arms of a `match`.
    Arms,
    /// The arguments of an attribute or a macro, whose commas stay unchanged.
    Given,
}

impl Class {
    /// Whether each part has a line of its own.
    pub(super) fn is_broken(self) -> bool {
        matches!(self, Self::Fields | Self::Block | Self::Arms)
    }
}

/// The state at a position inside brackets.
#[derive(Debug, Clone, Copy)]
struct Scope {
    bracket: Bracket,
    class: Class,
    /// The construct that the next braces belong to.
    head: Option<Class>,
    /// Whether the parameters of a closure have begun.
    in_closure: bool,
    commas: usize,
}

impl Scope {
    fn new(bracket: Bracket, class: Class) -> Self {
        Self {
            bracket,
            class,
            head: None,
            in_closure: false,
            commas: 0,
        }
    }
}

/// How an operator is attached to its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Attached to the next token.
    Prefix,
    /// Attached to the previous token.
    Postfix,
    /// Attached to both.
    Between,
    /// Spaces before and after.
    Free,
}

/// Fills in what [`Tokens::of`] left out.
pub(super) fn arrange(tokens: &mut Tokens) {
    let mut scopes = vec![Scope::new(Bracket::Curly, Class::Block)];
    let mut role = Role::Free;
    let (mut width, mut breaks) = (0, 0);
    for index in 0..tokens.list.len() {
        let Some(scope) = scopes.last_mut() else {
            return;
        };
        let operand = index > 0 && ends_operand(tokens, index - 1, role);
        let role_before = role;
        let token = tokens.list[index];
        role = match token.kind {
            Kind::Operator => role_of(tokens.text(&token), operand, scope),
            _ => Role::Free,
        };
        let binary = token.kind == Kind::Operator && operand && role == Role::Free;
        let space = index > 0 && has_space(tokens, index, role_before, role, operand);
        let (mut class, mut separates) = (Class::List, false);
        let mut breaking = token.kind == Kind::Doc;
        match token.kind {
            Kind::Keyword => scope.keyword(tokens.text(&token)),
            Kind::Operator => {
                separates = scope.operator(tokens.text(&token), role);
                let is_attribute = tokens.text(&token) == "#";
                breaking = is_attribute && scope.bracket == Bracket::Curly;
                breaking &= scope.class != Class::Given;
            }
            Kind::Open(bracket) => {
                class = scope.class_of(tokens, index, bracket);
                breaking = class.is_broken() && token.partner != index + 1;
                scopes.push(Scope::new(bracket, class));
            }
            Kind::Close(_) => {
                let closed = scopes.pop();
                if closed.is_some_and(|scope| is_free(tokens, index, scope)) {
                    tokens.list[index - 1].free = true;
                    width -= 1;
                }
            }
            _ => {}
        }
        let token = &mut tokens.list[index];
        (token.space, token.binary, token.class) = (space, binary, class);
        token.separates = separates;
        width += usize::from(space);
        (token.width_before, token.breaks_before) = (width, breaks);
        width += token.width();
        breaks += usize::from(breaking);
    }
}

impl Scope {
    /// Tokens whose first one determines the next braces.
    fn keyword(&mut self, word: &str) {
        let head = match word {
            "struct" | "enum" => Class::Fields,
            "match" => Class::Arms,
            "fn" | "impl" | "trait" | "mod" | "if" | "else" | "while" | "for" | "loop"
            | "unsafe" | "extern" => Class::Block,
            _ => return,
        };
        self.head.get_or_insert(head);
    }

    /// Whether it separates two parts of the contents of the brackets.
    fn operator(&mut self, text: &str, role: Role) -> bool {
        match text {
            ";" | "=>" => (self.head, self.in_closure) = (None, false),
            "," if !self.in_closure => {
                // Bounds have commas too.
                self.head = self.head.filter(|_| self.class == Class::Block);
                self.commas += 1;
                return true;
            }
            "|" if role != Role::Free => self.in_closure = !self.in_closure,
            _ => {}
        }
        false
    }

    /// The contents of the brackets that open at `index`.
    fn class_of(&mut self, tokens: &Tokens, index: usize, bracket: Bracket) -> Class {
        let is_given = tokens.is_attribute(index) || tokens.is_macro(index);
        if is_given || self.class == Class::Given {
            return Class::Given;
        }
        if bracket != Bracket::Curly || self.bracket == Bracket::Angle {
            return Class::List;
        }
        if let Some(head) = self.head.take() {
            return head;
        }
        // A literal or a pattern has a name, or is part of a `use`.
        let before = index.checked_sub(1).and_then(|before| tokens.kind(before));
        let is_named = matches!(before, Some(Kind::Word | Kind::Close(Bracket::Angle)));
        match is_named || (index > 0 && tokens.text_at(index - 1) == "::") {
            true => Class::List,
            false => Class::Block,
        }
    }
}

/// Whether the next token follows a value or a type.
fn ends_operand(tokens: &Tokens, index: usize, role: Role) -> bool {
    let token = &tokens.list[index];
    match token.kind {
        Kind::Word | Kind::Literal => true,
        Kind::Operator => tokens.text(token) == "?" && role == Role::Postfix,
        Kind::Close(Bracket::Curly) => tokens.list[token.partner].class == Class::List,
        Kind::Close(Bracket::Square) => !tokens.is_attribute(token.partner),
        Kind::Close(_) => true,
        Kind::Keyword | Kind::Lifetime | Kind::Doc | Kind::Open(_) => false,
    }
}

fn role_of(text: &str, operand: bool, scope: &Scope) -> Role {
    match text {
        "." | "#" | "$" | ".." | "..=" | "..." if operand => Role::Between,
        "." | "#" | "$" | ".." | "..=" | "..." => Role::Prefix,
        "::" if operand => Role::Between,
        "::" => Role::Prefix,
        "," | ";" | ":" => Role::Postfix,
        "?" if operand => Role::Postfix,
        "!" if operand => Role::Between,
        "|" if scope.in_closure => Role::Postfix,
        "&" | "&&" | "*" | "-" | "!" | "?" | "|" if !operand => Role::Prefix,
        _ => Role::Free,
    }
}

/// Whether a space precedes a token on the same line.
fn has_space(tokens: &Tokens, index: usize, before: Role, role: Role, operand: bool) -> bool {
    let (left, right) = (&tokens.list[index - 1], &tokens.list[index]);
    let behind_operator = left.kind == Kind::Operator;
    match right.kind {
        // Two angle brackets shift.
        Kind::Operator if left.joint && matches!(tokens.text(left), "<" | ">") => return false,
        Kind::Operator if matches!(role, Role::Postfix | Role::Between) => {
            let may_merge = behind_operator || left.kind == Kind::Literal;
            return may_merge && would_merge(tokens, left, right);
        }
        // After a macro, a call, a tuple structure.
        Kind::Open(Bracket::Round | Bracket::Square) if before == Role::Between => return false,
        Kind::Open(Bracket::Round) if operand => return false,
        Kind::Open(Bracket::Round) if matches!(tokens.text(left), "pub" | "fn") => return false,
        Kind::Open(Bracket::Square) if operand => return false,
        Kind::Open(Bracket::Angle) => {
            let behind = tokens.text(left);
            let has_generics = matches!(behind, "impl" | "fn" | "for" | "::" | "!");
            return !operand && !has_generics && !opens(left) && before != Role::Prefix;
        }
        Kind::Open(Bracket::Curly) if before == Role::Between => {
            return tokens.text(left) == "!";
        }
        Kind::Close(Bracket::Curly) => return left.kind != Kind::Open(Bracket::Curly),
        Kind::Close(_) => return false,
        _ => {}
    }
    match left.kind {
        Kind::Open(Bracket::Curly) => true,
        Kind::Open(_) => false,
        Kind::Operator if matches!(before, Role::Prefix | Role::Between) => {
            would_merge(tokens, left, right)
        }
        _ => true,
    }
}

fn opens(token: &Token) -> bool {
    matches!(token.kind, Kind::Open(_))
}

/// Whether two adjacent tokens would form another one. (`<<`, `&&` and the like are split
/// where that matters.)
fn would_merge(tokens: &Tokens, left: &Token, right: &Token) -> bool {
    let last = tokens.text(left).chars().next_back();
    let first = tokens.text(right).chars().next();
    matches!(
        (last, first),
        (Some('.'), Some('.'))
            | (Some(':'), Some(':'))
            | (Some('-' | '='), Some('>'))
            | (
                Some('=' | '!' | '<' | '>' | '+' | '-' | '*' | '/' | '%' | '^' | '&' | '|'),
                Some('=')
            )
            | (Some('/'), Some('/' | '*'))
    )
}

/// Whether a comma before the bracket that closes at `index` would be insignificant.
fn is_free(tokens: &Tokens, index: usize, scope: Scope) -> bool {
    let has_comma = index > 0 && tokens.list[index - 1].separates;
    let opening = tokens.list[index].partner;
    let is_literal = scope.bracket == Bracket::Curly && scope.class == Class::List;
    has_comma && (is_literal || comma_is_free(tokens, opening, scope.commas))
}

/// Whether a comma after the last of `parts` in the brackets that open at `opening` is
/// insignificant. Without such a comma that is uncertain: braces may be a block, and angle
/// brackets comparisons.
pub(super) fn comma_is_free(tokens: &Tokens, opening: usize, parts: usize) -> bool {
    let token = &tokens.list[opening];
    // `(a)` is not a tuple, `(a,)` is one; `[T]` is a type.
    let is_called = || {
        let before = opening
            .checked_sub(1)
            .and_then(|before| tokens.kind(before));
        matches!(before, Some(Kind::Word | Kind::Close(Bracket::Angle)))
    };
    match (token.class, token.kind) {
        (Class::Fields, _) => true,
        (Class::List, Kind::Open(Bracket::Round)) => parts > 1 || is_called(),
        (Class::List, Kind::Open(Bracket::Square | Bracket::Curly)) => parts > 1,
        _ => false,
    }
}
