//! Adaptive prediction: chooses an alternative by lookahead.
//!
//! Returns the same results as ANTLR's prediction. If no alternative matches, it prefers one that could have
//! ended where the input became invalid and reports no error; otherwise it returns [`NoViableAlternative`].

use super::grammar::{Block, Decision, Item, Rule};
use super::{GRAMMAR, Reader};
use crate::lexer::Kind;

/// No viable alternative for the tokens from `start` to `offending`.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoViableAlternative {
    pub(super) start: usize,
    pub(super) offending: usize,
}

/// Enters a repetition, or exits it.
const ENTER: usize = 1;
const LEAVE: usize = 2;

impl Reader<'_> {
    /// The number of the predicted alternative, starting at 1. One more than the number of alternatives exits
    /// the block.
    pub(super) fn predict(&self, block: &'static Block) -> Result<usize, NoViableAlternative> {
        let next = self.kind(0);
        let enter_if = |fits: bool| Ok(if fits { ENTER } else { LEAVE });
        let binding = self.frames.last().map_or(0, |frame| frame.binding);
        match block.decision {
            Decision::NextToken => {
                let found =
                    block.alternatives.iter().position(|alternative| starts(alternative).contains(&next));
                match found {
                    Some(alternative) => Ok(alternative + 1),
                    None if block.alternatives.len() == 1 => Ok(LEAVE),
                    None => Err(self.no_viable_alternative(0)),
                }
            }
            Decision::Relation => enter_if(binding <= 1 && is_relation(next)),
            Decision::CalcLoop => enter_if(binding <= 2 && is_product(next) || binding <= 1 && is_sum(next)),
            Decision::CalcOperator if is_product(next) => Ok(1),
            Decision::CalcOperator if is_sum(next) => Ok(2),
            Decision::CalcOperator => Err(self.no_viable_alternative(0)),
            Decision::Unary => match next {
                Kind::Exclam => Ok(2),
                // A minus sign before a number literal belongs to the literal.
                Kind::Minus if is_number(self.kind(1)) => Ok(1),
                Kind::Minus if is_member_start(self.kind(1)) => Ok(3),
                Kind::Minus => Err(self.no_viable_alternative(1)),
                other if is_member_start(other) => Ok(1),
                _ => Err(self.no_viable_alternative(0)),
            },
            Decision::Minus => match next {
                Kind::Minus if is_member_start(self.kind(1)) => Ok(ENTER),
                Kind::Minus => Err(self.no_viable_alternative(1)),
                other if is_member_start(other) => Ok(LEAVE),
                _ => Err(self.no_viable_alternative(0)),
            },
            Decision::MemberLoop => enter_if(matches!(next, Kind::Dot | Kind::LeftBracket)),
            Decision::MemberKind => match (next, self.kind(1), self.kind(2)) {
                (Kind::LeftBracket, _, _) => Ok(3),
                (Kind::Dot, Kind::Identifier, Kind::LeftParen) => Ok(2),
                (Kind::Dot, Kind::Identifier | Kind::EscapedIdentifier | Kind::Question, _) => Ok(1),
                (Kind::Dot, _, _) => Err(self.no_viable_alternative(1)),
                _ => Err(self.no_viable_alternative(0)),
            },
            Decision::Primary => self.primary(),
            Decision::Comma => {
                enter_if(next == Kind::Comma && starts(&block.alternatives[0][1..]).contains(&self.kind(1)))
            }
            Decision::Literal => {
                let number = if next == Kind::Minus { self.kind(1) } else { next };
                match (number, next) {
                    (Kind::Int, _) => Ok(1),
                    (Kind::Float, _) => Ok(3),
                    (_, Kind::Minus) => Err(self.no_viable_alternative(1)),
                    (Kind::Uint, _) => Ok(2),
                    (Kind::String, _) => Ok(4),
                    (Kind::Bytes, _) => Ok(5),
                    (Kind::True, _) => Ok(6),
                    (Kind::False, _) => Ok(7),
                    (Kind::Null, _) => Ok(8),
                    _ => Err(self.no_viable_alternative(0)),
                }
            }
        }
    }

    fn primary(&self) -> Result<usize, NoViableAlternative> {
        match self.kind(0) {
            Kind::LeftParen => return Ok(3),
            Kind::LeftBracket => return Ok(4),
            Kind::LeftBrace => return Ok(5),
            Kind::Dot | Kind::Identifier => {}
            other if is_member_start(other) => return Ok(7),
            _ => return Err(self.no_viable_alternative(0)),
        }
        let mut ahead = usize::from(self.kind(0) == Kind::Dot);
        if self.kind(ahead) != Kind::Identifier {
            return Err(self.no_viable_alternative(ahead));
        }
        ahead += 1;
        if self.kind(ahead) == Kind::LeftParen {
            return Ok(2);
        }
        while self.kind(ahead) == Kind::Dot && self.kind(ahead + 1) == Kind::Identifier {
            ahead += 2;
        }
        Ok(if self.kind(ahead) == Kind::LeftBrace { 6 } else { 1 })
    }

    fn no_viable_alternative(&self, ahead: usize) -> NoViableAlternative {
        NoViableAlternative { start: self.at, offending: (self.at + ahead).min(self.tokens.len() - 1) }
    }
}

/// The tokens that can start an alternative.
fn starts(alternative: &'static [Item]) -> Vec<Kind> {
    match alternative.first() {
        Some(Item::Token(_, kind)) => vec![*kind],
        Some(Item::Set(_, kinds)) => kinds.clone(),
        Some(Item::Rule(_, rule, _)) => starts(GRAMMAR.body(*rule)),
        Some(Item::Block(block)) => {
            let mut all: Vec<Kind> =
                block.alternatives.iter().flat_map(|alternative| starts(alternative)).collect();
            if matches!(block.shape, super::Shape::Optional | super::Shape::Star) {
                all.extend(starts(&alternative[1..]));
            }
            all
        }
        None => Vec::new(),
    }
}

fn is_relation(kind: Kind) -> bool {
    kind <= Kind::Greater
}

fn is_product(kind: Kind) -> bool {
    matches!(kind, Kind::Star | Kind::Slash | Kind::Percent)
}

fn is_sum(kind: Kind) -> bool {
    matches!(kind, Kind::Plus | Kind::Minus)
}

fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Int | Kind::Float)
}

fn is_member_start(kind: Kind) -> bool {
    starts(GRAMMAR.body(Rule::Member)).contains(&kind)
}
