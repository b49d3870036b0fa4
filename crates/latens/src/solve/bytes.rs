//! Values as bytes, bit for bit: what is kept of a fit on its way, and what workers are told and answer.

/// A value as bytes.
pub(super) fn encode<T: Put>(value: &T) -> Vec<u8> {
    let mut out = vec![];
    value.put(&mut out);
    out
}

/// The value, where the bytes are one and nothing else.
pub(super) fn decode<T: Take>(mut bytes: &[u8]) -> Option<T> {
    let value = T::take(&mut bytes)?;
    bytes.is_empty().then_some(value)
}

/// Becomes bytes, bit for bit.
pub(super) trait Put {
    fn put(&self, out: &mut Vec<u8>);
}

impl<T: Put> Put for &T {
    fn put(&self, out: &mut Vec<u8>) {
        (*self).put(out);
    }
}

impl<T: Put> Put for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }
}

/// Comes back from them.
pub(super) trait Take: Sized {
    /// `None` where the bytes are no such thing.
    fn take(from: &mut &[u8]) -> Option<Self>;
}

/// A struct is its fields.
macro_rules! kept {
    ($name:path { $($field:ident),+ $(,)? }) => {
        impl $crate::solve::bytes::Put for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $( $crate::solve::bytes::Put::put(&self.$field, out); )+
            }
        }

        impl $crate::solve::bytes::Take for $name {
            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $( $field: $crate::solve::bytes::Take::take(from)?, )+ })
            }
        }
    };
}
pub(super) use kept;

impl Put for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }
}

impl Take for u64 {
    fn take(from: &mut &[u8]) -> Option<Self> {
        let (bytes, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(Self::from_le_bytes(*bytes))
    }
}

impl Put for f64 {
    fn put(&self, out: &mut Vec<u8>) {
        self.to_bits().put(out);
    }
}

impl Take for f64 {
    fn take(from: &mut &[u8]) -> Option<Self> {
        u64::take(from).map(Self::from_bits)
    }
}

impl Put for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }
}

impl Take for usize {
    fn take(from: &mut &[u8]) -> Option<Self> {
        u64::take(from)?.try_into().ok()
    }
}

impl Put for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }
}

impl Take for u8 {
    fn take(from: &mut &[u8]) -> Option<Self> {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        Some(*byte)
    }
}

impl Put for bool {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(*self).put(out);
    }
}

impl Take for bool {
    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Put for String {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        out.extend(self.as_bytes());
    }
}

impl Take for String {
    fn take(from: &mut &[u8]) -> Option<Self> {
        Self::from_utf8(Vec::take(from)?).ok()
    }
}

impl<T: Take> Take for Box<T> {
    fn take(from: &mut &[u8]) -> Option<Self> {
        T::take(from).map(Self::new)
    }
}

impl<T: Put> Put for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
}

impl<T: Take> Take for Option<T> {
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::take(from)? {
            Some(T::take(from)?)
        } else {
            None
        })
    }
}

impl<T: Put> Put for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        self.iter().for_each(|value| value.put(out));
    }
}

impl<T: Take> Take for Vec<T> {
    fn take(from: &mut &[u8]) -> Option<Self> {
        let count = usize::take(from)?;
        // each takes a byte at the least: a length that is not true asks for no memory
        if count > from.len() {
            return None;
        }
        (0..count).map(|_| T::take(from)).collect()
    }
}

macro_rules! put_tuple {
    ($($name:ident $place:tt),+) => {
        impl<$($name: Put),+> Put for ($($name,)+) {
            fn put(&self, out: &mut Vec<u8>) {
                $( self.$place.put(out); )+
            }
        }
    };
}
put_tuple!(A 0, B 1);
put_tuple!(A 0, B 1, C 2);
put_tuple!(A 0, B 1, C 2, D 3);

impl<A: Take, B: Take> Take for (A, B) {
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some((A::take(from)?, B::take(from)?))
    }
}
