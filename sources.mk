# What hone is made of, for this Makefile and for anyone who embeds the library
# in another build. Sources are found by wildcard: a new file needs no line here.

# the library, room by room, in the order of the arrows (docs/DEVELOPING.md)
LIB_ROOMS = base quant gguf kernels backend template text model engine forge train
# the program: sees hone.h, base/ and lab/ only
APP_ROOMS = lab hub serve cli

LIB_SRC := $(sort $(foreach r,$(LIB_ROOMS),$(wildcard src/$(r)/*.c)))
APP_SRC := $(sort $(foreach r,$(APP_ROOMS),$(wildcard src/$(r)/*.c src/$(r)/*/*.c)))

# One file per instruction set, each with its own flags; on other machines these
# files compile to nothing.
ISA_FMA    = -mfma
# Below -O2 gcc returns from wide registers without clearing their upper halves, and from there on many CPUs run every
# plain float instruction of the thread twenty times slower: this is the part of -O2 that clears them.
ISA_CLEAN  = $(if $(findstring clang,$(CC)),,-fexpensive-optimizations)
ISA_AVX2   = -mavx2 -mfma -mf16c $(ISA_CLEAN)
ISA_AVX_VNNI = $(ISA_AVX2) -mavxvnni
ISA_AVX512 = $(ISA_AVX2) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mprefer-vector-width=512
ISA_AVX512_BF16 = $(ISA_AVX512) -mavx512bf16
ISA_NEON_DOTPROD = -march=armv8.2-a+dotprod
ISA_NEON_I8MM    = -march=armv8.2-a+dotprod+i8mm

# The numeric contract: the same bits from every compiler and instruction set.
# Fused multiply-adds are written, never guessed.
NUMERIC_FLAGS = -ffp-contract=off -fno-math-errno
# Flags that break it, refused wherever they come from.
NUMERIC_FORBIDDEN = -Ofast -ffast-math -funsafe-math-optimizations -fassociative-math -freciprocal-math \
	-ffinite-math-only -fno-signed-zeros -ffp-contract=fast -ffp-contract=on -ffp-model=fast
