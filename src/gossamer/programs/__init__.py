"""Machine code as it runs: archives of kernels, programs made of them, and the operating system. No LLVM here."""
