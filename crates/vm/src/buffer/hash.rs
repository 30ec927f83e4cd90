//! SipHash-2-4 under the key that `buffer.hash` uses.
//!
//! Written here because the standard library's is another variant (1-3) and hides its key; the algorithm is that of
//! the SipHash paper (Aumasson and Bernstein, 2012).

const KEY: [u64; 2] = [0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908];

/// Returns the hash of `length` bytes that `read(offset, target)` gives in pieces.
pub(super) fn sip_hash(length: usize, read: impl Fn(usize, &mut [u8])) -> u64 {
    let mut state = [
        KEY[0] ^ 0x736f_6d65_7073_6575,
        KEY[1] ^ 0x646f_7261_6e64_6f6d,
        KEY[0] ^ 0x6c79_6765_6e65_7261,
        KEY[1] ^ 0x7465_6462_7974_6573,
    ];
    let mut absorb = |word: u64| {
        state[3] ^= word;
        rounds(&mut state, 2);
        state[0] ^= word;
    };

    let whole = length - length % 8;
    for offset in (0..whole).step_by(8) {
        let mut chunk = [0; 8];
        read(offset, &mut chunk);
        absorb(u64::from_le_bytes(chunk));
    }
    // The last word holds the remaining bytes and the length modulo 256 on top.
    let mut last = [0; 8];
    read(whole, &mut last[..length - whole]);
    last[7] = length.to_le_bytes()[0];
    absorb(u64::from_le_bytes(last));

    state[2] ^= 0xFF;
    rounds(&mut state, 4);
    state.iter().fold(0, |hash, word| hash ^ word)
}

fn rounds(state: &mut [u64; 4], count: usize) {
    let [mut a, mut b, mut c, mut d] = *state;
    for _ in 0..count {
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
    }
    *state = [a, b, c, d];
}
