//! Expressions that hold a part more than once, and keep it once.
//!
//! Combining copies: a part that stands twice in what nests `n` deep stands
//! there two to the power of `n` times. Here a part that has come before is
//! replaced by how far back it is, which stays right wherever the whole
//! expression is put.

use super::intern::Interner;
use super::regex::{Op, Regex};

impl Regex {
    /// The same language, with everything that is repeated kept once. To be
    /// called at each level of what nests in itself more than once.
    #[must_use]
    pub fn compact(&self) -> Regex {
        Regex::from_ops(compact(self.ops()))
    }

    /// What `build` makes of `parts`, compact. The time it takes is that of
    /// `build`, where each part is as small as a character.
    ///
    /// # Example
    ///
    /// ```
    /// use maskwright_grammar_core::regular::{Language, Limits, Regex};
    ///
    /// let word = Regex::rust("[a-z]+")?;
    /// let list = Regex::sharing(&[word], |[word]| {
    ///     let more = Regex::concat(&[Regex::literal(", "), word.clone()]);
    ///     Regex::concat(&[word, more.repeat(0, None)])
    /// });
    /// let language = Language::new(&list, Limits::new())?;
    /// assert!(language.is_match("one, two")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn sharing<const N: usize>(
        parts: &[Regex; N],
        build: impl FnOnce([Regex; N]) -> Regex,
    ) -> Regex {
        let places = std::array::from_fn(|index| {
            Regex::from_ops(vec![Op::Part(index)])
        });
        let built = compact(build(places).ops());
        let mut out = Vec::new();
        // Where each operation of `built`, and each part, ends in `out`.
        let mut ends: Vec<usize> = Vec::with_capacity(built.len());
        let mut ends_of_parts = [None; N];
        for op in built {
            match op {
                Op::Part(index) => match ends_of_parts.get_mut(index) {
                    Some(Some(end)) => out.push(again(out.len(), *end)),
                    Some(end) => {
                        out.extend_from_slice(parts[index].ops());
                        *end = Some(out.len() - 1);
                    }
                    // One of another call, which has no meaning here.
                    None => out.push(Op::Alternate(0)),
                },
                Op::Again(back) => {
                    let end = ends[ends.len() - back as usize];
                    out.push(again(out.len(), end));
                }
                op => out.push(op),
            }
            ends.push(out.len() - 1);
        }
        Regex::from_ops(out)
    }
}

fn again(at: usize, end: usize) -> Op {
    Op::Again(u32::try_from(at - end).unwrap_or(u32::MAX))
}

/// Keeps every repeated part once.
fn compact(ops: &[Op]) -> Vec<Op> {
    let mut compactor = Compactor {
        parts: Interner::new(),
        ends: Vec::new(),
        read: Vec::with_capacity(ops.len()),
        stack: Vec::new(),
        out: Vec::new(),
    };
    for op in ops {
        compactor.take(op);
    }
    compactor.out
}

/// An operand: which part it is, and where it begins in the output.
#[derive(Clone, Copy)]
struct Operand {
    part: u32,
    start: usize,
}

struct Compactor {
    /// The distinct parts: an operation and the parts it is applied to.
    parts: Interner<(Op, Vec<u32>)>,
    /// Where each part ends in the output. It is kept there: what is taken
    /// back is a part that has come before, and so is all within.
    ends: Vec<usize>,
    /// The part that each operation of the input completes.
    read: Vec<u32>,
    stack: Vec<Operand>,
    out: Vec<Op>,
}

impl Compactor {
    fn take(&mut self, op: &Op) {
        if let Op::Again(back) = *op {
            let at = self.read.len().checked_sub(back as usize);
            // A list of operations never points before its beginning.
            let part = at.and_then(|at| self.read.get(at).copied());
            self.repeat(part.unwrap_or_default(), self.out.len());
            return;
        }
        let at = self.stack.len().saturating_sub(op.n_operands());
        let operands = self.stack.split_off(at);
        let start = operands.first().map_or(self.out.len(), |it| it.start);
        let operands = operands.iter().map(|it| it.part).collect();
        let (part, new) = self.parts.intern((op.clone(), operands));
        if !new && start < self.out.len() {
            self.out.truncate(start);
            self.repeat(part, start);
            return;
        }
        if new {
            self.ends.push(self.out.len());
        }
        self.out.push(op.clone());
        self.read.push(part);
        self.stack.push(Operand { part, start });
    }

    /// Writes a part that has come before.
    fn repeat(&mut self, part: u32, start: usize) {
        self.out.push(again(start, self.ends[part as usize]));
        self.read.push(part);
        self.stack.push(Operand { part, start });
    }
}
