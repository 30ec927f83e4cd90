//! The stack of the interpreter: register windows and frames.
//!
//! Frames live on the heap, so a program that recurses without end runs into [`MAX_STACK_BYTES`], never into the end
//! of the thread's stack.

use vm::{CallSite, Ref, Result, Results, StatusCode, Trap};

use crate::program::{Function, Program};

/// The most bytes of frames, counted as the reference counts them: a header, the registers and the refs of each.
const MAX_STACK_BYTES: usize = 1 << 20;

/// Bytes a frame counts for besides its registers.
const FRAME_HEADER_BYTES: usize = 128;

/// Bytes that a register ordinal can reach from the start of its frame: 2^16 registers of 4 bytes, and the second half
/// of a pair that starts at the last one.
const WINDOW_BYTES: usize = (1 << 16) * 4 + 4;

/// Bytes of registers that a new stack has room for.
const INITIAL_REGISTER_BYTES: usize = 8192;

/// The value registers of a frame.
///
/// Every 16-bit ordinal lies in the window, so that no access needs a check. Registers beyond those of the function
/// are never accessed: the verifier checked each ordinal.
pub(crate) struct Registers<'a>(&'a mut [u8; WINDOW_BYTES]);

impl Registers<'_> {
    /// Borrows the registers as bytes, four for each.
    #[cfg(feature = "jit")]
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        self.0
    }

    /// Returns the word in a register.
    #[inline(always)]
    pub(super) fn word(&self, register: u16) -> u32 {
        let start = usize::from(register) * 4;
        match self.0[start..start + 4].first_chunk() {
            Some(bytes) => u32::from_le_bytes(*bytes),
            None => 0,
        }
    }

    /// Sets the word in a register.
    #[inline(always)]
    pub(super) fn set_word(&mut self, register: u16, value: u32) {
        let start = usize::from(register) * 4;
        self.0[start..start + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Returns the 64 bits in a register pair, given by its low register.
    #[inline(always)]
    pub(super) fn pair(&self, register: u16) -> u64 {
        let start = usize::from(register) * 4;
        match self.0[start..start + 8].first_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => 0,
        }
    }

    /// Sets the 64 bits in a register pair, given by its low register.
    #[inline(always)]
    pub(super) fn set_pair(&mut self, register: u16, value: u64) {
        let start = usize::from(register) * 4;
        self.0[start..start + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// Returns the signed integer in a register.
    #[inline(always)]
    pub(super) fn i32(&self, register: u16) -> i32 {
        self.word(register).cast_signed()
    }

    /// Sets the signed integer in a register.
    #[inline(always)]
    pub(super) fn set_i32(&mut self, register: u16, value: i32) {
        self.set_word(register, value.cast_unsigned());
    }

    /// Returns the signed integer in a register pair.
    #[inline(always)]
    pub(super) fn i64(&self, register: u16) -> i64 {
        self.pair(register).cast_signed()
    }

    /// Sets the signed integer in a register pair.
    #[inline(always)]
    pub(super) fn set_i64(&mut self, register: u16, value: i64) {
        self.set_pair(register, value.cast_unsigned());
    }

    /// Returns the float in a register.
    #[inline(always)]
    pub(super) fn f32(&self, register: u16) -> f32 {
        f32::from_bits(self.word(register))
    }

    /// Sets the float in a register.
    #[inline(always)]
    pub(super) fn set_f32(&mut self, register: u16, value: f32) {
        self.set_word(register, value.to_bits());
    }

    /// Returns the float in a register pair.
    #[inline(always)]
    pub(super) fn f64(&self, register: u16) -> f64 {
        f64::from_bits(self.pair(register))
    }

    /// Sets the float in a register pair.
    #[inline(always)]
    pub(super) fn set_f64(&mut self, register: u16, value: f64) {
        self.set_pair(register, value.to_bits());
    }
}

/// A function that is running or waits for one it called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Ordinal of the function.
    pub(crate) function: u32,
    /// Index of the step to run next; in a waiting frame, the one after its call.
    pub(crate) next: usize,
    /// Offset of its registers on the stack, in bytes.
    registers: usize,
    /// Offset of the end of its registers, in bytes.
    registers_end: usize,
    /// Offset of its refs on the stack.
    refs: usize,
    /// Offset of the end of its refs.
    refs_end: usize,
    /// Bytes that it and those below it count for.
    cost: usize,
}

/// Frames, their registers, and what calls out of the module need. Reused from invocation to invocation.
#[derive(Debug)]
pub(crate) struct Stack {
    registers: Vec<u8>,
    /// Invariant: those of no frame are null.
    refs: Vec<Ref>,
    frames: Vec<Frame>,
    /// Argument blocks of the calls to imports.
    words: Vec<u32>,
    /// What calls imports from the places that have a number.
    sites: Vec<Site>,
    /// Results of a call to an import.
    results: Results,
}

/// What calls an import from one place.
#[derive(Debug, Default)]
pub(super) enum Site {
    /// Nothing was called from there yet.
    #[default]
    New,
    /// The callee prepared nothing for the place.
    Plain,
    /// The callee prepared something.
    Prepared(PreparedSite),
}

/// A place that calls an import, with what the callee prepared for it.
#[derive(Debug)]
pub(super) struct PreparedSite {
    pub(super) callee: Box<dyn CallSite>,
    /// The argument block.
    pub(super) words: Box<[u32]>,
    /// As the plan of the call says, and so `pairs` and `consumed`.
    pub(super) inputs: Box<[(u16, u32)]>,
    pub(super) pairs: Box<[(u16, u32)]>,
    pub(super) consumed: Box<[u16]>,
}

/// The top frame, borrowed for running it.
pub(crate) struct Window<'a> {
    pub(super) registers: Registers<'a>,
    pub(super) refs: &'a mut [Ref],
    pub(super) words: &'a mut [u32],
    pub(super) sites: &'a mut [Site],
    pub(super) results: &'a mut Results,
}

impl Window<'_> {
    /// Borrows what it borrows for a shorter time.
    #[inline(always)]
    pub(super) fn reborrow(&mut self) -> Window<'_> {
        Window {
            registers: Registers(self.registers.0),
            refs: self.refs,
            words: self.words,
            sites: self.sites,
            results: self.results,
        }
    }
}

impl Stack {
    /// Returns an empty stack for a program.
    pub(crate) fn new(program: &Program) -> Self {
        Self {
            // Zeroed memory of this size comes fresh from the system: only what frames touch is ever paged in.
            registers: vec![0; INITIAL_REGISTER_BYTES + WINDOW_BYTES],
            refs: Vec::new(),
            frames: Vec::new(),
            words: program.argument_words.to_vec(),
            sites: (0..program.site_count).map(|_| Site::New).collect(),
            results: Results::new(),
        }
    }

    /// Returns the frames, the oldest first.
    pub(crate) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Borrows what will be the frame of `function` on the empty stack: registers that are zero and refs that are null. One
    /// frame is always below the limit.
    #[inline]
    pub(super) fn first_window(&mut self, function: &Function) -> Window<'_> {
        let frame = Frame::above(None, function);
        if frame.refs_end > self.refs.len() {
            self.refs.resize(frame.refs_end, Ref::Null);
        }
        let window = self.window_of(&frame);
        if frame.registers_end > 0 {
            window.registers.0[..frame.registers_end].fill(0);
        }
        window
    }

    /// Pushes the frame that [`Stack::first_window`] borrowed, as it is now.
    pub(super) fn push_first(&mut self, function: &Function) {
        self.frames.push(Frame::above(None, function));
    }

    /// Pushes a frame whose registers are zero and whose refs are null.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when the stack would grow past its limit.
    pub(super) fn push(&mut self, function: &Function) -> Result<()> {
        let frame = Frame::above(self.frames.last(), function);
        if frame.cost > MAX_STACK_BYTES {
            return Err(too_deep(self.frames.len()));
        }
        if frame.registers_end + WINDOW_BYTES > self.registers.len() {
            self.grow(frame.registers, frame.registers_end);
        }
        self.registers[frame.registers..frame.registers_end].fill(0);
        if frame.refs_end > self.refs.len() {
            self.refs.resize(frame.refs_end, Ref::Null);
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Pops the top frame and releases its refs.
    #[inline]
    pub(crate) fn pop(&mut self) {
        if let Some(top) = self.frames.pop() {
            self.refs[top.refs..top.refs_end]
                .iter_mut()
                .for_each(release);
        }
    }

    /// Pops all frames and releases their refs.
    pub(crate) fn unwind(&mut self) {
        while !self.frames.is_empty() {
            self.pop();
        }
    }

    /// Borrows the top frame.
    ///
    /// # Panics
    /// Panics when there is none.
    #[inline]
    pub(super) fn window(&mut self) -> (Frame, Window<'_>) {
        let frame = *self.frames.last().expect("a running stack has a frame");
        (frame, self.window_of(&frame))
    }

    #[inline(always)]
    fn window_of(&mut self, frame: &Frame) -> Window<'_> {
        let registers = &mut self.registers[frame.registers..];
        let registers = registers
            .first_chunk_mut()
            .expect("`push` leaves a window after each frame");
        Window {
            registers: Registers(registers),
            refs: &mut self.refs[frame.refs..frame.refs_end],
            words: &mut self.words,
            sites: &mut self.sites,
            results: &mut self.results,
        }
    }

    /// Sets the step at which the top frame goes on.
    pub(super) fn set_next(&mut self, next: usize) {
        if let Some(top) = self.frames.last_mut() {
            top.next = next;
        }
    }

    /// Copies values between the two top frames, in order.
    pub(super) fn copy(&mut self, copies: impl Iterator<Item = Copy>, direction: Direction) {
        let [.., older, newer] = self.frames[..] else {
            return;
        };
        let (from, to) = match direction {
            Direction::Call => (older, newer),
            Direction::Return => (newer, older),
        };
        for copy in copies {
            match copy {
                Copy::Word {
                    from: source,
                    to: target,
                } => self.copy_bytes::<4>(from, source, to, target),
                Copy::Pair {
                    from: source,
                    to: target,
                } => self.copy_bytes::<8>(from, source, to, target),
                Copy::Ref {
                    from: source,
                    to: target,
                } => {
                    let value = take_or_clone(&mut self.refs[from.refs..], source);
                    self.refs[to.refs + usize::from(target & REF_MASK)] = value;
                }
            }
        }
    }

    fn copy_bytes<const N: usize>(&mut self, from: Frame, source: u16, to: Frame, target: u16) {
        let source = from.registers + usize::from(source) * 4;
        let target = to.registers + usize::from(target) * 4;
        self.registers.copy_within(source..source + N, target);
    }

    fn grow(&mut self, used: usize, needed: usize) {
        let mut registers = vec![0; needed * 2 + WINDOW_BYTES];
        registers[..used].copy_from_slice(&self.registers[..used]);
        self.registers = registers;
    }
}

impl Frame {
    /// Returns the frame of `function` above another, or at the bottom of the stack.
    #[inline]
    fn above(below: Option<&Self>, function: &Function) -> Self {
        let (registers, refs, cost) = match below {
            Some(below) => (below.registers_end, below.refs_end, below.cost),
            None => (0, 0, 0),
        };
        let register_bytes = usize::from(function.register_count) * 4;
        let ref_count = usize::from(function.ref_count);
        Self {
            function: function.ordinal,
            next: 0,
            registers,
            registers_end: registers + register_bytes,
            refs,
            refs_end: refs + ref_count,
            cost: cost + FRAME_HEADER_BYTES + register_bytes.next_multiple_of(16) + ref_count * 16,
        }
    }
}

/// A value that is copied from one frame to another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Copy {
    /// 32 bits, between registers.
    Word { from: u16, to: u16 },
    /// 64 bits, between pairs given by their low registers.
    Pair { from: u16, to: u16 },
    /// A ref; the source has its MOVE bit.
    Ref { from: u16, to: u16 },
}

/// Which way values go between the two top frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the caller to its callee.
    Call,
    /// From the callee to its caller.
    Return,
}

/// The bits of a ref operand that are its ordinal.
pub(crate) const REF_MASK: u16 = 0x3FFF;

/// The bit of a ref operand that says that it is moved.
pub(crate) const MOVE_BIT: u16 = 0x4000;

/// Sets a ref register and releases what it held.
#[inline(always)]
#[expect(
    clippy::mem_forget,
    reason = "null owns nothing; its drop would be a call"
)]
pub(super) fn set_ref(refs: &mut [Ref], operand: u16, value: Ref) {
    let slot = &mut refs[usize::from(operand & REF_MASK)];
    if slot.is_null() {
        core::mem::forget(core::mem::replace(slot, value));
    } else {
        *slot = value;
    }
}

/// Releases what a ref register holds and leaves null.
#[inline(always)]
pub(super) fn release_ref(refs: &mut [Ref], operand: u16) {
    release(&mut refs[usize::from(operand & REF_MASK)]);
}

#[inline(always)]
pub(super) fn release(slot: &mut Ref) {
    if !slot.is_null() {
        *slot = Ref::Null;
    }
}

/// Returns the ref an operand names: moved out of its register if it says so, else retained.
#[inline]
pub(super) fn take_or_clone(refs: &mut [Ref], operand: u16) -> Ref {
    let slot = &mut refs[usize::from(operand & REF_MASK)];
    if operand & MOVE_BIT != 0 {
        core::mem::take(slot)
    } else {
        slot.clone()
    }
}

#[cold]
fn too_deep(depth: usize) -> Trap {
    Trap::new(
        StatusCode::RESOURCE_EXHAUSTED,
        format!(
            "the stack would grow past its limit of {MAX_STACK_BYTES} bytes at a depth of {depth} frames"
        ),
    )
}
