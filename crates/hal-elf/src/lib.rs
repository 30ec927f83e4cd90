//! Parses, checks, maps and relocates freestanding ELF and FatELF images.
