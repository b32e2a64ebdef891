//! How much memory a file may cost. A file may come from a stranger and be packed a thousandfold, so what is made of it is
//! counted against its length: see `limits::INPUT_FACTOR`.

use super::limits::{INPUT_BYTES_FREE, INPUT_FACTOR};

/// Bytes of memory that are left for what is made of a file.
#[derive(Clone, Debug)]
pub struct Allowance {
    left: u64,
    is_spent: bool,
}

impl Allowance {
    /// For a file, or the part of it that was read so far.
    pub fn of(file_bytes: u64) -> Allowance {
        Allowance {
            left: INPUT_BYTES_FREE.saturating_add(file_bytes.saturating_mul(INPUT_FACTOR)),
            is_spent: false,
        }
    }

    /// More of the file was read.
    pub fn grow(&mut self, file_bytes: u64) {
        self.left = self.left.saturating_add(file_bytes.saturating_mul(INPUT_FACTOR));
    }

    pub fn left(&self) -> u64 {
        self.left
    }

    /// `None`: there is less left. From then on nothing is.
    pub fn take(&mut self, bytes: u64) -> Option<()> {
        let left = self.left.checked_sub(bytes);
        self.is_spent |= left.is_none();
        self.left = left.unwrap_or(0);
        left.map(|_| ())
    }

    /// Whether more was asked for than there was.
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_a_multiple_of_its_length_and_no_byte_more() {
        let mut allowance = Allowance::of(10);
        allowance.grow(5);
        assert_eq!(allowance.left(), INPUT_BYTES_FREE + 15 * INPUT_FACTOR);
        assert_eq!((allowance.take(allowance.left()), allowance.is_spent()), (Some(()), false));
        assert_eq!((allowance.take(1), allowance.is_spent()), (None, true));
        assert_eq!(Allowance::of(u64::MAX).left(), u64::MAX);
    }
}
