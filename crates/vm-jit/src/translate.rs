//! Translation of a checked loop to machine code.
//!
//! The one rule: a load or store that Cranelift is given is either at a constant offset from the register file or the
//! arrays of buffers, or comes after the comparison of its index with the number of elements in its buffer. Nothing else
//! here makes one.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, AbiParam, InstBuilder, MemFlagsData, Value, types};
use cranelift_codegen::isa::{OwnedTargetIsa, TargetFrontendConfig};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use crate::CompileError;
use crate::ir::{
    Binary, Block, BlockIndex, BufferIndex, Comparison, Conversion, Division, Element, ExitIndex,
    Loop, Operation, Shift, Terminator, Type, Unary, Variable, Width,
};

/// Makes the machine code of a checked loop: a [`crate::code::Entry`].
///
/// # Errors
/// Fails when the host is not one that Cranelift makes code for, when Cranelift fails, and when the code would need
/// functions of a library.
pub(crate) fn machine_code(body: &Loop) -> Result<Vec<u8>, CompileError> {
    let isa = host()?;
    let mut context = Context::new();
    context.func.signature = signature(&isa);
    let mut builder_context = FunctionBuilderContext::new();
    let builder = FunctionBuilder::new(&mut context.func, &mut builder_context);
    Translation::new(body, builder, &isa).translate();
    let compiled = context
        .compile(&*isa, &mut ControlPlane::default())
        .map_err(|error| CompileError::Generator(error.inner.to_string()))?;
    if !compiled.buffer.relocs().is_empty() {
        return Err(CompileError::NotSelfContained);
    }
    Ok(compiled.code_buffer().to_vec())
}

/// Returns the code generator for this processor.
fn host() -> Result<OwnedTargetIsa, CompileError> {
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", "speed"),
        (
            "enable_verifier",
            if cfg!(debug_assertions) {
                "true"
            } else {
                "false"
            },
        ),
    ] {
        let outcome = flags.set(name, value);
        outcome.map_err(|error| CompileError::Generator(error.to_string()))?;
    }
    cranelift_native::builder()
        .map_err(CompileError::Host)?
        .finish(settings::Flags::new(flags))
        .map_err(|error| CompileError::Generator(error.to_string()))
}

fn signature(isa: &OwnedTargetIsa) -> ir::Signature {
    let mut signature = ir::Signature::new(isa.default_call_conv());
    let pointer = AbiParam::new(isa.pointer_type());
    signature.params.extend([pointer; 4]);
    signature.returns.push(AbiParam::new(types::I32));
    signature
}

/// A buffer as the code sees it.
#[derive(Clone, Copy)]
struct BufferValues {
    address: Value,
    length: Value,
    /// Count of elements of each size, by the exponent of the size.
    counts: [Value; 4],
}

struct Translation<'a> {
    body: &'a Loop,
    builder: FunctionBuilder<'a>,
    frontend: TargetFrontendConfig,
    variables: Vec<cranelift_frontend::Variable>,
    /// The type in which each variable is kept.
    kept: Vec<ir::Type>,
    blocks: Vec<ir::Block>,
    registers: Value,
    interrupt: Value,
    buffers: Vec<BufferValues>,
    /// What each variable was set to in this block, in the type of the operation that did.
    latest: Vec<Option<Value>>,
}

impl<'a> Translation<'a> {
    fn new(body: &'a Loop, mut builder: FunctionBuilder<'a>, isa: &OwnedTargetIsa) -> Self {
        let pointer = isa.pointer_type();
        let kept = kept_types(body);
        let variables = kept.iter().map(|kept| builder.declare_var(*kept)).collect();
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        builder.seal_block(entry);
        let [registers, addresses, lengths, interrupt] = *builder.block_params(entry) else {
            unreachable!("`signature` has four parameters");
        };
        let buffers = (0..body.buffer_count)
            .map(|index| {
                let offset = index.cast_signed() * 8;
                let flags = MemFlagsData::trusted();
                let address = builder.ins().load(pointer, flags, addresses, offset);
                let length = builder.ins().load(types::I64, flags, lengths, offset);
                let count = |builder: &mut FunctionBuilder<'_>, exponent| match exponent {
                    0 => length,
                    _ => builder.ins().ushr_imm_u(length, exponent),
                };
                let counts = [0, 1, 2, 3].map(|exponent| count(&mut builder, exponent));
                BufferValues {
                    address,
                    length,
                    counts,
                }
            })
            .collect();
        let blocks = body.blocks.iter().map(|_| builder.create_block()).collect();
        Self {
            body,
            builder,
            frontend: isa.frontend_config(),
            variables,
            latest: vec![None; kept.len()],
            kept,
            blocks,
            registers,
            interrupt,
            buffers,
        }
    }

    fn translate(mut self) {
        for (variable, kept) in (0..).map(Variable).zip(self.kept.clone()) {
            let zero = self.constant(kept, 0);
            self.set(variable, zero);
        }
        for transfer in &self.body.loads {
            let kept = self.kept[transfer.variable.0 as usize];
            let offset = transfer.offset.cast_signed();
            let flags = register_flags();
            let value = self.builder.ins().load(kept, flags, self.registers, offset);
            self.set(transfer.variable, value);
        }
        self.jump(BlockIndex(0));
        for (block, place) in self.body.blocks.iter().zip(self.blocks.clone()) {
            self.builder.switch_to_block(place);
            self.latest.fill(None);
            self.block(block);
        }
        self.builder.seal_all_blocks();
        self.builder.finalize(self.frontend);
    }

    fn block(&mut self, block: &Block) {
        for operation in &block.operations {
            self.operation(operation);
        }
        match block.terminator {
            Terminator::Jump(target) => self.jump(target),
            Terminator::Branch {
                condition,
                first,
                second,
            } => {
                let condition = self.get(condition, Type::I32);
                let (first, second) = (self.place(first), self.place(second));
                self.builder.ins().brif(condition, first, &[], second, &[]);
            }
            Terminator::Exit(exit) => self.leave(exit),
        }
    }

    fn operation(&mut self, operation: &Operation) {
        match *operation {
            Operation::Constant { to, bits } => {
                let value = self.constant(self.kept[to.0 as usize], bits);
                self.set(to, value);
            }
            Operation::Copy { to, from } => {
                let value = self.latest(from);
                self.set(to, value);
            }
            Operation::Join { to, low, high } => {
                let (low, high) = (self.get(low, Type::I32), self.get(high, Type::I32));
                let low = self.builder.ins().uextend(types::I64, low);
                let high = self.builder.ins().uextend(types::I64, high);
                let high = self.builder.ins().ishl_imm_u(high, 32);
                let value = self.builder.ins().bor(high, low);
                self.set(to, value);
            }
            Operation::Convert {
                conversion,
                to,
                from,
            } => {
                let from = self.get(from, conversion.types().0);
                let value = self.convert(conversion, from);
                self.set(to, value);
            }
            Operation::Unary {
                operation,
                on,
                to,
                from,
            } => {
                let from = self.get(from, on);
                let value = self.unary(operation, on, from);
                self.set(to, value);
            }
            Operation::Binary {
                operation,
                on,
                to,
                left,
                right,
            } => {
                let (left, right) = (self.get(left, on), self.get(right, on));
                let value = self.binary(operation, on, left, right);
                self.set(to, value);
            }
            Operation::MultiplyAdd {
                on,
                to,
                left,
                right,
                addend,
            } => {
                let (left, right) = (self.get(left, on), self.get(right, on));
                let addend = self.get(addend, on);
                let product = self.binary(Binary::Multiply, on, left, right);
                let value = self.binary(Binary::Add, on, product, addend);
                self.set(to, value);
            }
            Operation::Shift {
                operation,
                on,
                to,
                from,
                amount,
            } => {
                // Cranelift takes amounts modulo the width, too.
                let (from, amount) = (self.get(from, on), self.get(amount, Type::I32));
                let value = match operation {
                    Shift::Left => self.builder.ins().ishl(from, amount),
                    Shift::RightUnsigned => self.builder.ins().ushr(from, amount),
                    Shift::RightSigned => self.builder.ins().sshr(from, amount),
                };
                self.set(to, value);
            }
            Operation::Divide {
                operation,
                on,
                to,
                left,
                right,
                exit,
            } => {
                let (left, right) = (self.get(left, on), self.get(right, on));
                let is_zero = self.builder.ins().icmp_imm_s(IntCC::Equal, right, 0);
                self.leave_if(is_zero, exit);
                let value = self.divide(operation, on, left, right);
                self.set(to, value);
            }
            Operation::Compare {
                comparison,
                on,
                to,
                left,
                right,
            } => {
                let (left, right) = (self.get(left, on), self.get(right, on));
                let holds = if on.is_float() {
                    self.builder.ins().fcmp(float_code(comparison), left, right)
                } else {
                    self.builder
                        .ins()
                        .icmp(integer_code(comparison), left, right)
                };
                let value = self.builder.ins().uextend(types::I32, holds);
                self.set(to, value);
            }
            Operation::Select {
                condition,
                to,
                first,
                second,
            } => {
                let condition = self.get(condition, Type::I32);
                let kept = self.kept[to.0 as usize];
                let (first, second) = (self.latest(first), self.latest(second));
                let (first, second) = (self.cast(first, kept), self.cast(second, kept));
                let value = self.builder.ins().select(condition, first, second);
                self.set(to, value);
            }
            Operation::Load {
                element,
                to,
                buffer,
                index,
                exit,
            } => {
                let (address, flags) = self.element(element, buffer, index, exit);
                let instructions = self.builder.ins();
                let value = match element {
                    Element::Byte => instructions.uload8(types::I32, flags, address, 0),
                    Element::SignedByte => instructions.sload8(types::I32, flags, address, 0),
                    Element::Half => instructions.uload16(types::I32, flags, address, 0),
                    Element::SignedHalf => instructions.sload16(types::I32, flags, address, 0),
                    Element::Whole(element) => {
                        instructions.load(machine_type(element), flags, address, 0)
                    }
                };
                self.set(to, value);
            }
            Operation::Store {
                element,
                buffer,
                index,
                value,
                exit,
            } => {
                let (address, flags) = self.element(element, buffer, index, exit);
                let value = self.get(value, element.value_type());
                let instructions = self.builder.ins();
                match element {
                    Element::Byte | Element::SignedByte => {
                        instructions.istore8(flags, value, address, 0)
                    }
                    Element::Half | Element::SignedHalf => {
                        instructions.istore16(flags, value, address, 0)
                    }
                    Element::Whole(_) => instructions.store(flags, value, address, 0),
                };
            }
            Operation::Length { to, buffer } => {
                let length = self.buffers[buffer.0 as usize].length;
                self.set(to, length);
            }
            Operation::Poll { exit } => {
                // Atomic, so that it is done each time around.
                let flags = MemFlagsData::trusted();
                let instructions = self.builder.ins();
                let flag = instructions.atomic_load(types::I8, flags, self.interrupt);
                self.leave_if(flag, exit);
            }
        }
    }

    /// Checks that an element is in its buffer, and returns its address: the only way to one.
    fn element(
        &mut self,
        element: Element,
        buffer: BufferIndex,
        index: Variable,
        exit: ExitIndex,
    ) -> (Value, MemFlagsData) {
        let exponent = element.size_exponent();
        let BufferValues {
            address, counts, ..
        } = self.buffers[buffer.0 as usize];
        let index = self.get(index, Type::I64);
        // What is below the count of whole elements has all its bytes in the buffer, and its offset cannot wrap.
        let count = counts[exponent as usize];
        let outside = IntCC::UnsignedGreaterThanOrEqual;
        let is_outside = self.builder.ins().icmp(outside, index, count);
        self.leave_if(is_outside, exit);
        let offset = match exponent {
            0 => index,
            _ => self.builder.ins().ishl_imm_u(index, i64::from(exponent)),
        };
        let address = self.builder.ins().iadd(address, offset);
        // It cannot trap; it may be unaligned.
        (address, MemFlagsData::new().with_notrap())
    }

    fn convert(&mut self, conversion: Conversion, from: Value) -> Value {
        let to = machine_type(conversion.types().1);
        match conversion {
            Conversion::LowHalf => self.builder.ins().ireduce(types::I32, from),
            Conversion::HighHalf => {
                let high = self.builder.ins().ushr_imm_u(from, 32);
                self.builder.ins().ireduce(types::I32, high)
            }
            Conversion::ExtendSigned => self.builder.ins().sextend(types::I64, from),
            Conversion::ExtendUnsigned => self.builder.ins().uextend(types::I64, from),
            Conversion::SignedToFloat(..) => self.builder.ins().fcvt_from_sint(to, from),
            Conversion::UnsignedToFloat(..) => self.builder.ins().fcvt_from_uint(to, from),
            Conversion::FloatToSigned => {
                // The conversion that saturates differs for what is too large or no number.
                let limit = self.builder.ins().f64const(9_223_372_036_854_775_808.0);
                let outside = FloatCC::UnorderedOrGreaterThanOrEqual;
                let is_outside = self.builder.ins().fcmp(outside, from, limit);
                let inside = self.builder.ins().fcvt_to_sint_sat(types::I64, from);
                let least = self.builder.ins().iconst(types::I64, i64::MIN);
                self.builder.ins().select(is_outside, least, inside)
            }
            Conversion::Demote => self.builder.ins().fdemote(types::F32, from),
            Conversion::Promote => self.builder.ins().fpromote(types::F64, from),
        }
    }

    fn unary(&mut self, operation: Unary, on: Type, from: Value) -> Value {
        let whole = machine_type(on);
        match operation {
            Unary::Abs if on.is_float() => self.builder.ins().fabs(from),
            Unary::Abs => self.builder.ins().iabs(from),
            Unary::Not => self.builder.ins().bnot(from),
            Unary::LeadingZeros => self.builder.ins().clz(from),
            Unary::Low8Unsigned => self.builder.ins().band_imm_u(from, 0xFF),
            Unary::Low16Unsigned => self.builder.ins().band_imm_u(from, 0xFFFF),
            Unary::Low8Signed => {
                let low = self.builder.ins().ireduce(types::I8, from);
                self.builder.ins().sextend(whole, low)
            }
            Unary::Low16Signed => {
                let low = self.builder.ins().ireduce(types::I16, from);
                self.builder.ins().sextend(whole, low)
            }
            Unary::Negate => self.builder.ins().fneg(from),
            Unary::Ceil => self.builder.ins().ceil(from),
            Unary::Floor => self.builder.ins().floor(from),
            Unary::Round => {
                // The fraction is exact, and a half of it or more leads away from zero.
                let whole_part = self.builder.ins().trunc(from);
                let fraction = self.builder.ins().fsub(from, whole_part);
                let fraction = self.builder.ins().fabs(fraction);
                let (half, one) = (self.float(on, 0.5), self.float(on, 1.0));
                let is_half = self
                    .builder
                    .ins()
                    .fcmp(FloatCC::GreaterThanOrEqual, fraction, half);
                let step = self.builder.ins().fcopysign(one, from);
                let away = self.builder.ins().fadd(whole_part, step);
                self.builder.ins().select(is_half, away, whole_part)
            }
            Unary::RoundToEven => {
                let nearest = self.builder.ins().nearest(from);
                let (half, zero) = (self.float(on, -0.5), self.float(on, 0.0));
                let is_half = self.builder.ins().fcmp(FloatCC::Equal, from, half);
                self.builder.ins().select(is_half, zero, nearest)
            }
            Unary::SquareRoot => self.builder.ins().sqrt(from),
        }
    }

    fn binary(&mut self, operation: Binary, on: Type, left: Value, right: Value) -> Value {
        if on.is_float() {
            let instructions = self.builder.ins();
            return match operation {
                Binary::Add => instructions.fadd(left, right),
                Binary::Subtract => instructions.fsub(left, right),
                Binary::Multiply => instructions.fmul(left, right),
                Binary::Minimum => {
                    let is_less = instructions.fcmp(FloatCC::LessThan, right, left);
                    self.builder.ins().select(is_less, right, left)
                }
                Binary::Maximum => {
                    let is_less = instructions.fcmp(FloatCC::LessThan, left, right);
                    self.builder.ins().select(is_less, right, left)
                }
                Binary::Divide => instructions.fdiv(left, right),
                Binary::And
                | Binary::Or
                | Binary::Xor
                | Binary::MinimumUnsigned
                | Binary::MaximumUnsigned => unreachable!("the loop was checked"),
            };
        }
        let instructions = self.builder.ins();
        match operation {
            Binary::Add => instructions.iadd(left, right),
            Binary::Subtract => instructions.isub(left, right),
            Binary::Multiply => instructions.imul(left, right),
            Binary::And => instructions.band(left, right),
            Binary::Or => instructions.bor(left, right),
            Binary::Xor => instructions.bxor(left, right),
            Binary::Minimum => instructions.smin(left, right),
            Binary::MinimumUnsigned => instructions.umin(left, right),
            Binary::Maximum => instructions.smax(left, right),
            Binary::MaximumUnsigned => instructions.umax(left, right),
            Binary::Divide => unreachable!("the loop was checked"),
        }
    }

    /// Divides by what is not zero. The least integer by -1 would trap: it is divided by 1 instead, and the quotient
    /// negated.
    fn divide(&mut self, operation: Division, on: Type, left: Value, right: Value) -> Value {
        match operation {
            Division::QuotientUnsigned => return self.builder.ins().udiv(left, right),
            Division::RemainderUnsigned => return self.builder.ins().urem(left, right),
            Division::QuotientSigned | Division::RemainderSigned => {}
        }
        let is_minus_one = self.builder.ins().icmp_imm_s(IntCC::Equal, right, -1);
        let one = self.builder.ins().iconst(machine_type(on), 1);
        let divisor = self.builder.ins().select(is_minus_one, one, right);
        if operation == Division::RemainderSigned {
            return self.builder.ins().srem(left, divisor);
        }
        let quotient = self.builder.ins().sdiv(left, divisor);
        let negated = self.builder.ins().ineg(left);
        self.builder.ins().select(is_minus_one, negated, quotient)
    }

    /// Goes on in a new block, or leaves the loop when `condition` is not zero.
    fn leave_if(&mut self, condition: Value, exit: ExitIndex) {
        let (on, out) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(condition, out, &[], on, &[]);
        // Sealed at once, so that what is used in them is found in the block before.
        self.builder.seal_block(out);
        self.builder.seal_block(on);
        self.builder.set_cold_block(out);
        self.builder.switch_to_block(out);
        self.leave(exit);
        self.builder.switch_to_block(on);
    }

    /// Leaves the loop.
    fn leave(&mut self, exit: ExitIndex) {
        let exit = &self.body.exits[exit.0 as usize];
        for transfer in &exit.stores {
            let value = self.latest(transfer.variable);
            let offset = transfer.offset.cast_signed();
            let flags = register_flags();
            let instructions = self.builder.ins();
            instructions.store(flags, value, self.registers, offset);
        }
        let instructions = self.builder.ins();
        let code = instructions.iconst(types::I32, i64::from(exit.code));
        self.builder.ins().return_(&[code]);
    }

    fn jump(&mut self, target: BlockIndex) {
        let place = self.place(target);
        self.builder.ins().jump(place, &[]);
    }

    fn place(&self, block: BlockIndex) -> ir::Block {
        self.blocks[block.0 as usize]
    }

    /// Returns the value of a variable in some type of its width.
    fn latest(&mut self, variable: Variable) -> Value {
        let index = variable.0 as usize;
        match self.latest[index] {
            Some(value) => value,
            None => {
                let value = self.builder.use_var(self.variables[index]);
                self.latest[index] = Some(value);
                value
            }
        }
    }

    /// Returns the value of a variable in a type of its width.
    fn get(&mut self, variable: Variable, wanted: Type) -> Value {
        let value = self.latest(variable);
        self.cast(value, machine_type(wanted))
    }

    /// Sets a variable to a value of some type of its width.
    fn set(&mut self, variable: Variable, value: Value) {
        let index = variable.0 as usize;
        self.latest[index] = Some(value);
        let kept = self.cast(value, self.kept[index]);
        self.builder.def_var(self.variables[index], kept);
    }

    /// Returns the bits of a value in another type of the same width.
    fn cast(&mut self, value: Value, wanted: ir::Type) -> Value {
        if self.builder.func.dfg.value_type(value) == wanted {
            return value;
        }
        self.builder
            .ins()
            .bitcast(wanted, MemFlagsData::new(), value)
    }

    /// Returns a float that 32 bits hold exactly.
    fn float(&mut self, on: Type, value: f32) -> Value {
        match on {
            Type::F32 => self.builder.ins().f32const(value),
            _ => self.builder.ins().f64const(f64::from(value)),
        }
    }

    fn constant(&mut self, wanted: ir::Type, bits: u64) -> Value {
        let instructions = self.builder.ins();
        let low = (bits & 0xFFFF_FFFF) as u32;
        match wanted {
            types::F32 => instructions.f32const(f32::from_bits(low)),
            types::F64 => instructions.f64const(f64::from_bits(bits)),
            types::I32 => instructions.iconst(types::I32, i64::from(low)),
            _ => instructions.iconst(types::I64, bits.cast_signed()),
        }
    }
}

/// Flags of accesses to the register file: they are within it, at any multiple of 4.
fn register_flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

fn machine_type(value: Type) -> ir::Type {
    match value {
        Type::I32 => types::I32,
        Type::I64 => types::I64,
        Type::F32 => types::F32,
        Type::F64 => types::F64,
    }
}

fn integer_code(comparison: Comparison) -> IntCC {
    match comparison {
        Comparison::Equal => IntCC::Equal,
        Comparison::NotEqual => IntCC::NotEqual,
        Comparison::Less => IntCC::SignedLessThan,
        Comparison::LessUnsigned => IntCC::UnsignedLessThan,
        Comparison::LessOrEqual
        | Comparison::EqualOrUnordered
        | Comparison::LessOrUnordered
        | Comparison::LessOrEqualOrUnordered
        | Comparison::Unordered => unreachable!("the loop was checked"),
    }
}

fn float_code(comparison: Comparison) -> FloatCC {
    match comparison {
        Comparison::Equal => FloatCC::Equal,
        Comparison::NotEqual => FloatCC::NotEqual,
        Comparison::Less => FloatCC::LessThan,
        Comparison::LessOrEqual => FloatCC::LessThanOrEqual,
        Comparison::EqualOrUnordered => FloatCC::UnorderedOrEqual,
        Comparison::LessOrUnordered => FloatCC::UnorderedOrLessThan,
        Comparison::LessOrEqualOrUnordered => FloatCC::UnorderedOrLessThanOrEqual,
        Comparison::Unordered => FloatCC::Unordered,
        Comparison::LessUnsigned => unreachable!("the loop was checked"),
    }
}

/// Returns the type to keep each variable in: that of most operations on it.
fn kept_types(body: &Loop) -> Vec<ir::Type> {
    let mut float_uses = vec![0i32; body.variables.len()];
    let mut vote = |variables: &[Variable], on: Type| {
        for variable in variables {
            float_uses[variable.0 as usize] += if on.is_float() { 1 } else { -1 };
        }
    };
    for operation in body.blocks.iter().flat_map(|block| &block.operations) {
        match *operation {
            Operation::Constant { .. } | Operation::Copy { .. } | Operation::Poll { .. } => {}
            Operation::Join { to, low, high } => {
                vote(&[to], Type::I64);
                vote(&[low, high], Type::I32);
            }
            Operation::Convert {
                conversion,
                to,
                from,
            } => {
                vote(&[from], conversion.types().0);
                vote(&[to], conversion.types().1);
            }
            Operation::Unary { on, to, from, .. } => vote(&[to, from], on),
            Operation::Binary {
                on,
                to,
                left,
                right,
                ..
            }
            | Operation::Divide {
                on,
                to,
                left,
                right,
                ..
            } => vote(&[to, left, right], on),
            Operation::MultiplyAdd {
                on,
                to,
                left,
                right,
                addend,
            } => vote(&[to, left, right, addend], on),
            Operation::Shift {
                on,
                to,
                from,
                amount,
                ..
            } => {
                vote(&[to, from], on);
                vote(&[amount], Type::I32);
            }
            Operation::Compare {
                on,
                to,
                left,
                right,
                ..
            } => {
                vote(&[left, right], on);
                vote(&[to], Type::I32);
            }
            Operation::Select { condition, .. } => vote(&[condition], Type::I32),
            Operation::Load {
                element, to, index, ..
            } => {
                vote(&[to], element.value_type());
                vote(&[index], Type::I64);
            }
            Operation::Store {
                element,
                value,
                index,
                ..
            } => {
                vote(&[value], element.value_type());
                vote(&[index], Type::I64);
            }
            Operation::Length { to, .. } => vote(&[to], Type::I64),
        }
    }
    let kept = |(width, float_uses): (&Width, i32)| match (width, float_uses > 0) {
        (Width::Word, false) => types::I32,
        (Width::Word, true) => types::F32,
        (Width::Pair, false) => types::I64,
        (Width::Pair, true) => types::F64,
    };
    body.variables.iter().zip(float_uses).map(kept).collect()
}
