//! The check of a loop before it is compiled: every index names something, every operand has its operation's width.
//!
//! What the compiled code may do to memory does not rest on this check but on the bounds that
//! [`crate::translate`] puts around each access; it keeps the translation free of panics.

use crate::CompileError;
use crate::ir::{
    Binary, BlockIndex, BufferIndex, Comparison, Conversion, Element, ExitIndex, Loop, Operation,
    Terminator, Transfer, Type, Unary, Variable, Width,
};
use crate::{MAX_BUFFERS, MAX_REGISTER_BYTES};

/// Checks a loop.
///
/// # Errors
/// Says what is wrong.
pub(crate) fn check(body: &Loop) -> Result<(), CompileError> {
    Checker(body).check().map_err(CompileError::Malformed)
}

struct Checker<'a>(&'a Loop);

type Checked = Result<(), &'static str>;

impl Checker<'_> {
    fn check(&self) -> Checked {
        let body = self.0;
        require(!body.blocks.is_empty(), "a loop without blocks")?;
        let buffers = usize::try_from(body.buffer_count);
        require(
            buffers.is_ok_and(|count| count <= MAX_BUFFERS),
            "too many buffers",
        )?;
        self.transfers(&body.loads)?;
        for exit in &body.exits {
            self.transfers(&exit.stores)?;
        }
        for block in &body.blocks {
            for operation in &block.operations {
                self.operation(operation)?;
            }
            match block.terminator {
                Terminator::Jump(target) => self.block(target)?,
                Terminator::Branch {
                    condition,
                    first,
                    second,
                } => {
                    self.is(condition, Width::Word)?;
                    self.block(first)?;
                    self.block(second)?;
                }
                Terminator::Exit(exit) => self.exit(exit)?,
            }
        }
        Ok(())
    }

    fn operation(&self, operation: &Operation) -> Checked {
        match *operation {
            Operation::Constant { to, .. } => self.width(to).map(|_| ()),
            Operation::Copy { to, from } => self.is(from, self.width(to)?),
            Operation::Join { to, low, high } => {
                self.is(to, Width::Pair)?;
                self.are(&[low, high], Width::Word)
            }
            Operation::Convert {
                conversion,
                to,
                from,
            } => {
                let (source, target) = conversion.types();
                let fits = match conversion {
                    Conversion::SignedToFloat(..) | Conversion::UnsignedToFloat(..) => {
                        !source.is_float() && target.is_float()
                    }
                    _ => true,
                };
                require(fits, "a conversion between the wrong types")?;
                self.is(from, source.width())?;
                self.is(to, target.width())
            }
            Operation::Unary {
                operation,
                on,
                to,
                from,
            } => {
                let fits = match operation {
                    Unary::Abs => true,
                    Unary::Not
                    | Unary::LeadingZeros
                    | Unary::Low8Unsigned
                    | Unary::Low8Signed
                    | Unary::Low16Unsigned
                    | Unary::Low16Signed => !on.is_float(),
                    Unary::Negate
                    | Unary::Ceil
                    | Unary::Floor
                    | Unary::Round
                    | Unary::RoundToEven
                    | Unary::SquareRoot => on.is_float(),
                };
                require(fits, "an operation on the wrong type")?;
                self.are(&[to, from], on.width())
            }
            Operation::Binary {
                operation,
                on,
                to,
                left,
                right,
            } => {
                let fits = match operation {
                    Binary::Add
                    | Binary::Subtract
                    | Binary::Multiply
                    | Binary::Minimum
                    | Binary::Maximum => true,
                    Binary::Divide => on.is_float(),
                    Binary::And
                    | Binary::Or
                    | Binary::Xor
                    | Binary::MinimumUnsigned
                    | Binary::MaximumUnsigned => !on.is_float(),
                };
                require(fits, "an operation on the wrong type")?;
                self.are(&[to, left, right], on.width())
            }
            Operation::MultiplyAdd {
                on,
                to,
                left,
                right,
                addend,
            } => self.are(&[to, left, right, addend], on.width()),
            Operation::Shift {
                on,
                to,
                from,
                amount,
                ..
            } => {
                require(!on.is_float(), "a shift of a float")?;
                self.is(amount, Width::Word)?;
                self.are(&[to, from], on.width())
            }
            Operation::Divide {
                on,
                to,
                left,
                right,
                exit,
                ..
            } => {
                require(!on.is_float(), "a division of floats that may exit")?;
                self.are(&[to, left, right], on.width())?;
                self.exit(exit)
            }
            Operation::Compare {
                comparison,
                on,
                to,
                left,
                right,
            } => {
                let fits = match comparison {
                    Comparison::Equal | Comparison::NotEqual | Comparison::Less => true,
                    Comparison::LessUnsigned => !on.is_float(),
                    Comparison::LessOrEqual
                    | Comparison::EqualOrUnordered
                    | Comparison::LessOrUnordered
                    | Comparison::LessOrEqualOrUnordered
                    | Comparison::Unordered => on.is_float(),
                };
                require(fits, "a comparison of the wrong type")?;
                self.is(to, Width::Word)?;
                self.are(&[left, right], on.width())
            }
            Operation::Select {
                condition,
                to,
                first,
                second,
            } => {
                self.is(condition, Width::Word)?;
                self.are(&[first, second], self.width(to)?)
            }
            Operation::Load {
                element,
                to,
                buffer,
                index,
                exit,
            } => self.access(element, to, buffer, index, exit),
            Operation::Store {
                element,
                buffer,
                index,
                value,
                exit,
            } => self.access(element, value, buffer, index, exit),
            Operation::Length { to, buffer } => {
                self.buffer(buffer)?;
                self.is(to, Width::Pair)
            }
            Operation::Poll { exit } => self.exit(exit),
        }
    }

    fn access(
        &self,
        element: Element,
        value: Variable,
        buffer: BufferIndex,
        index: Variable,
        exit: ExitIndex,
    ) -> Checked {
        self.buffer(buffer)?;
        self.exit(exit)?;
        self.is(index, Width::Pair)?;
        self.is(value, element.value_type().width())
    }

    fn transfers(&self, transfers: &[Transfer]) -> Checked {
        transfers.iter().try_for_each(|transfer| {
            self.width(transfer.variable)?;
            require(
                transfer.offset <= MAX_REGISTER_BYTES - 8,
                "a place outside the register file",
            )
        })
    }

    fn width(&self, variable: Variable) -> Result<Width, &'static str> {
        let width = self.0.variables.get(variable.0 as usize);
        width.copied().ok_or("a variable that does not exist")
    }

    fn is(&self, variable: Variable, width: Width) -> Checked {
        require(
            self.width(variable)? == width,
            "a variable of the wrong width",
        )
    }

    fn are(&self, variables: &[Variable], width: Width) -> Checked {
        variables
            .iter()
            .try_for_each(|variable| self.is(*variable, width))
    }

    fn block(&self, block: BlockIndex) -> Checked {
        let exists = (block.0 as usize) < self.0.blocks.len();
        require(exists, "a block that does not exist")
    }

    fn exit(&self, exit: ExitIndex) -> Checked {
        require(
            (exit.0 as usize) < self.0.exits.len(),
            "an exit that does not exist",
        )
    }

    fn buffer(&self, buffer: BufferIndex) -> Checked {
        require(
            buffer.0 < self.0.buffer_count,
            "a buffer that does not exist",
        )
    }
}

impl Conversion {
    /// Returns the types that are converted from and to.
    pub(crate) const fn types(self) -> (Type, Type) {
        match self {
            Self::LowHalf | Self::HighHalf => (Type::I64, Type::I32),
            Self::ExtendSigned | Self::ExtendUnsigned => (Type::I32, Type::I64),
            Self::SignedToFloat(from, to) | Self::UnsignedToFloat(from, to) => (from, to),
            Self::FloatToSigned => (Type::F64, Type::I64),
            Self::Demote => (Type::F64, Type::F32),
            Self::Promote => (Type::F32, Type::F64),
        }
    }
}

fn require(holds: bool, what: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(what) }
}
