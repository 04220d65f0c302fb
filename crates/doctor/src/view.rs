//! A configuration as rules see it: each statement with the block around it.
//!
//! A [`Spot`] is one statement, a [`Scope`] the inside of one block. [`Scope::effective`] finds inherited values. A
//! file that is only a part (a `sites-enabled` file) gets the scope into which nginx would include it.

use std::collections::HashMap;

use weir_conf::{At, Statement, Tree, Word};

/// A tree in which each statement knows its outer blocks.
pub struct View<'t> {
    tree: &'t Tree,
    nodes: Vec<Node<'t>>,
    roots: Vec<u32>,
    /// Statements by name.
    names: HashMap<&'t str, Vec<u32>>,
    /// Statements by block and name. Effective values are looked up often, in files with thousands of servers.
    inside: HashMap<(Option<u32>, &'t str), Vec<u32>>,
    upstreams: HashMap<&'t str, u32>,
    /// `set` statements by the name of their variable, in lower case.
    sets: HashMap<String, Vec<u32>>,
}

struct Node<'t> {
    statement: &'t Statement,
    parent: Option<u32>,
    children: Vec<u32>,
}

/// One statement and its position.
#[derive(Clone, Copy)]
pub struct Spot<'v> {
    view: &'v View<'v>,
    node: &'v Node<'v>,
    index: u32,
}

/// The inside of a block. If `block` is `None`, the top level of the file.
#[derive(Clone, Copy)]
pub struct Scope<'v> {
    view: &'v View<'v>,
    block: Option<u32>,
}

impl<'t> View<'t> {
    /// Makes the view of a tree.
    pub fn new(tree: &'t Tree) -> View<'t> {
        let mut view = View {
            tree,
            nodes: Vec::new(),
            roots: Vec::new(),
            names: HashMap::new(),
            inside: HashMap::new(),
            upstreams: HashMap::new(),
            sets: HashMap::new(),
        };
        view.roots = view.add(&tree.root, None);
        view
    }

    fn add(&mut self, statements: &'t [Statement], parent: Option<u32>) -> Vec<u32> {
        let mut added = Vec::with_capacity(statements.len());
        for statement in statements {
            let Ok(index) = u32::try_from(self.nodes.len()) else { break };
            self.nodes.push(Node { statement, parent, children: Vec::new() });
            self.names.entry(&statement.name.text).or_default().push(index);
            self.inside.entry((parent, &statement.name.text)).or_default().push(index);
            if statement.name.text == "set" {
                let name = statement.text(0).trim_start_matches('$').to_ascii_lowercase();
                self.sets.entry(name).or_default().push(index);
            }
            if statement.name.text == "upstream" && statement.is_block() {
                self.upstreams.entry(statement.text(0)).or_insert(index);
            }
            added.push(index);
            let children = self.add(statement.children(), Some(index));
            if let Some(node) = self.nodes.get_mut(index as usize) {
                node.children = children;
            }
        }
        added
    }

    /// The tree of this view.
    pub fn tree(&self) -> &'t Tree {
        self.tree
    }

    /// Whether it is a whole configuration, not a file that another one includes.
    pub fn is_whole(&self) -> bool {
        self.tree.root.iter().any(|statement| matches!(statement.name.text.as_str(), "events" | "http" | "stream"))
    }
}

impl<'v> View<'v> {
    /// Every statement, in the order of the files.
    pub fn all(&'v self) -> impl Iterator<Item = Spot<'v>> {
        (0..self.nodes.len()).filter_map(|index| self.spot(u32::try_from(index).ok()?))
    }

    /// Every statement with this name.
    pub fn named(&'v self, name: &str) -> impl Iterator<Item = Spot<'v>> {
        let list: &'v [u32] = self.names.get(name).map_or(&[], Vec::as_slice);
        list.iter().filter_map(move |index| self.spot(*index))
    }

    /// Every `set` of this variable; the name has no `$`.
    pub fn sets(&'v self, name: &str) -> impl Iterator<Item = Spot<'v>> {
        let list: &'v [u32] = self.sets.get(&name.to_ascii_lowercase()).map_or(&[], Vec::as_slice);
        list.iter().filter_map(move |index| self.spot(*index))
    }

    /// The `upstream` of this name.
    pub fn upstream(&'v self, name: &str) -> Option<Spot<'v>> {
        self.upstreams.get(name).and_then(|index| self.spot(*index))
    }

    fn spot(&'v self, index: u32) -> Option<Spot<'v>> {
        self.nodes.get(index as usize).map(|node| Spot { view: self, node, index })
    }

    /// The top level.
    pub fn root(&'v self) -> Scope<'v> {
        Scope { view: self, block: None }
    }

    /// The inside of every `server` of `http`.
    pub fn servers(&'v self) -> impl Iterator<Item = Scope<'v>> {
        self.named("server")
            .filter(|spot| spot.is_block() && !spot.is_in("stream") && !spot.is_in("mail"))
            .map(Spot::inside)
    }
}

impl<'v> Spot<'v> {
    /// The statement itself.
    pub fn statement(self) -> &'v Statement {
        self.node.statement
    }

    /// Its name.
    pub fn name(self) -> &'v str {
        &self.statement().name.text
    }

    /// The text of an argument, from 0; empty if there is none.
    pub fn arg(self, index: usize) -> &'v str {
        self.statement().text(index)
    }

    /// All arguments.
    pub fn args(self) -> impl Iterator<Item = &'v str> {
        self.statement().args.iter().map(|word: &Word| word.text.as_str())
    }

    /// Whether an argument equals this word.
    pub fn says(self, word: &str) -> bool {
        self.args().any(|arg| arg == word)
    }

    /// The arguments as one text, separated by spaces.
    pub fn text(self) -> String {
        self.args().collect::<Vec<_>>().join(" ")
    }

    /// `name args;` on one line, as in a file.
    pub fn line(self) -> String {
        self.line_where(|_| true)
    }

    /// The same, with only the arguments that `keeps` accepts.
    pub fn line_where(self, keeps: impl Fn(&str) -> bool) -> String {
        let mut line = self.name().to_owned();
        for word in self.statement().args.iter().filter(|word| keeps(&word.text)) {
            line.push(' ');
            line.push_str(&String::from_utf8_lossy(&weir_conf::quote(word.bytes())));
        }
        line
    }

    /// Its place in the files.
    pub fn at(self) -> At {
        self.statement().at
    }

    /// Whether it opens a block.
    pub fn is_block(self) -> bool {
        self.statement().is_block()
    }

    /// The inside of its block.
    pub fn inside(self) -> Scope<'v> {
        Scope { view: self.view, block: Some(self.index) }
    }

    /// The block that contains it.
    pub fn scope(self) -> Scope<'v> {
        let parent = self.node.parent;
        Scope { view: self.view, block: parent }
    }

    /// The blocks around it, nearest first.
    pub fn around(self) -> impl Iterator<Item = Spot<'v>> {
        std::iter::successors(self.scope().opener(), |spot| spot.scope().opener())
    }

    /// Whether a block of this name is around it.
    pub fn is_in(self, name: &str) -> bool {
        self.around().any(|spot| spot.name() == name)
    }

    /// Whether it is the same statement.
    pub fn is(self, other: Spot<'_>) -> bool {
        self.index == other.index
    }

    /// Whether it comes after another statement.
    pub fn is_after(self, other: Spot<'_>) -> bool {
        self.index > other.index
    }

    /// The view that it belongs to.
    pub fn view(self) -> &'v View<'v> {
        self.view
    }
}

impl<'v> Scope<'v> {
    /// The statement that opens this block; `None` at the top level.
    pub fn opener(self) -> Option<Spot<'v>> {
        self.block.and_then(|index| self.view.spot(index))
    }

    /// The name of the block; `main` at the top level.
    pub fn name(self) -> &'v str {
        self.opener().map_or("main", Spot::name)
    }

    /// Its statements.
    pub fn statements(self) -> impl DoubleEndedIterator<Item = Spot<'v>> {
        let list: &'v [u32] = match self.block {
            None => &self.view.roots,
            Some(index) => self.view.nodes.get(index as usize).map_or(&[], |node| &node.children),
        };
        list.iter().filter_map(move |index| self.view.spot(*index))
    }

    /// Its statements with this name.
    pub fn named(self, name: &'v str) -> impl DoubleEndedIterator<Item = Spot<'v>> {
        let list: &'v [u32] = self.view.inside.get(&(self.block, name)).map_or(&[], Vec::as_slice);
        list.iter().filter_map(move |index| self.view.spot(*index))
    }

    /// Its first statement with this name.
    pub fn get(self, name: &'v str) -> Option<Spot<'v>> {
        self.named(name).next()
    }

    /// Every statement in it, at any depth.
    pub fn all(self) -> impl Iterator<Item = Spot<'v>> {
        let mut open: Vec<Spot<'v>> = self.statements().rev().collect();
        std::iter::from_fn(move || {
            let spot = open.pop()?;
            open.extend(spot.inside().statements().rev());
            Some(spot)
        })
    }

    /// The block around it.
    pub fn outer(self) -> Option<Scope<'v>> {
        self.opener().map(Spot::scope)
    }

    /// This block and the blocks around it, nearest first.
    pub fn outwards(self) -> impl Iterator<Item = Scope<'v>> {
        std::iter::successors(Some(self), |scope| scope.outer())
    }

    /// The effective statement of a directive that a block has once: the nearest one outwards.
    pub fn effective(self, name: &'v str) -> Option<Spot<'v>> {
        self.outwards().find_map(|scope| scope.named(name).next_back())
    }

    /// The effective statements of a directive that may be repeated: all of the nearest block that has any.
    pub fn effective_all(self, name: &'v str) -> Vec<Spot<'v>> {
        self.outwards()
            .map(|scope| scope.named(name).collect::<Vec<_>>())
            .find(|spots| !spots.is_empty())
            .unwrap_or_default()
    }

    /// Whether this block has this name, or is inside one that has it.
    pub fn is_in(self, name: &str) -> bool {
        self.outwards().any(|scope| scope.block.is_some() && scope.name() == name)
    }

    /// The `server` around it.
    pub fn server(self) -> Option<Scope<'v>> {
        self.outwards().find(|scope| scope.name() == "server")
    }

    /// This block or the nearest outer block that is a `location`.
    pub fn location(self) -> Option<Spot<'v>> {
        self.outwards().filter_map(Scope::opener).find(|spot| spot.name() == "location")
    }

    /// Whether two are the same block.
    pub fn is(self, other: Scope<'_>) -> bool {
        self.block == other.block
    }

    /// The view that it belongs to.
    pub fn view(self) -> &'v View<'v> {
        self.view
    }
}

/// How a `location` matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Match<'v> {
    /// `location = /a`.
    Exact(&'v str),
    /// `location /a` and `location ^~ /a`.
    Prefix(&'v str),
    /// `location ~ a`: the pattern, and whether case is ignored.
    Pattern(&'v str, bool),
    /// `location @a`.
    Named(&'v str),
}

/// How this `location` matches. As in nginx, the modifier may be written without a space (`=/a`).
pub fn matches_by<'v>(location: Spot<'v>) -> Match<'v> {
    let (first, second) = (location.arg(0), location.arg(1));
    match first {
        "=" => Match::Exact(second),
        "^~" => Match::Prefix(second),
        "~" => Match::Pattern(second, false),
        "~*" => Match::Pattern(second, true),
        text if text.starts_with('@') => Match::Named(text),
        text => {
            if let Some(rest) = text.strip_prefix("~*") {
                Match::Pattern(rest, true)
            } else if let Some(rest) = text.strip_prefix('~') {
                Match::Pattern(rest, false)
            } else if let Some(rest) = text.strip_prefix('=') {
                Match::Exact(rest)
            } else {
                Match::Prefix(text.strip_prefix("^~").unwrap_or(text))
            }
        }
    }
}
