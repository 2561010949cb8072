//! The zigzag varints of records.

use super::RecordsError;

const BAD_VARINT: RecordsError = RecordsError::Invalid("a record has a damaged varint");
const SHORT: RecordsError = RecordsError::Invalid("a record ends in the middle of a field");

/// Reads from a slice, moving its start on.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn byte(&mut self) -> Result<u8, RecordsError> {
        let (&first, rest) = self.0.split_first().ok_or(SHORT)?;
        self.0 = rest;
        Ok(first)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], RecordsError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Of one to ten bytes.
    #[inline]
    pub(super) fn varlong(&mut self) -> Result<i64, RecordsError> {
        // Almost all lengths and deltas take one byte.
        if let Some((&first, rest)) = self.0.split_first()
            && first < 0x80
        {
            self.0 = rest;
            return Ok(unzigzag(u64::from(first)));
        }
        self.long_varlong()
    }

    fn long_varlong(&mut self) -> Result<i64, RecordsError> {
        let mut value = 0u64;
        for shift in (0..).step_by(7).take(10) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return Err(BAD_VARINT);
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(unzigzag(value));
            }
        }
        Err(BAD_VARINT)
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Result<i32, RecordsError> {
        i32::try_from(self.varlong()?).map_err(|_| BAD_VARINT)
    }

    /// A length and that many bytes; a negative length is null.
    #[inline]
    pub(super) fn nullable_bytes(&mut self) -> Result<Option<&'a [u8]>, RecordsError> {
        match usize::try_from(self.varint()?) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Ok(None),
        }
    }
}

const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

const fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[inline]
pub(super) fn put(out: &mut Vec<u8>, value: i64) {
    let mut value = zigzag(value);
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes `put` writes.
#[inline]
pub(super) const fn length(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_back_what_it_writes(shift in 0..64, value: i64) {
            let value = value >> shift;
            let mut out = Vec::new();
            put(&mut out, value);
            prop_assert_eq!(out.len(), length(value));
            let mut reader = Reader(&out);
            prop_assert_eq!(reader.varlong(), Ok(value));
            prop_assert!(reader.0.is_empty());
        }
    }

    #[test]
    fn refuses_varints_that_do_not_end_or_do_not_fit() {
        for bytes in [&[0x80][..], &[0xff; 10], &[0xff; 11], &[]] {
            assert!(Reader(bytes).varlong().is_err(), "{bytes:?}");
        }
        let mut out = Vec::new();
        put(&mut out, i64::from(i32::MAX) + 1);
        assert!(Reader(&out).varint().is_err());
    }
}
