//! cel-go's grammar as a network of states.
//!
//! What may come next is found by following the network, which is how the parser that cel-go generates from
//! its grammar words its errors. No rule matches nothing, so the words that can start a rule are known
//! without looking behind it.

use crate::lexer::Kind;

/// A place in the grammar.
pub(super) type State = usize;

/// A rule of the grammar.
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

/// How one of several ways is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// By the next word alone.
    NextWord,
    Relation,
    CalcLoop,
    CalcOperator,
    Unary,
    Minus,
    MemberLoop,
    MemberKind,
    Primary,
    /// A comma may stand between items, or behind the last.
    Comma,
    Literal,
}

/// What is done at one place.
#[derive(Debug)]
pub(super) enum Item {
    Token(State, Kind),
    /// One of several words.
    Set(State, Vec<Kind>),
    /// A rule, and how strongly its operators must bind.
    Rule(State, Rule, u32),
    Block(Block),
}

/// A choice, or a repetition.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) shape: Shape,
    pub(super) state: State,
    /// Where a repetition comes back to.
    pub(super) back: State,
    pub(super) decision: Decision,
    pub(super) ways: Vec<Vec<Item>>,
}

/// How often a block stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Once,
    Optional,
    Star,
    Plus,
}

/// What kind of place a state is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Plain,
    /// Before a choice or a repetition.
    BlockStart,
    /// Behind one round of a repetition.
    LoopBack,
}

#[derive(Debug, Clone)]
enum Edge {
    Free(State),
    Word(Kind, State),
    Rule(Rule, State),
}

/// Words that may come next; whether the rule may end too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Words {
    kinds: Vec<Kind>,
    pub(super) or_end: bool,
}

impl Words {
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

    /// As errors list them.
    pub(super) fn shown(&self) -> String {
        let mut kinds = self.kinds.clone();
        // The end of the text has the lowest number of all words.
        kinds.sort_by_key(|kind| (*kind != Kind::End, *kind));
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        if let [only] = names.as_slice() { (*only).to_owned() } else { format!("{{{}}}", names.join(", ")) }
    }
}

/// The grammar.
#[derive(Debug)]
pub(super) struct Grammar {
    edges: Vec<Vec<Edge>>,
    places: Vec<Place>,
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
            let start = grammar.state(Place::Plain);
            let (items, last) = grammar.sequence(definition(rule), start);
            let end = grammar.state(Place::Plain);
            grammar.edges[last].push(Edge::Free(end));
            grammar.starts.push(start);
            grammar.ends.push(end);
            grammar.bodies.push(items);
        }
        grammar
    }

    pub(super) fn body(&self, rule: Rule) -> &[Item] {
        &self.bodies[rule as usize]
    }

    pub(super) fn place(&self, state: State) -> Place {
        self.places[state]
    }

    /// Where a rule that was called at `state` goes on.
    pub(super) fn follow(&self, state: State) -> State {
        match self.edges[state].first() {
            Some(Edge::Rule(_, next) | Edge::Word(_, next) | Edge::Free(next)) => *next,
            None => state,
        }
    }

    /// The words that may come at `state`, within its rule.
    pub(super) fn next(&self, state: State) -> Words {
        let mut words = Words::default();
        self.collect(state, &mut Vec::new(), &mut words);
        words
    }

    fn collect(&self, state: State, seen: &mut Vec<State>, words: &mut Words) {
        if seen.contains(&state) {
            return;
        }
        seen.push(state);
        if self.ends.contains(&state) {
            words.or_end = true;
        }
        for edge in &self.edges[state] {
            match edge {
                Edge::Free(next) => self.collect(*next, seen, words),
                Edge::Word(kind, _) => words.add(*kind),
                Edge::Rule(rule, _) => self.collect(self.starts[*rule as usize], seen, words),
            }
        }
    }

    fn state(&mut self, place: Place) -> State {
        self.edges.push(Vec::new());
        self.places.push(place);
        self.edges.len() - 1
    }

    fn link(&mut self, from: State, to: State) {
        self.edges[from].push(Edge::Free(to));
    }

    fn sequence(&mut self, specs: Vec<Spec>, from: State) -> (Vec<Item>, State) {
        let mut at = from;
        let mut items = Vec::new();
        for spec in specs {
            // Every item has a state of its own to stand at.
            let state = self.state(Place::Plain);
            self.link(at, state);
            let (item, next) = self.item(spec, state);
            items.push(item);
            at = next;
        }
        (items, at)
    }

    fn item(&mut self, spec: Spec, state: State) -> (Item, State) {
        match spec {
            Spec::Word(kind) => {
                let next = self.state(Place::Plain);
                self.edges[state].push(Edge::Word(kind, next));
                (Item::Token(state, kind), next)
            }
            Spec::Set(kinds) => {
                let next = self.state(Place::Plain);
                self.edges[state].extend(kinds.iter().map(|kind| Edge::Word(*kind, next)));
                (Item::Set(state, kinds), next)
            }
            Spec::Rule(rule, binding) => {
                let next = self.state(Place::Plain);
                self.edges[state].push(Edge::Rule(rule, next));
                (Item::Rule(state, rule, binding), next)
            }
            Spec::Block(shape, decision, ways) => self.block(shape, decision, ways, state),
        }
    }

    fn block(
        &mut self,
        shape: Shape,
        decision: Decision,
        ways: Vec<Vec<Spec>>,
        from: State,
    ) -> (Item, State) {
        let start = self.state(Place::BlockStart);
        self.link(from, start);
        let back = self.state(Place::LoopBack);
        let end = self.state(Place::Plain);
        let is_loop = matches!(shape, Shape::Star | Shape::Plus);
        let mut built = Vec::new();
        for way in ways {
            let (items, last) = self.sequence(way, start);
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
        (Item::Block(Block { shape, state: start, back, decision, ways: built }), end)
    }
}

enum Spec {
    Word(Kind),
    Set(Vec<Kind>),
    Rule(Rule, u32),
    Block(Shape, Decision, Vec<Vec<Spec>>),
}

fn rule(rule: Rule) -> Spec {
    Spec::Rule(rule, 0)
}

fn optional(way: Vec<Spec>) -> Spec {
    Spec::Block(Shape::Optional, Decision::NextWord, vec![way])
}

fn star(decision: Decision, way: Vec<Spec>) -> Spec {
    Spec::Block(Shape::Star, decision, vec![way])
}

fn one_of(decision: Decision, ways: Vec<Vec<Spec>>) -> Spec {
    Spec::Block(Shape::Once, decision, ways)
}

fn definition(of: Rule) -> Vec<Spec> {
    use Spec::{Set, Word};
    match of {
        Rule::Start => vec![rule(Rule::Expr), Word(Kind::End)],
        Rule::Expr => vec![
            rule(Rule::Or),
            optional(vec![Word(Kind::Question), rule(Rule::Or), Word(Kind::Colon), rule(Rule::Expr)]),
        ],
        Rule::Or => vec![rule(Rule::And), star(Decision::NextWord, vec![Word(Kind::Or), rule(Rule::And)])],
        Rule::And => {
            vec![rule(Rule::Relation), star(Decision::NextWord, vec![Word(Kind::And), rule(Rule::Relation)])]
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
            let repeated = |kind, decision| Spec::Block(Shape::Plus, decision, vec![vec![Word(kind)]]);
            vec![one_of(
                Decision::Unary,
                vec![
                    vec![rule(Rule::Member)],
                    vec![repeated(Kind::Exclam, Decision::NextWord), rule(Rule::Member)],
                    vec![repeated(Kind::Minus, Decision::Minus), rule(Rule::Member)],
                ],
            )]
        }
        Rule::Member => {
            let select = vec![Word(Kind::Dot), optional(vec![Word(Kind::Question)]), rule(Rule::EscapedName)];
            let call = vec![
                Word(Kind::Dot),
                Word(Kind::Identifier),
                Word(Kind::LeftParen),
                optional(vec![rule(Rule::Arguments)]),
                Word(Kind::RightParen),
            ];
            let index = vec![
                Word(Kind::LeftBracket),
                optional(vec![Word(Kind::Question)]),
                rule(Rule::Expr),
                Word(Kind::RightBracket),
            ];
            let one = one_of(Decision::MemberKind, vec![select, call, index]);
            vec![rule(Rule::Primary), star(Decision::MemberLoop, vec![one])]
        }
        Rule::Primary => vec![one_of(Decision::Primary, primaries())],
        Rule::Arguments => {
            vec![rule(Rule::Expr), star(Decision::NextWord, vec![Word(Kind::Comma), rule(Rule::Expr)])]
        }
        Rule::ListItems => {
            vec![rule(Rule::OptExpr), star(Decision::Comma, vec![Word(Kind::Comma), rule(Rule::OptExpr)])]
        }
        Rule::Fields => {
            let field = || vec![rule(Rule::OptField), Word(Kind::Colon), rule(Rule::Expr)];
            let mut more = vec![Word(Kind::Comma)];
            more.extend(field());
            let mut all = field();
            all.push(star(Decision::Comma, more));
            all
        }
        Rule::OptField => vec![optional(vec![Word(Kind::Question)]), rule(Rule::EscapedName)],
        Rule::Entries => {
            let entry = || vec![rule(Rule::OptExpr), Word(Kind::Colon), rule(Rule::Expr)];
            let mut more = vec![Word(Kind::Comma)];
            more.extend(entry());
            let mut all = entry();
            all.push(star(Decision::Comma, more));
            all
        }
        Rule::EscapedName => {
            let ways = vec![vec![Word(Kind::Identifier)], vec![Word(Kind::EscapedIdentifier)]];
            vec![one_of(Decision::NextWord, ways)]
        }
        Rule::OptExpr => vec![optional(vec![Word(Kind::Question)]), rule(Rule::Expr)],
        Rule::Literal => {
            let signed = |kind| vec![optional(vec![Word(Kind::Minus)]), Word(kind)];
            let mut ways = vec![signed(Kind::Int), vec![Word(Kind::Uint)], signed(Kind::Float)];
            ways.extend(
                [Kind::String, Kind::Bytes, Kind::True, Kind::False, Kind::Null].map(|kind| vec![Word(kind)]),
            );
            vec![one_of(Decision::Literal, ways)]
        }
    }
}

fn primaries() -> Vec<Vec<Spec>> {
    use Spec::Word;
    let dot = || optional(vec![Word(Kind::Dot)]);
    let comma = || optional(vec![Word(Kind::Comma)]);
    vec![
        vec![dot(), Word(Kind::Identifier)],
        vec![
            dot(),
            Word(Kind::Identifier),
            Word(Kind::LeftParen),
            optional(vec![rule(Rule::Arguments)]),
            Word(Kind::RightParen),
        ],
        vec![Word(Kind::LeftParen), rule(Rule::Expr), Word(Kind::RightParen)],
        vec![
            Word(Kind::LeftBracket),
            optional(vec![rule(Rule::ListItems)]),
            comma(),
            Word(Kind::RightBracket),
        ],
        vec![Word(Kind::LeftBrace), optional(vec![rule(Rule::Entries)]), comma(), Word(Kind::RightBrace)],
        vec![
            dot(),
            Word(Kind::Identifier),
            star(Decision::NextWord, vec![Word(Kind::Dot), Word(Kind::Identifier)]),
            Word(Kind::LeftBrace),
            optional(vec![rule(Rule::Fields)]),
            comma(),
            Word(Kind::RightBrace),
        ],
        vec![rule(Rule::Literal)],
    ]
}
