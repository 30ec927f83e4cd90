//! The form of a loop that is compiled: variables, blocks of operations, and ways out.
//!
//! Holds the data only. [`crate::check`] decides whether a loop is well-formed; nothing else is compiled.
//!
//! A loop works on variables. On entry some are loaded from a register file, an array of bytes; every [`Exit`] stores
//! some back and tells its code. Memory is reached through numbered buffers, element by element, and each access names
//! the exit to take when the element is not there.

/// A variable of a loop: an index in [`Loop::variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variable(pub u32);

/// A block of a loop: an index in [`Loop::blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockIndex(pub u32);

/// A way out of a loop: an index in [`Loop::exits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExitIndex(pub u32);

/// A buffer that a loop is given: an index less than [`Loop::buffer_count`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferIndex(pub u32);

/// How many bits a variable has. They may be those of an integer or of a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 32 bits.
    Word,
    /// 64 bits.
    Pair,
}

/// What an operation takes its operands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A 32-bit integer.
    I32,
    /// A 64-bit integer.
    I64,
    /// A 32-bit float.
    F32,
    /// A 64-bit float.
    F64,
}

impl Type {
    /// Returns how many bits a value of the type has.
    #[must_use]
    pub const fn width(self) -> Width {
        match self {
            Self::I32 | Self::F32 => Width::Word,
            Self::I64 | Self::F64 => Width::Pair,
        }
    }

    /// Returns whether it is a type of floats.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }
}

/// Operations of one operand and a result of the same type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// The absolute value; that of the least integer is itself.
    Abs,
    /// The bits of an integer, inverted.
    Not,
    /// The count of leading zeros of an integer; the width for zero.
    LeadingZeros,
    /// The low 8 bits of an integer, the others zero.
    Low8Unsigned,
    /// The low 8 bits of an integer, sign-extended.
    Low8Signed,
    /// The low 16 bits of an integer, the others zero.
    Low16Unsigned,
    /// The low 16 bits of an integer, sign-extended.
    Low16Signed,
    /// A float with its sign flipped.
    Negate,
    /// The least whole number that is not less than a float.
    Ceil,
    /// The greatest whole number that is not greater than a float.
    Floor,
    /// The nearest whole number; of two, the one that is further from zero.
    Round,
    /// The nearest whole number; of two, the even one. That of -0.5 is a positive zero.
    RoundToEven,
    /// The square root of a float.
    SquareRoot,
}

/// Operations of two operands and a result of the same type. Integers wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// The sum.
    Add,
    /// The difference.
    Subtract,
    /// The product.
    Multiply,
    /// The quotient of floats.
    Divide,
    /// The bits of integers that both have.
    And,
    /// The bits of integers that one of them has.
    Or,
    /// The bits of integers that exactly one of them has.
    Xor,
    /// The smaller: of floats the first when they are equal or unordered, of integers as signed ones.
    Minimum,
    /// The smaller unsigned integer.
    MinimumUnsigned,
    /// The greater: of floats the first when they are equal or unordered, of integers as signed ones.
    Maximum,
    /// The greater unsigned integer.
    MaximumUnsigned,
}

/// Shifts of an integer by a 32-bit amount modulo its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shift {
    /// Left.
    Left,
    /// Right, with zeros.
    RightUnsigned,
    /// Right, with the sign.
    RightSigned,
}

/// Divisions of integers. The least integer by -1 wraps; what remains is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Division {
    /// The signed quotient, truncated.
    QuotientSigned,
    /// The unsigned quotient.
    QuotientUnsigned,
    /// The remainder with the sign of the dividend.
    RemainderSigned,
    /// The unsigned remainder.
    RemainderUnsigned,
}

/// Comparisons. Unless said otherwise, those of floats do not hold when one is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Not equal; holds when one is no number.
    NotEqual,
    /// Less, as signed integers or floats.
    Less,
    /// Less, as unsigned integers.
    LessUnsigned,
    /// Less or equal floats.
    LessOrEqual,
    /// Equal floats, or one is no number.
    EqualOrUnordered,
    /// Less floats, or one is no number.
    LessOrUnordered,
    /// Less or equal floats, or one is no number.
    LessOrEqualOrUnordered,
    /// One of two floats is no number.
    Unordered,
}

/// Conversions between types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conversion {
    /// The low half of a 64-bit value.
    LowHalf,
    /// The high half of a 64-bit value.
    HighHalf,
    /// A 32-bit integer to a 64-bit one, with its sign.
    ExtendSigned,
    /// A 32-bit integer to a 64-bit one, with zeros.
    ExtendUnsigned,
    /// A signed integer of the first type to a float of the second, rounded.
    SignedToFloat(Type, Type),
    /// An unsigned integer of the first type to a float of the second, rounded.
    UnsignedToFloat(Type, Type),
    /// A 64-bit float without its fraction to a signed 64-bit integer; the least one when none is its value.
    FloatToSigned,
    /// A 64-bit float to a 32-bit one, rounded.
    Demote,
    /// A 32-bit float to a 64-bit one.
    Promote,
}

/// Elements of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// 8 bits; loads extend them with zeros to 32.
    Byte,
    /// 8 bits; loads extend them with their sign to 32.
    SignedByte,
    /// 16 bits; loads extend them with zeros to 32.
    Half,
    /// 16 bits; loads extend them with their sign to 32.
    SignedHalf,
    /// A whole value of the type.
    Whole(Type),
}

impl Element {
    /// Returns the power of two that is the element's size in bytes.
    #[must_use]
    pub const fn size_exponent(self) -> u32 {
        match self {
            Self::Byte | Self::SignedByte => 0,
            Self::Half | Self::SignedHalf => 1,
            Self::Whole(Type::I32 | Type::F32) => 2,
            Self::Whole(Type::I64 | Type::F64) => 3,
        }
    }

    /// Returns the type of the value that is loaded or stored.
    #[must_use]
    pub const fn value_type(self) -> Type {
        match self {
            Self::Whole(element) => element,
            _ => Type::I32,
        }
    }
}

/// One operation. `to` is the variable that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what the fields are")]
pub enum Operation {
    /// Sets the low bits of `bits`.
    Constant { to: Variable, bits: u64 },
    /// Copies a variable of the same width.
    Copy { to: Variable, from: Variable },
    /// Sets a pair to two words.
    Join {
        to: Variable,
        low: Variable,
        high: Variable,
    },
    /// Converts between types.
    Convert {
        conversion: Conversion,
        to: Variable,
        from: Variable,
    },
    /// An operation of one operand.
    Unary {
        operation: Unary,
        on: Type,
        to: Variable,
        from: Variable,
    },
    /// An operation of two operands.
    Binary {
        operation: Binary,
        on: Type,
        to: Variable,
        left: Variable,
        right: Variable,
    },
    /// The product of two and the sum with a third, each rounded.
    MultiplyAdd {
        on: Type,
        to: Variable,
        left: Variable,
        right: Variable,
        addend: Variable,
    },
    /// A shift; `amount` is a word.
    Shift {
        operation: Shift,
        on: Type,
        to: Variable,
        from: Variable,
        amount: Variable,
    },
    /// A division; `exit` is taken when the divisor is zero.
    Divide {
        operation: Division,
        on: Type,
        to: Variable,
        left: Variable,
        right: Variable,
        exit: ExitIndex,
    },
    /// Sets a word to 1 when the comparison holds, else to 0.
    Compare {
        comparison: Comparison,
        on: Type,
        to: Variable,
        left: Variable,
        right: Variable,
    },
    /// Sets one of two variables of the same width: the first when the word `condition` is not zero.
    Select {
        condition: Variable,
        to: Variable,
        first: Variable,
        second: Variable,
    },
    /// Loads the element at `index`, a pair that counts elements; `exit` is taken when it is not in the buffer.
    Load {
        element: Element,
        to: Variable,
        buffer: BufferIndex,
        index: Variable,
        exit: ExitIndex,
    },
    /// Stores the low bits of `value` in the element at `index`; `exit` is taken when it is not in the buffer.
    Store {
        element: Element,
        buffer: BufferIndex,
        index: Variable,
        value: Variable,
        exit: ExitIndex,
    },
    /// Sets a pair to the length of a buffer in bytes.
    Length { to: Variable, buffer: BufferIndex },
    /// Takes `exit` when the interrupt flag is set. A loop that may run long has one on each way around.
    Poll { exit: ExitIndex },
}

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what the fields are")]
pub enum Terminator {
    /// Goes on at a block.
    Jump(BlockIndex),
    /// Goes on at one of two blocks: the first when the word `condition` is not zero.
    Branch {
        condition: Variable,
        first: BlockIndex,
        second: BlockIndex,
    },
    /// Leaves the loop.
    Exit(ExitIndex),
}

/// Operations in order, and what comes after them.
#[derive(Clone, Debug)]
pub struct Block {
    /// The operations.
    pub operations: Vec<Operation>,
    /// What comes after them.
    pub terminator: Terminator,
}

/// A variable and its place in the register file: a byte offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The variable.
    pub variable: Variable,
    /// The offset in bytes; needs no alignment.
    pub offset: u32,
}

/// A way out.
#[derive(Clone, Debug)]
pub struct Exit {
    /// What is stored in the register file.
    pub stores: Vec<Transfer>,
    /// The code that the caller gets.
    pub code: u32,
}

/// A loop to compile.
#[derive(Clone, Debug, Default)]
pub struct Loop {
    /// The widths of the variables. They are zero at first.
    pub variables: Vec<Width>,
    /// What is loaded from the register file on entry.
    pub loads: Vec<Transfer>,
    /// The blocks; the first is the entry.
    pub blocks: Vec<Block>,
    /// The ways out.
    pub exits: Vec<Exit>,
    /// Count of buffers, at most [`MAX_BUFFERS`](crate::MAX_BUFFERS).
    pub buffer_count: u32,
}
