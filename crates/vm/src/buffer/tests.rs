//! Tests of the buffer.

use proptest::prelude::*;

use super::*;

fn sequence(length: u8) -> Arc<Buffer> {
    let bytes: Vec<u8> = (0..length).collect();
    Buffer::copied_from(&bytes, Access::HOST).unwrap()
}

#[test]
fn every_allocation_is_aligned_to_64_bytes_and_zero() {
    for length in [0, 1, 63, 4096] {
        let buffer = Buffer::allocate(length, 0).unwrap();
        assert_eq!(buffer.address() % 64, 0);
        assert!(buffer.to_vec().iter().all(|&byte| byte == 0));
        assert_eq!(buffer.length() as u64, length);
    }
    assert_eq!(Buffer::allocate(10, 4096).unwrap().address() % 4096, 0);
}

#[test]
fn an_alignment_that_is_no_power_of_two_is_invalid() {
    assert_eq!(
        Buffer::allocate(8, 48).unwrap_err().code(),
        StatusCode::INVALID_ARGUMENT
    );
}

#[test]
fn a_length_that_cannot_be_had_exhausts_the_resource() {
    for length in [u64::MAX, i64::MAX as u64, 1 << 62] {
        assert_eq!(
            Buffer::allocate(length, 0).unwrap_err().code(),
            StatusCode::RESOURCE_EXHAUSTED
        );
    }
}

#[test]
fn d27_ranges_that_wrap_are_out_of_range() {
    let buffer = sequence(16);
    for (offset, length) in [
        (u64::MAX, 1),
        (u64::MAX, 0),
        (17, 0),
        (16, 1),
        (8, u64::MAX),
        (u64::MAX - 3, 4),
    ] {
        assert_eq!(
            buffer.range(offset, length, 1).unwrap_err().code(),
            StatusCode::OUT_OF_RANGE,
            "{offset} {length}"
        );
    }
    assert_eq!(buffer.range(16, 0, 1).unwrap(), 16..16);
    for index in [4, u64::MAX, 1 << 62, u64::MAX / 4] {
        assert_eq!(
            buffer.load::<u32>(index).unwrap_err().code(),
            StatusCode::OUT_OF_RANGE
        );
        assert_eq!(
            buffer.store::<u32>(index, 0).unwrap_err().code(),
            StatusCode::OUT_OF_RANGE
        );
    }
    assert!(buffer.fill::<u32>(u64::MAX, 1, 0).is_err());
    assert!(buffer.fill::<u32>(0, u64::MAX / 4 + 1, 0).is_err());
}

#[test]
fn an_error_tells_the_range_in_bytes() {
    let message = sequence(16)
        .load::<u32>(4)
        .unwrap_err()
        .message()
        .to_owned();
    assert_eq!(
        message,
        "out-of-bounds access detected (offset=16, length=4, alignment=4, buffer length=16)"
    );
}

#[test]
fn elements_are_counted_in_their_own_width() {
    let buffer = sequence(16);
    assert_eq!(buffer.load::<u32>(1).unwrap(), 0x0706_0504);
    assert_eq!(buffer.load::<u8>(1).unwrap(), 1);
    assert_eq!(buffer.load::<u64>(1).unwrap(), 0x0F0E_0D0C_0B0A_0908);
}

#[test]
fn constant_bytes_cannot_be_written() {
    let buffer = Buffer::constant(Arc::new(vec![1u8, 2, 3]), 0..3, Access::CONSTANT).unwrap();
    assert_eq!(
        buffer.store::<u8>(0, 9).unwrap_err().code(),
        StatusCode::PERMISSION_DENIED
    );
    assert_eq!(
        buffer.fill::<u8>(0, 1, 9).unwrap_err().code(),
        StatusCode::PERMISSION_DENIED
    );
    assert_eq!(
        buffer.write(0, &[9]).unwrap_err().code(),
        StatusCode::PERMISSION_DENIED
    );
    assert!(buffer.as_shared().is_none());
    assert_eq!(buffer.as_constant(), Some(&[1, 2, 3][..]));
    assert!(buffer.subspan(1, 1).unwrap().as_shared().is_none());
    assert_eq!(
        Buffer::constant(Arc::new(vec![0u8]), 0..2, Access::CONSTANT)
            .unwrap_err()
            .code(),
        StatusCode::OUT_OF_RANGE
    );
}

#[test]
fn a_part_outlives_the_handle_it_was_made_from() {
    let whole = sequence(32);
    let part = whole.subspan(8, 16).unwrap().subspan(4, 4).unwrap();
    drop(whole);
    assert_eq!(part.to_vec(), [12, 13, 14, 15]);
    assert!(part.subspan(2, 3).is_err());
}

#[test]
fn a_shared_buffer_is_not_exclusive() {
    let mut buffer = sequence(4);
    assert!(Buffer::exclusive(&mut buffer).is_some());
    let part = buffer.subspan(0, 2).unwrap();
    assert!(Buffer::exclusive(&mut buffer).is_none());
    drop(part);
    assert!(Buffer::exclusive(&mut buffer).is_some());
}

#[test]
fn a_span_is_what_its_bytes_are_whatever_the_rights() {
    let constant = Buffer::constant(Arc::new([1, 2, 3, 4]), 0..4, Access::CONSTANT).unwrap();
    assert!(matches!(constant.span(1, 2), Ok(Bytes::Constant([2, 3]))));
    let part = constant.subspan(1, 3).unwrap();
    assert!(matches!(part.span(1, 2), Ok(Bytes::Constant([3, 4]))));
    for access in [Access::HOST, Access::HOST_CONSTANT] {
        let shared = Buffer::copied_from(&[1, 2, 3, 4], access).unwrap();
        let Ok(Bytes::Shared([byte, _])) = shared.span(1, 2) else {
            panic!("not the two shared bytes");
        };
        assert_eq!(byte.load(core::sync::atomic::Ordering::Relaxed), 2);
        assert!(matches!(shared.span(4, 0), Ok(Bytes::Shared([]))));
        for (offset, length) in [(3, 2), (5, 0), (u64::MAX, 1), (1, u64::MAX)] {
            let error = shared.span(offset, length).unwrap_err();
            assert_eq!(error.code(), StatusCode::OUT_OF_RANGE);
        }
    }
}

#[test]
fn the_hash_is_sip_hash_2_4() {
    let buffer = sequence(16);
    assert_eq!(buffer.hash(0, 16).unwrap(), 4_551_675_220_716_592_091);
    assert_eq!(buffer.hash(16, 0).unwrap(), 8_246_050_544_436_514_353);
}

#[test]
fn a_pool_gives_back_what_it_got_and_keeps_no_more_than_was_live() {
    let pool = BufferPool::new();
    let first = Buffer::allocate_in(&pool, 1000, 0).unwrap();
    first.store::<u8>(0, 7).unwrap();
    let address = first.address();
    drop(first);
    assert_eq!(pool.free_bytes(), 1000);
    let second = Buffer::allocate_in(&pool, 1000, 0).unwrap();
    assert_eq!(
        (second.address(), second.load::<u8>(0).unwrap()),
        (address, 7)
    );
    drop(Buffer::allocate_in(&pool, 500, 0).unwrap());
    drop(second);
    assert!(pool.free_bytes() <= 1500);
    pool.trim();
    assert_eq!(pool.free_bytes(), 0);
}

#[test]
fn all_buffers_that_were_given_up_are_handed_out_again() {
    let pool = BufferPool::new();
    let allocate = || -> Vec<_> {
        (0..40)
            .map(|_| Buffer::allocate_in(&pool, 64, 0).unwrap())
            .collect()
    };
    let addresses = |buffers: &[Arc<Buffer>]| -> std::collections::BTreeSet<usize> {
        buffers.iter().map(|buffer| buffer.address()).collect()
    };
    let first = allocate();
    let expected = addresses(&first);
    assert_eq!(expected.len(), 40);
    drop(first);
    assert_eq!(addresses(&allocate()), expected);
    assert_eq!(pool.free_bytes(), 40 * 64);
}

#[test]
fn a_free_buffer_is_found_among_many_that_are_in_use() {
    let pool = BufferPool::new();
    let allocate = || Buffer::allocate_in(&pool, 64, 0).unwrap();
    let held: Vec<_> = (0..20).map(|_| allocate()).collect();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let pair = [allocate(), allocate()];
        seen.extend(pair.map(|buffer| buffer.address()));
    }
    assert!(seen.len() <= 4, "{} buffers for two at a time", seen.len());
    drop(held);
}

#[test]
fn a_pool_that_was_asked_for_too_much_keeps_no_more_afterwards() {
    let pool = BufferPool::new();
    for length in 1..=300 {
        assert!(Buffer::allocate_in(&pool, 1 << 62, 0).is_err());
        drop(Buffer::allocate_in(&pool, length, 0).unwrap());
        assert!(pool.free_bytes() as u64 <= 2 * length);
    }
}

#[test]
fn threads_never_hold_one_buffer_of_a_pool_at_a_time() {
    let pool = BufferPool::new();
    let work = |tag: u64| {
        for round in 0..200u64 {
            let buffer = Buffer::allocate_in(&pool, 32, 0).unwrap();
            let value = tag << 32 | round;
            for at in 0..4 {
                buffer.store(at, value).unwrap();
            }
            for at in 0..4 {
                assert_eq!(buffer.load::<u64>(at).unwrap(), value);
            }
        }
    };
    std::thread::scope(|scope| {
        for tag in 0..3 {
            scope.spawn(move || work(tag));
        }
    });
}

#[test]
fn a_pool_never_takes_more_than_twice_what_was_live() {
    let pool = BufferPool::new();
    for length in 1..=300 {
        let buffer = Buffer::allocate_in(&pool, length, 0).unwrap();
        assert!(pool.free_bytes() as u64 + length <= 2 * length);
        drop(buffer);
    }
    // All that is free at the end comes back when it is asked for.
    let free = pool.free_bytes();
    let held: Vec<_> = (1..=300)
        .map(|length| Buffer::allocate_in(&pool, length, 0).unwrap())
        .collect();
    assert!(pool.free_bytes() <= free);
    drop(held);
    assert_eq!(pool.free_bytes(), 300 * 301 / 2);
}

#[test]
fn an_alignment_has_buffers_of_its_own() {
    let pool = BufferPool::new();
    let held: Vec<_> = (0..8)
        .map(|_| Buffer::allocate_in(&pool, 64, 0).unwrap())
        .collect();
    drop(held);
    let aligned = Buffer::allocate_in(&pool, 64, 4096).unwrap();
    assert_eq!(aligned.address() % 4096, 0);
}

#[test]
fn the_holder_of_a_buffer_of_a_pool_can_be_the_only_one() {
    let pool = BufferPool::new();
    let mut buffer = Buffer::allocate_in(&pool, 100, 0).unwrap();
    let second = Arc::clone(&buffer);
    assert!(Buffer::exclusive(&mut buffer).is_none());
    drop(second);
    let address = buffer.address();
    for value in [7, 8] {
        Buffer::exclusive(&mut buffer).unwrap().fill(value);
    }
    // Nobody else gets it meanwhile, and it returns when it is given up.
    let other = Buffer::allocate_in(&pool, 100, 0).unwrap();
    assert_ne!(other.address(), address);
    drop(buffer);
    assert_eq!(pool.free_bytes(), 100);
    let again = Buffer::allocate_in(&pool, 100, 0).unwrap();
    assert_eq!((again.address(), again.to_vec()), (address, vec![8; 100]));
    drop((other, again));
    pool.trim();
    assert_eq!(pool.free_bytes(), 0);
}

#[test]
fn a_buffer_that_left_its_pool_outlives_it() {
    let pool = BufferPool::new();
    let mut buffer = Buffer::allocate_in(&pool, 8, 0).unwrap();
    assert!(Buffer::exclusive(&mut buffer).is_some());
    drop(pool);
    Buffer::exclusive(&mut buffer).unwrap().fill(1);
    assert_eq!(buffer.to_vec(), [1; 8]);
}

#[test]
fn a_part_keeps_a_buffer_from_being_handed_out() {
    let pool = BufferPool::new();
    let whole = Buffer::allocate_in(&pool, 64, 0).unwrap();
    let part = whole.subspan(8, 8).unwrap();
    let address = whole.address();
    drop(whole);
    let other = Buffer::allocate_in(&pool, 64, 0).unwrap();
    assert_ne!(other.address(), address);
    drop(part);
    let again = Buffer::allocate_in(&pool, 64, 0).unwrap();
    assert_eq!(again.address(), address);
}

#[test]
fn a_buffer_outlives_its_pool() {
    let pool = BufferPool::new();
    let buffer = Buffer::allocate_in(&pool, 8, 0).unwrap();
    drop(pool);
    buffer.store::<u64>(0, 5).unwrap();
    assert_eq!(buffer.load::<u64>(0).unwrap(), 5);
}

proptest! {
    #[test]
    fn copies_agree_with_a_plain_move(
        bytes in prop::collection::vec(any::<u8>(), 0..1500),
        from in 0usize..1500, to in 0usize..1500, length in 0usize..1500,
    ) {
        let buffer = Buffer::copied_from(&bytes, Access::HOST).unwrap();
        let fits = from + length <= bytes.len() && to + length <= bytes.len();
        let copied = buffer.copy_from(to as u64, &buffer, from as u64, length as u64);
        prop_assert_eq!(copied.is_ok(), fits);
        let mut expected = bytes;
        if fits {
            expected.copy_within(from..from + length, to);
        }
        prop_assert_eq!(buffer.to_vec(), expected);
    }

    #[test]
    fn reads_writes_fills_and_compares_agree_with_a_vector(
        start in 0usize..40, length in 0usize..40, shift in 0usize..8, value in any::<u16>(),
    ) {
        let whole = sequence(64);
        let buffer = whole.subspan(shift as u64, 48).unwrap();
        let mut oracle: Vec<u8> = (0..64).collect();
        let oracle = &mut oracle[shift..shift + 48];
        let data: Vec<u8> = (0..length).map(|index| value.to_le_bytes()[index % 2]).collect();
        let fits = start + length <= 48;
        prop_assert_eq!(buffer.write(start as u64, &data).is_ok(), fits);
        if fits {
            oracle[start..start + length].copy_from_slice(&data);
        }
        let (index, count) = (start / 2, length / 4);
        if buffer.fill::<u16>(index as u64, count as u64, value).is_ok() {
            for pair in oracle[index * 2..][..count * 2].chunks_exact_mut(2) {
                pair.copy_from_slice(&value.to_le_bytes());
            }
        }
        prop_assert_eq!(buffer.to_vec(), &*oracle);
        for index in 0..48 {
            prop_assert_eq!(buffer.load::<u8>(index).unwrap(), oracle[usize::try_from(index).unwrap()]);
        }
        for index in 0..12 {
            let expected = u32::from_le_slice(&oracle[index * 4..]);
            prop_assert_eq!(buffer.load::<u32>(index as u64).unwrap(), expected);
        }
        let equal = fits.then(|| oracle[start..start + length] == oracle[..length]);
        prop_assert_eq!(buffer.equals(start as u64, &buffer, 0, length as u64).ok(), equal);
    }
}
