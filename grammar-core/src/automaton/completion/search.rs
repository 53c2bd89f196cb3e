//! The search by rows.

use std::{cmp::Reverse, collections::BinaryHeap};

use smallvec::SmallVec;

use super::{
    Bytes, CallSite, Completions, End, Entry, How, Item, pleasant, useful_row,
};
use crate::{
    automaton::{
        AutomatonError, Configuration, Machine, Stack, StateId, Step,
    },
    util::FxHashMap,
};

/// After how many steps at least the search may become bold.
const MIN_PATIENCE: usize = 1 << 8;

/// One search from one configuration.
pub(super) struct Search<'a> {
    known: &'a mut Completions,
    machine: Machine<'a>,
    /// The entries that can advance: priority and index. May hold what is
    /// stale.
    queue: BinaryHeap<Reverse<(Bytes, u32)>>,
    contexts: Vec<Context>,
    by_place: FxHashMap<(u32, usize), u32>,
    of_entry: FxHashMap<u32, Vec<u32>>,
    best: Option<Goal>,
    order: Order,
    /// What was reached since the order is [`Order::Bold`]: entries and
    /// items.
    recent: Vec<(u32, u32)>,
}

/// In which order items are settled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Order {
    /// By their distance; entries that have an end already stand back.
    Hasty,
    /// What was reached last comes first. A frame that can get to its end by
    /// very many ways of one length (an object whose members come in any
    /// order) is not gone through in its breadth.
    Bold,
    /// By their distance.
    Exact,
}

/// An entry as a frame of the configuration's stacks.
struct Context {
    entry: u32,
    start: Bytes,
    /// Also holds the identity of the stack.
    below: Stack,
    /// The context above, and how it ended.
    above: Option<(u32, u32)>,
}

/// A whole text: the last frame of a stack, and how it ends.
#[derive(Clone, Copy)]
struct Goal {
    length: Bytes,
    context: u32,
    end: u32,
}

/// A frame to go on in.
struct Place {
    state: StateId,
    start: Bytes,
    below: Stack,
    above: Option<(u32, u32)>,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        known: &'a mut Completions,
        machine: Machine<'a>,
    ) -> Search<'a> {
        Search {
            known,
            machine,
            queue: BinaryHeap::new(),
            contexts: Vec::new(),
            by_place: FxHashMap::default(),
            of_entry: FxHashMap::default(),
            best: None,
            order: Order::Hasty,
            recent: Vec::new(),
        }
    }

    /// Returns the bytes of a shortest text, if one is found in time.
    pub(super) fn run(
        mut self,
        configuration: &Configuration,
    ) -> Result<Option<Vec<u8>>, AutomatonError> {
        for top in configuration.tops() {
            self.go_on(Place {
                state: self.straight(top.frame.state)?,
                start: 0,
                below: top.below.clone(),
                above: None,
            })?;
        }
        let n_left = self.known.n_left;
        let n_patient = self.known.patience.min(n_left);
        let n_left = n_left - n_patient + self.advance(n_patient)?;
        self.known.n_left = n_left;
        if self.best.is_none() {
            self.known.patience = (n_patient / 8).max(MIN_PATIENCE);
            let found = self.known.straight(self.machine, configuration)?;
            if found.is_some() {
                return Ok(found);
            }
            self.known.n_left = self.be_bold(n_left)?;
        } else {
            let full = self.known.effort.patience();
            self.known.patience = (2 * self.known.patience).min(full);
        }
        if self.best.is_some() {
            // The entries that stood back come in their order now.
            self.order = Order::Exact;
            for entry in self.active() {
                self.push(entry);
            }
            self.advance(self.known.effort.improve)?;
        }
        Ok(self.best.map(|goal| self.spell(goal)))
    }

    /// Returns the entries that this search came to.
    fn active(&self) -> Vec<u32> {
        let round = self.known.round;
        let entries = (0..).zip(&self.known.entries);
        let active = entries.filter(|(_, entry)| entry.round == round);
        active.map(|(index, _)| index).collect()
    }

    /// Settles at most `n_left` items, what was reached last first, until a
    /// text is found. Returns how many steps are left.
    fn be_bold(&mut self, n_left: usize) -> Result<usize, AutomatonError> {
        self.order = Order::Bold;
        let mut open: Vec<(Bytes, u32, u32)> = Vec::new();
        for index in self.active() {
            let entry = &self.known.entries[index as usize];
            for (item, known) in (0..).zip(&entry.items) {
                if !known.settled {
                    let at = entry.start.saturating_add(known.distance);
                    open.push((at, index, item));
                }
            }
        }
        open.sort_unstable();
        self.recent = open.into_iter().map(|(_, e, item)| (e, item)).collect();
        let mut n_left = n_left;
        while n_left > 0 && self.best.is_none() {
            let Some((entry, item)) = self.recent.pop() else { break };
            if !self.known.entries[entry as usize].items[item as usize].settled
            {
                n_left -= 1;
                self.settle(entry, item)?;
            }
        }
        Ok(n_left)
    }

    /// Settles at most `n_left` items by their distance: until a text is
    /// found, or until nothing could be shorter than what was. Returns how
    /// many steps are left.
    fn advance(&mut self, n_left: usize) -> Result<usize, AutomatonError> {
        let is_hasty = self.order == Order::Hasty;
        let mut n_left = n_left;
        while n_left > 0 {
            if is_hasty && self.best.is_some() {
                break;
            }
            let Some(Reverse((priority, entry))) = self.queue.pop() else {
                break;
            };
            let Some(current) = self.priority(entry) else { continue };
            if current > priority {
                self.queue.push(Reverse((current, entry)));
                continue;
            }
            if !is_hasty
                && self.best.is_some_and(|best| priority >= best.length)
            {
                break;
            }
            let open = &mut self.known.entries[entry as usize].open;
            if let Some(Reverse((_, item))) = open.pop() {
                n_left -= 1;
                self.settle(entry, item)?;
            }
            self.push(entry);
        }
        Ok(n_left)
    }

    /// When an entry should advance: by how many bytes lead to what is next
    /// in it. `None` if nothing is.
    fn priority(&mut self, entry: u32) -> Option<Bytes> {
        let entry = &mut self.known.entries[entry as usize];
        let head = loop {
            let &Reverse((distance, item)) = entry.open.peek()?;
            let known = &entry.items[item as usize];
            if !known.settled && known.distance == distance {
                break distance;
            }
            entry.open.pop();
        };
        let at = entry.start.saturating_add(head);
        match entry.ends.first() {
            // Another outcome may be better, and seldom is.
            Some(end) if self.order == Order::Hasty => {
                let beyond = head.saturating_sub(end.distance);
                Some(at.saturating_add(16).saturating_add(4 * beyond))
            }
            _ => Some(at),
        }
    }

    fn push(&mut self, entry: u32) {
        if let Some(priority) = self.priority(entry) {
            self.queue.push(Reverse((priority, entry)));
        }
    }

    /// Looks at the row of an item. Its ends come last, so that what follows
    /// them is what was reached last.
    fn settle(
        &mut self,
        entry: u32,
        index: u32,
    ) -> Result<(), AutomatonError> {
        let known = &mut self.known.entries[entry as usize];
        let item = &mut known.items[index as usize];
        item.settled = true;
        let (state, calls, distance) = (item.state, item.calls, item.distance);
        let row = self.machine.row(state)?;
        let mut ends: SmallVec<[End; 2]> = SmallVec::new();
        if let Some(outcome) = row.finish {
            let item = index;
            ends.push(End { outcome, distance, item, byte: None });
        }
        let first = id(self.known.entries[entry as usize].calls.len());
        for range in useful_row(self.machine, row)?.ranges() {
            let byte = pleasant(range.lo, range.hi);
            let distance = distance.saturating_add(1);
            match range.step {
                Step::Stay(to) => {
                    let how = How::Byte { from: index, byte };
                    self.reach(entry, to, distance, how)?;
                }
                Step::Return(outcome) => {
                    let (item, byte) = (index, Some(byte));
                    ends.push(End { outcome, distance, item, byte });
                }
                Step::Call { resume, callee } if calls.is_none() => {
                    let byte = Some(byte);
                    self.add_call(entry, index, byte, resume, callee)?;
                }
                Step::Call { .. } => {}
            }
        }
        if calls.is_none() {
            for call in &row.calls {
                self.add_call(entry, index, None, call.resume, call.callee)?;
            }
        }
        let calls = calls.unwrap_or_else(|| {
            (first, id(self.known.entries[entry as usize].calls.len()))
        });
        let known = &mut self.known.entries[entry as usize];
        known.items[index as usize].calls = Some(calls);
        for call in calls.0..calls.1 {
            self.call(entry, call)?;
        }
        for end in ends {
            self.end(entry, end)?;
        }
        Ok(())
    }

    /// Notes a call; [`Search::call`] makes it.
    fn add_call(
        &mut self,
        entry: u32,
        from: u32,
        byte: Option<u8>,
        resume: StateId,
        callee: StateId,
    ) -> Result<(), AutomatonError> {
        let callee = self.known.entry(self.straight(callee)?);
        let calls = &mut self.known.entries[entry as usize].calls;
        let index = id(calls.len());
        calls.push(CallSite { from, byte, resume, callee });
        self.known.entries[callee as usize].callers.push((entry, index));
        Ok(())
    }

    /// Lets the callee of a call advance, and goes on where it ends.
    fn call(&mut self, entry: u32, call: u32) -> Result<(), AutomatonError> {
        let site = self.known.entries[entry as usize].calls[call as usize];
        let start = self.known.entries[entry as usize]
            .start
            .saturating_add(self.known.distance(entry, &site));
        self.activate(site.callee, start);
        for end in 0..self.known.entries[site.callee as usize].ends.len() {
            self.resume(entry, call, id(end))?;
        }
        Ok(())
    }

    /// Goes on in a caller whose callee can end.
    fn resume(
        &mut self,
        entry: u32,
        call: u32,
        end: u32,
    ) -> Result<(), AutomatonError> {
        let site = self.known.entries[entry as usize].calls[call as usize];
        let callee = &self.known.entries[site.callee as usize];
        let ended = callee.ends[end as usize];
        let distance =
            self.known.distance(entry, &site).saturating_add(ended.distance);
        for to in self.machine.resume(site.resume, ended.outcome)? {
            self.reach(entry, to, distance, How::Call { call, end })?;
        }
        Ok(())
    }

    /// Notes that an entry reaches a state of its frame.
    fn reach(
        &mut self,
        entry: u32,
        state: StateId,
        distance: Bytes,
        how: How,
    ) -> Result<(), AutomatonError> {
        let state = self.straight(state)?;
        let Some(item) = self.known.reach(entry, state, distance, how) else {
            return Ok(());
        };
        if self.known.entries[entry as usize].round != self.known.round {
            return Ok(());
        }
        if self.order == Order::Bold {
            self.recent.push((entry, item));
        } else {
            self.push(entry);
        }
        Ok(())
    }

    /// The state to look at instead of one that was reached.
    fn straight(&self, state: StateId) -> Result<StateId, AutomatonError> {
        if self.known.is_straight {
            self.machine.ending(state)
        } else {
            Ok(state)
        }
    }

    /// Notes that an entry can end, and tells everyone who waits for it.
    fn end(&mut self, entry: u32, end: End) -> Result<(), AutomatonError> {
        let Some(index) = self.known.end(entry, end) else { return Ok(()) };
        let mut caller = 0;
        // A caller may be the entry itself, so the list is not borrowed.
        while let Some(&(from, call)) =
            self.known.entries[entry as usize].callers.get(caller)
        {
            self.resume(from, call, index)?;
            caller += 1;
        }
        let contexts = self.of_entry.get(&entry).cloned().unwrap_or_default();
        for context in contexts {
            self.leave(context, index)?;
        }
        Ok(())
    }

    /// Lets an entry and everything that it calls advance, as being `start`
    /// bytes away.
    fn activate(&mut self, entry: u32, start: Bytes) {
        let mut pending = vec![(entry, start)];
        while let Some((index, start)) = pending.pop() {
            let round = self.known.round;
            let entry = &mut self.known.entries[index as usize];
            if entry.round == round && entry.start <= start {
                continue;
            }
            let is_new = entry.round != round;
            (entry.round, entry.start) = (round, start);
            let entry = &self.known.entries[index as usize];
            pending.extend(entry.calls.iter().map(|site| {
                let distance = self.known.distance(index, site);
                (site.callee, start.saturating_add(distance))
            }));
            if self.order != Order::Bold {
                self.push(index);
            } else if is_new {
                let items = (0..).zip(&entry.items);
                let open = items.filter(|(_, item)| !item.settled);
                self.recent.extend(open.map(|(item, _)| (index, item)));
            }
        }
    }

    /// Leaves a frame of the stack for the frames below.
    fn leave(&mut self, context: u32, end: u32) -> Result<(), AutomatonError> {
        let mut places = Vec::new();
        self.leave_for(context, end, &mut places)?;
        while let Some(place) = places.pop() {
            self.enter(place, &mut places)?;
        }
        Ok(())
    }

    /// Goes on in a frame of the stack, and below it as far as is known.
    fn go_on(&mut self, place: Place) -> Result<(), AutomatonError> {
        let mut places = vec![place];
        while let Some(place) = places.pop() {
            self.enter(place, &mut places)?;
        }
        Ok(())
    }

    fn leave_for(
        &mut self,
        context: u32,
        end: u32,
        places: &mut Vec<Place>,
    ) -> Result<(), AutomatonError> {
        let from = &self.contexts[context as usize];
        let ended = self.known.entries[from.entry as usize].ends[end as usize];
        let start = from.start.saturating_add(ended.distance);
        if from.below.has_bottom()
            && self.best.is_none_or(|best| start < best.length)
        {
            self.best = Some(Goal { length: start, context, end });
        }
        for edge in from.below.edges() {
            let above = Some((context, end));
            for state in
                self.machine.resume(edge.frame.state, ended.outcome)?
            {
                let state = self.straight(state)?;
                let below = edge.below.clone();
                places.push(Place { state, start, below, above });
            }
        }
        Ok(())
    }

    fn enter(
        &mut self,
        place: Place,
        places: &mut Vec<Place>,
    ) -> Result<(), AutomatonError> {
        let Place { state, start, below, above } = place;
        let entry = self.known.entry(state);
        let key = (entry, below.identity());
        let context = if let Some(&known) = self.by_place.get(&key) {
            let context = &mut self.contexts[known as usize];
            if context.start <= start {
                return Ok(());
            }
            (context.start, context.above) = (start, above);
            known
        } else {
            let context = id(self.contexts.len());
            self.contexts.push(Context { entry, start, below, above });
            self.by_place.insert(key, context);
            self.of_entry.entry(entry).or_default().push(context);
            context
        };
        self.activate(entry, start);
        for end in 0..self.known.entries[entry as usize].ends.len() {
            self.leave_for(context, id(end), places)?;
        }
        Ok(())
    }

    fn spell(&self, goal: Goal) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut at = Some((goal.context, goal.end));
        while let Some((context, end)) = at {
            let context = &self.contexts[context as usize];
            self.known.spell(context.entry, end, &mut bytes);
            at = context.above;
        }
        bytes.reverse();
        bytes
    }
}

impl Completions {
    /// Returns the entry that begins in `state`.
    fn entry(&mut self, state: StateId) -> u32 {
        let next = id(self.entries.len());
        let entry = *self.by_state.entry(state).or_insert(next);
        if entry == next {
            self.entries.push(Entry {
                items: Vec::new(),
                open: BinaryHeap::new(),
                ends: Vec::new(),
                calls: Vec::new(),
                callers: Vec::new(),
                round: 0,
                start: 0,
            });
            self.reach(entry, state, 0, How::Start);
        }
        entry
    }

    /// Notes a way to a state, and returns its item if it is the shortest so
    /// far.
    fn reach(
        &mut self,
        entry: u32,
        state: StateId,
        distance: Bytes,
        how: How,
    ) -> Option<u32> {
        let known = &mut self.entries[entry as usize];
        let next = id(known.items.len());
        let index = *self.items.entry((entry, state)).or_insert(next);
        if index == next {
            let (settled, calls) = (false, None);
            known.items.push(Item { state, distance, how, settled, calls });
        } else {
            let item = &mut known.items[index as usize];
            if item.distance <= distance {
                return None;
            }
            (item.distance, item.how, item.settled) = (distance, how, false);
        }
        known.open.push(Reverse((distance, index)));
        Some(index)
    }

    /// Notes a way to an end, and returns its index if it is the shortest so
    /// far.
    fn end(&mut self, entry: u32, end: End) -> Option<u32> {
        let ends = &mut self.entries[entry as usize].ends;
        let same = |known: &End| known.outcome == end.outcome;
        let Some(index) = ends.iter().position(same) else {
            ends.push(end);
            return Some(id(ends.len() - 1));
        };
        let known = &mut ends[index];
        if known.distance <= end.distance {
            return None;
        }
        *known = end;
        Some(id(index))
    }

    /// Returns how far from the start of an entry the callee of a call is.
    fn distance(&self, entry: u32, site: &CallSite) -> Bytes {
        let items = &self.entries[entry as usize].items;
        let distance = items[site.from as usize].distance;
        distance.saturating_add(Bytes::from(site.byte.is_some()))
    }

    /// Appends the bytes of a way to an end, last byte first.
    ///
    /// Every part of a way was shorter than the whole when it was noted, and
    /// parts only become shorter, so this ends.
    fn spell(&self, entry: u32, end: u32, bytes: &mut Vec<u8>) {
        /// What is still to be spelled, last part first.
        enum Part {
            End { entry: u32, end: u32 },
            Item { entry: u32, item: u32 },
            Byte(Option<u8>),
        }
        let mut parts = vec![Part::End { entry, end }];
        while let Some(part) = parts.pop() {
            match part {
                Part::Byte(byte) => bytes.extend(byte),
                Part::End { entry, end } => {
                    let end = self.entries[entry as usize].ends[end as usize];
                    parts.push(Part::Item { entry, item: end.item });
                    parts.push(Part::Byte(end.byte));
                }
                Part::Item { entry, item } => {
                    let known = &self.entries[entry as usize];
                    match known.items[item as usize].how {
                        How::Start => {}
                        How::Byte { from, byte } => {
                            parts.push(Part::Item { entry, item: from });
                            parts.push(Part::Byte(Some(byte)));
                        }
                        How::Call { call, end } => {
                            let site = known.calls[call as usize];
                            let item = site.from;
                            parts.push(Part::Item { entry, item });
                            parts.push(Part::Byte(site.byte));
                            let entry = site.callee;
                            parts.push(Part::End { entry, end });
                        }
                    }
                }
            }
        }
    }
}

/// An index: there are fewer than 2^32 of anything, as each takes memory.
fn id(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 of anything fit in memory")
}
