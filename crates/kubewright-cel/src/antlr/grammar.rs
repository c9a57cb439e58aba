//! cel-go's grammar as an ATN (augmented transition network), the representation that ANTLR uses.
//!
//! The expected tokens at a state follow from walking the network. No rule matches the empty input, so the
//! first tokens of a rule are known without looking past it.

use crate::lexer::Kind;

/// A state of the network.
pub(super) type State = usize;

/// A grammar rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Start,
    Expr,
    Or,
    And,
    Relation,
    Calc,
    Unary,
    Member,
    Primary,
    Arguments,
    ListItems,
    Fields,
    OptField,
    Entries,
    EscapedName,
    OptExpr,
    Literal,
}

const RULES: [Rule; 17] = [
    Rule::Start,
    Rule::Expr,
    Rule::Or,
    Rule::And,
    Rule::Relation,
    Rule::Calc,
    Rule::Unary,
    Rule::Member,
    Rule::Primary,
    Rule::Arguments,
    Rule::ListItems,
    Rule::Fields,
    Rule::OptField,
    Rule::Entries,
    Rule::EscapedName,
    Rule::OptExpr,
    Rule::Literal,
];

/// How the parser chooses an alternative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// By the next token alone.
    NextToken,
    Relation,
    CalcLoop,
    CalcOperator,
    Unary,
    Minus,
    MemberLoop,
    MemberKind,
    Primary,
    /// A comma separates items or trails the last one.
    Comma,
    Literal,
}

/// An element of an alternative.
#[derive(Debug)]
pub(super) enum Item {
    Token(State, Kind),
    /// Any token of a set.
    Set(State, Vec<Kind>),
    /// A rule invocation with its minimum operator precedence.
    Rule(State, Rule, u32),
    Block(Block),
}

/// A choice or a repetition.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) shape: Shape,
    pub(super) state: State,
    /// The loop-back state of a repetition.
    pub(super) back: State,
    pub(super) decision: Decision,
    pub(super) alternatives: Vec<Vec<Item>>,
}

/// How often a block can match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Once,
    Optional,
    Star,
    Plus,
}

/// The kind of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateKind {
    Plain,
    /// Before a choice or a repetition.
    BlockStart,
    /// After one iteration of a repetition.
    LoopBack,
}

#[derive(Debug, Clone)]
enum Edge {
    Epsilon(State),
    Token(Kind, State),
    Rule(Rule, State),
}

/// A set of expected tokens. `has_epsilon`: the rule can end here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TokenSet {
    kinds: Vec<Kind>,
    pub(super) has_epsilon: bool,
}

impl TokenSet {
    pub(super) fn contains(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    pub(super) fn add(&mut self, kind: Kind) {
        if !self.contains(kind) {
            self.kinds.push(kind);
        }
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        other.kinds.iter().for_each(|kind| self.add(*kind));
    }

    /// The set as error messages list it.
    pub(super) fn shown(&self) -> String {
        let mut kinds = self.kinds.clone();
        // `EOF` has the lowest token type in ANTLR.
        kinds.sort_by_key(|kind| (*kind != Kind::End, *kind));
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        if let [only] = names.as_slice() { (*only).to_owned() } else { format!("{{{}}}", names.join(", ")) }
    }
}

#[derive(Debug)]
pub(super) struct Grammar {
    edges: Vec<Vec<Edge>>,
    places: Vec<StateKind>,
    starts: Vec<State>,
    ends: Vec<State>,
    bodies: Vec<Vec<Item>>,
}

impl Grammar {
    pub(super) fn new() -> Self {
        let mut grammar = Self {
            edges: Vec::new(),
            places: Vec::new(),
            starts: Vec::new(),
            ends: Vec::new(),
            bodies: Vec::new(),
        };
        for rule in RULES {
            let start = grammar.state(StateKind::Plain);
            let (items, last) = grammar.sequence(definition(rule), start);
            let end = grammar.state(StateKind::Plain);
            grammar.edges[last].push(Edge::Epsilon(end));
            grammar.starts.push(start);
            grammar.ends.push(end);
            grammar.bodies.push(items);
        }
        grammar
    }

    pub(super) fn body(&self, rule: Rule) -> &[Item] {
        &self.bodies[rule as usize]
    }

    pub(super) fn place(&self, state: State) -> StateKind {
        self.places[state]
    }

    /// The state after a rule that was invoked at `state`.
    pub(super) fn follow(&self, state: State) -> State {
        match self.edges[state].first() {
            Some(Edge::Rule(_, next) | Edge::Token(_, next) | Edge::Epsilon(next)) => *next,
            None => state,
        }
    }

    /// The tokens that can follow `state` within its rule.
    pub(super) fn next(&self, state: State) -> TokenSet {
        let mut tokens = TokenSet::default();
        self.collect(state, &mut Vec::new(), &mut tokens);
        tokens
    }

    fn collect(&self, state: State, seen: &mut Vec<State>, tokens: &mut TokenSet) {
        if seen.contains(&state) {
            return;
        }
        seen.push(state);
        if self.ends.contains(&state) {
            tokens.has_epsilon = true;
        }
        for edge in &self.edges[state] {
            match edge {
                Edge::Epsilon(next) => self.collect(*next, seen, tokens),
                Edge::Token(kind, _) => tokens.add(*kind),
                Edge::Rule(rule, _) => self.collect(self.starts[*rule as usize], seen, tokens),
            }
        }
    }

    fn state(&mut self, place: StateKind) -> State {
        self.edges.push(Vec::new());
        self.places.push(place);
        self.edges.len() - 1
    }

    fn link(&mut self, from: State, to: State) {
        self.edges[from].push(Edge::Epsilon(to));
    }

    fn sequence(&mut self, specs: Vec<Spec>, from: State) -> (Vec<Item>, State) {
        let mut at = from;
        let mut items = Vec::new();
        for spec in specs {
            // Every item gets its own state.
            let state = self.state(StateKind::Plain);
            self.link(at, state);
            let (item, next) = self.item(spec, state);
            items.push(item);
            at = next;
        }
        (items, at)
    }

    fn item(&mut self, spec: Spec, state: State) -> (Item, State) {
        match spec {
            Spec::Token(kind) => {
                let next = self.state(StateKind::Plain);
                self.edges[state].push(Edge::Token(kind, next));
                (Item::Token(state, kind), next)
            }
            Spec::Set(kinds) => {
                let next = self.state(StateKind::Plain);
                self.edges[state].extend(kinds.iter().map(|kind| Edge::Token(*kind, next)));
                (Item::Set(state, kinds), next)
            }
            Spec::Rule(rule, binding) => {
                let next = self.state(StateKind::Plain);
                self.edges[state].push(Edge::Rule(rule, next));
                (Item::Rule(state, rule, binding), next)
            }
            Spec::Block(shape, decision, alternatives) => self.block(shape, decision, alternatives, state),
        }
    }

    fn block(
        &mut self,
        shape: Shape,
        decision: Decision,
        alternatives: Vec<Vec<Spec>>,
        from: State,
    ) -> (Item, State) {
        let start = self.state(StateKind::BlockStart);
        self.link(from, start);
        let back = self.state(StateKind::LoopBack);
        let end = self.state(StateKind::Plain);
        let is_loop = matches!(shape, Shape::Star | Shape::Plus);
        let mut built = Vec::new();
        for alternative in alternatives {
            let (items, last) = self.sequence(alternative, start);
            self.link(last, if is_loop { back } else { end });
            built.push(items);
        }
        if is_loop {
            self.link(back, start);
        }
        match shape {
            Shape::Optional | Shape::Star => self.link(start, end),
            Shape::Plus => self.link(back, end),
            Shape::Once => {}
        }
        (Item::Block(Block { shape, state: start, back, decision, alternatives: built }), end)
    }
}

enum Spec {
    Token(Kind),
    Set(Vec<Kind>),
    Rule(Rule, u32),
    Block(Shape, Decision, Vec<Vec<Spec>>),
}

fn rule(rule: Rule) -> Spec {
    Spec::Rule(rule, 0)
}

fn optional(alternative: Vec<Spec>) -> Spec {
    Spec::Block(Shape::Optional, Decision::NextToken, vec![alternative])
}

fn star(decision: Decision, alternative: Vec<Spec>) -> Spec {
    Spec::Block(Shape::Star, decision, vec![alternative])
}

fn one_of(decision: Decision, alternatives: Vec<Vec<Spec>>) -> Spec {
    Spec::Block(Shape::Once, decision, alternatives)
}

fn definition(of: Rule) -> Vec<Spec> {
    use Spec::{Set, Token};
    match of {
        Rule::Start => vec![rule(Rule::Expr), Token(Kind::End)],
        Rule::Expr => vec![
            rule(Rule::Or),
            optional(vec![Token(Kind::Question), rule(Rule::Or), Token(Kind::Colon), rule(Rule::Expr)]),
        ],
        Rule::Or => vec![rule(Rule::And), star(Decision::NextToken, vec![Token(Kind::Or), rule(Rule::And)])],
        Rule::And => {
            vec![
                rule(Rule::Relation),
                star(Decision::NextToken, vec![Token(Kind::And), rule(Rule::Relation)]),
            ]
        }
        Rule::Relation => {
            let operators = vec![
                Kind::Equals,
                Kind::NotEquals,
                Kind::In,
                Kind::Less,
                Kind::LessEquals,
                Kind::GreaterEquals,
                Kind::Greater,
            ];
            vec![
                rule(Rule::Calc),
                star(Decision::Relation, vec![Set(operators), Spec::Rule(Rule::Relation, 2)]),
            ]
        }
        Rule::Calc => {
            let products = vec![Set(vec![Kind::Star, Kind::Slash, Kind::Percent]), Spec::Rule(Rule::Calc, 3)];
            let sums = vec![Set(vec![Kind::Minus, Kind::Plus]), Spec::Rule(Rule::Calc, 2)];
            let operation = one_of(Decision::CalcOperator, vec![products, sums]);
            vec![rule(Rule::Unary), star(Decision::CalcLoop, vec![operation])]
        }
        Rule::Unary => {
            let repeated = |kind, decision| Spec::Block(Shape::Plus, decision, vec![vec![Token(kind)]]);
            vec![one_of(
                Decision::Unary,
                vec![
                    vec![rule(Rule::Member)],
                    vec![repeated(Kind::Exclam, Decision::NextToken), rule(Rule::Member)],
                    vec![repeated(Kind::Minus, Decision::Minus), rule(Rule::Member)],
                ],
            )]
        }
        Rule::Member => {
            let select =
                vec![Token(Kind::Dot), optional(vec![Token(Kind::Question)]), rule(Rule::EscapedName)];
            let call = vec![
                Token(Kind::Dot),
                Token(Kind::Identifier),
                Token(Kind::LeftParen),
                optional(vec![rule(Rule::Arguments)]),
                Token(Kind::RightParen),
            ];
            let index = vec![
                Token(Kind::LeftBracket),
                optional(vec![Token(Kind::Question)]),
                rule(Rule::Expr),
                Token(Kind::RightBracket),
            ];
            let one = one_of(Decision::MemberKind, vec![select, call, index]);
            vec![rule(Rule::Primary), star(Decision::MemberLoop, vec![one])]
        }
        Rule::Primary => vec![one_of(Decision::Primary, primaries())],
        Rule::Arguments => {
            vec![rule(Rule::Expr), star(Decision::NextToken, vec![Token(Kind::Comma), rule(Rule::Expr)])]
        }
        Rule::ListItems => {
            vec![rule(Rule::OptExpr), star(Decision::Comma, vec![Token(Kind::Comma), rule(Rule::OptExpr)])]
        }
        Rule::Fields => {
            let field = || vec![rule(Rule::OptField), Token(Kind::Colon), rule(Rule::Expr)];
            let mut more = vec![Token(Kind::Comma)];
            more.extend(field());
            let mut all = field();
            all.push(star(Decision::Comma, more));
            all
        }
        Rule::OptField => vec![optional(vec![Token(Kind::Question)]), rule(Rule::EscapedName)],
        Rule::Entries => {
            let entry = || vec![rule(Rule::OptExpr), Token(Kind::Colon), rule(Rule::Expr)];
            let mut more = vec![Token(Kind::Comma)];
            more.extend(entry());
            let mut all = entry();
            all.push(star(Decision::Comma, more));
            all
        }
        Rule::EscapedName => {
            let alternatives = vec![vec![Token(Kind::Identifier)], vec![Token(Kind::EscapedIdentifier)]];
            vec![one_of(Decision::NextToken, alternatives)]
        }
        Rule::OptExpr => vec![optional(vec![Token(Kind::Question)]), rule(Rule::Expr)],
        Rule::Literal => {
            let signed = |kind| vec![optional(vec![Token(Kind::Minus)]), Token(kind)];
            let mut alternatives = vec![signed(Kind::Int), vec![Token(Kind::Uint)], signed(Kind::Float)];
            alternatives.extend(
                [Kind::String, Kind::Bytes, Kind::True, Kind::False, Kind::Null]
                    .map(|kind| vec![Token(kind)]),
            );
            vec![one_of(Decision::Literal, alternatives)]
        }
    }
}

fn primaries() -> Vec<Vec<Spec>> {
    use Spec::Token;
    let dot = || optional(vec![Token(Kind::Dot)]);
    let comma = || optional(vec![Token(Kind::Comma)]);
    vec![
        vec![dot(), Token(Kind::Identifier)],
        vec![
            dot(),
            Token(Kind::Identifier),
            Token(Kind::LeftParen),
            optional(vec![rule(Rule::Arguments)]),
            Token(Kind::RightParen),
        ],
        vec![Token(Kind::LeftParen), rule(Rule::Expr), Token(Kind::RightParen)],
        vec![
            Token(Kind::LeftBracket),
            optional(vec![rule(Rule::ListItems)]),
            comma(),
            Token(Kind::RightBracket),
        ],
        vec![Token(Kind::LeftBrace), optional(vec![rule(Rule::Entries)]), comma(), Token(Kind::RightBrace)],
        vec![
            dot(),
            Token(Kind::Identifier),
            star(Decision::NextToken, vec![Token(Kind::Dot), Token(Kind::Identifier)]),
            Token(Kind::LeftBrace),
            optional(vec![rule(Rule::Fields)]),
            comma(),
            Token(Kind::RightBrace),
        ],
        vec![rule(Rule::Literal)],
    ]
}
