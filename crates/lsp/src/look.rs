//! The configuration that a request of an editor is about.

use std::cell::OnceCell;
use std::rc::Rc;

use weir_conf::Tree;
use weir_doctor::Target;
use weir_words::Language;

use crate::mentions::Mentions;

/// The names of one tree. They are found when a request first needs them, and kept for all later ones.
pub type KeptMentions = Rc<OnceCell<Mentions>>;

/// A configuration, the program that reads it, and the language of the reader.
pub struct Look<'l> {
    /// All files, with includes in place.
    pub tree: &'l Tree,
    /// The program.
    pub target: Target,
    /// The language of answers.
    pub language: Language,
    mentions: KeptMentions,
}

impl<'l> Look<'l> {
    /// A look at a tree whose names are not known yet.
    pub fn new(tree: &'l Tree, target: Target, language: Language) -> Look<'l> {
        Look::kept(tree, KeptMentions::default(), target, language)
    }

    /// A look at a tree with the names of this tree.
    pub fn kept(tree: &'l Tree, mentions: KeptMentions, target: Target, language: Language) -> Look<'l> {
        Look { tree, target, language, mentions }
    }

    /// The names of the tree.
    pub fn mentions(&self) -> &Mentions {
        self.mentions.get_or_init(|| Mentions::new(self.tree))
    }

    /// The bytes of a file; empty if there is no such file.
    pub fn bytes(&self, file: u32) -> &'l [u8] {
        self.tree.files.get(file as usize).map_or(&[], |source| source.bytes.as_slice())
    }

    /// The name of a file.
    pub fn name(&self, file: u32) -> &'l str {
        self.tree.files.get(file as usize).map_or("", |source| source.name.as_str())
    }
}
