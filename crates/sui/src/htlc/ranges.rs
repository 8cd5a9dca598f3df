//! The byte ranges of the parts of a transaction kind.

use serde::Serialize;
use sui_sdk_types::{Address, Command, ProgrammableTransaction};

/// A half-open range of bytes of a payload.
pub(crate) type Range = (usize, usize);

/// The byte ranges of the parts of a transaction kind. BCS has one form for each value, so positions follow from sizes.
#[derive(Clone, Copy)]
pub(crate) struct Ranges<'k>(pub(crate) &'k ProgrammableTransaction);

fn size<T: Serialize>(value: &T) -> usize {
    // Every decoded value can be encoded.
    bcs::serialized_size(value).unwrap_or_default()
}

/// Returns the number of bytes of the length of a sequence.
const fn length_size(length: usize) -> usize {
    match length {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        _ => 3,
    }
}

impl Ranges<'_> {
    /// Returns the range of the kind's tag and the number of inputs.
    pub(crate) fn head(self) -> Range {
        (0, length_size(self.0.inputs.len()).saturating_add(1))
    }

    fn inputs_end(self) -> usize {
        self.0.inputs.iter().map(size).fold(self.head().1, usize::saturating_add)
    }

    pub(crate) fn input(self, index: usize) -> Range {
        let start = self.0.inputs.iter().take(index).map(size).fold(self.head().1, usize::saturating_add);
        (start, start.saturating_add(self.0.inputs.get(index).map_or(0, size)))
    }

    /// Returns the range of the number of commands.
    pub(crate) fn commands_head(self) -> Range {
        let start = self.inputs_end();
        (start, start.saturating_add(length_size(self.0.commands.len())))
    }

    pub(crate) fn command(self, index: usize) -> Range {
        let start = self.0.commands.iter().take(index).map(size).fold(self.commands_head().1, usize::saturating_add);
        (start, start.saturating_add(self.0.commands.get(index).map_or(0, size)))
    }

    /// Returns the ranges of the parts of the last command, the call: tag and package, module, function, type arguments, arguments.
    pub(crate) fn call(self) -> [Range; 5] {
        let index = self.0.commands.len().saturating_sub(1);
        let (start, _) = self.command(index);
        let Some(Command::MoveCall(call)) = self.0.commands.get(index) else { return [(start, start); 5] };
        let mut from = start;
        [Address::LENGTH.saturating_add(1), size(&call.module), size(&call.function), size(&call.type_arguments), size(&call.arguments)]
            .map(|size| {
                let to = from.saturating_add(size);
                (std::mem::replace(&mut from, to), to)
            })
    }

    /// Returns the range of one argument of the call.
    pub(crate) fn argument(self, index: usize) -> Range {
        let [.., (start, end)] = self.call();
        let Some(Command::MoveCall(call)) = self.0.commands.last() else { return (start, end) };
        let from = call
            .arguments
            .iter()
            .take(index)
            .map(size)
            .fold(start.saturating_add(length_size(call.arguments.len())), usize::saturating_add);
        (from, from.saturating_add(call.arguments.get(index).map_or(0, size)))
    }
}
