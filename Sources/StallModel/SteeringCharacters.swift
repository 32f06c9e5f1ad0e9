// Characters that a terminal acts on, and those that end a line or an element for some reader: every format keeps them
// out of its text.

extension Unicode.Scalar {
    /// A control, a line or paragraph separator, or an invisible format character such as those
    /// that change the direction of text. The two joiners are text: emoji and several scripts are
    /// written with them.
    package var steersTerminal: Bool {
        if value < 0x7f { return value < 0x20 }
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: return true
        case .format: return value != 0x200c && value != 0x200d
        default: return false
        }
    }
}
