//! Memory that runs out: what is as large as a program or its input asks for fails with an error, whichever of its
//! blocks is refused, and works again afterwards. `docs/safety.md` says what is promised and what not.

use halite::{Program, Session, SessionBuilder, StatusCode, Tensor, Trust, Value, npy, text};
use halite_tests::fixtures;
use halite_tests::fuzz::Target;
use halite_tests::memory::refusing;
use vm::{Access, Buffer, ElementType, List};

/// The size from which blocks are refused. All that is not promised takes smaller ones here.
pub(crate) const LARGE: usize = 1 << 19;

/// More blocks than any scenario takes.
const MOST_BLOCKS: usize = 100;

/// Runs `scenario` while its first large block is refused, then its second, and so on until none is; each time but the
/// last it must fail for want of memory. `least` is the number of blocks that it takes at least.
#[track_caller]
pub(crate) fn check(least: usize, scenario: impl Fn() -> Result<(), StatusCode>) {
    for nth in 1..MOST_BLOCKS {
        let (outcome, was_refused) = refusing(nth, LARGE, &scenario);
        if !was_refused {
            assert_eq!(outcome, Ok(()));
            assert!(nth > least, "only {} large blocks were taken", nth - 1);
            return;
        }
        assert_eq!(
            outcome,
            Err(StatusCode::RESOURCE_EXHAUSTED),
            "block {nth} was refused"
        );
    }
    unreachable!("more than {MOST_BLOCKS} large blocks");
}

/// Loads a program that adds up the rows of a matrix of any size, and calls it with a large one.
fn sum(module: &str, builder: fn() -> SessionBuilder) -> Result<(), StatusCode> {
    let code = |error: halite::Error| error.status_code();
    let program = Program::open(fixtures().join(module)).map_err(code)?;
    let session = builder().program(program).build().map_err(code)?;
    let input = Tensor::zeros(halite::ElementType::F32, &[1 << 17, 1]);
    let input = input.map_err(|error| error.status_code())?;
    let function = session.only_function().map_err(code)?;
    let inputs = vec![Value::Tensor(input); function.parameters().len()];
    function.invoke(&inputs).map(drop).map_err(code)
}

#[test]
fn loading_and_calling_a_portable_program_fails_when_memory_does() {
    check(1, || sum("3.13.0/vmvx/dynsum.vmfb", Session::builder));
}

#[test]
fn loading_and_calling_a_native_program_fails_when_memory_does() {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        println!("skipped: the fixture is for x86-64 Linux");
        return;
    }
    let builder = || {
        // SAFETY: the fixture was made by a released compiler, and is called with an argument of its type.
        Session::builder().native_code(unsafe { Trust::native_code() })
    };
    check(1, || sum("3.13.0/llvm-cpu/dynsum.vmfb", builder));
}

#[test]
fn tensors_fail_when_memory_does() {
    let numbers = vec![1.5f32; 1 << 19];
    check(1, || {
        let tensor = Tensor::from_slice(&[1 << 19], &numbers);
        tensor.map(drop).map_err(|error| error.status_code())
    });
    check(1, || {
        let tensor = text::parse_tensor("1048576xf32=1.5");
        tensor.map(drop).map_err(|error| error.status_code())
    });
}

#[test]
fn arrays_fail_when_memory_does() {
    let mut array = Vec::new();
    let tensor = Tensor::zeros(halite::ElementType::F32, &[1 << 20]).unwrap();
    npy::write(&mut array, &tensor).unwrap();
    check(2, || {
        let tensor = npy::read(&mut &array[..]);
        tensor.map(drop).map_err(|error| error.status_code())
    });
}

#[test]
fn buffers_and_lists_fail_when_memory_does() {
    let bytes = vec![7; 1 << 20];
    check(3, || {
        let run = || -> vm::Result<()> {
            let buffer = Buffer::copied_from(&bytes, Access::HOST)?;
            let clone = buffer.clone_range(0, 1 << 20, 64)?;
            let list = List::new(ElementType::I32, 0)?;
            list.resize(1 << 20)?;
            list.reserve(1 << 21)?;
            clone.write(0, &[1])
        };
        run().map_err(|trap| trap.code())
    });
}

#[test]
fn a_program_asks_for_any_size_and_gets_an_error() {
    for length in [1 << 40, 1 << 62, u64::MAX / 2, u64::MAX] {
        let trap = Buffer::allocate(length, 64).unwrap_err();
        assert_eq!(trap.code(), StatusCode::RESOURCE_EXHAUSTED, "{length:#x}");
    }
    // Of refs, which are the largest elements.
    let list = List::new(ElementType::Variant, 0).unwrap();
    for length in [u32::MAX, u32::MAX - 1] {
        let (outcome, _) = refusing(1, LARGE, || list.resize(length));
        assert_eq!(outcome.unwrap_err().code(), StatusCode::RESOURCE_EXHAUSTED);
    }
    assert!(list.is_empty());
}

/// Files of few bytes whose counts and lengths claim gigabytes. The targets measure what is taken.
#[test]
fn what_a_small_file_claims_takes_no_memory() {
    let npy = Target::find("npy").unwrap();
    npy.exercise(b"\x93NUMPY\x02\x00\xF0\xFF\xFF\xFF");
    npy.exercise(&[&b"\x93NUMPY\x01\x00\xFF\xFF"[..], &[b' '; 67]].concat());
    let elf = Target::find("elf_parse").unwrap();
    let inputs = elf.inputs().into_iter();
    let mut images = inputs.filter(|(_, bytes)| bytes.starts_with(b"\x7FELF"));
    let (_, mut image) = images.next().unwrap();
    // Each word in turn, so each count of a table and each number of symbols.
    for at in (0..image.len() - 3).step_by(4) {
        let word: [u8; 4] = image[at..at + 4].try_into().unwrap();
        image[at..at + 4].fill(0xFF);
        elf.exercise(&image);
        image[at..at + 4].copy_from_slice(&word);
    }
}
