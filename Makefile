# hone: plain GNU Make. Objects live per flavour (build/release, build/asan, …), so
# that flags never mix. `make help` lists the targets, docs/DEVELOPING.md explains them.
#
#   make                      build/release/hone, libhone.a, libhone.so, hone.pc
#   make FLAVOUR=asan tests   the test programs under AddressSanitizer and UBSan
#   make CC=clang-14 B=build/clang WERROR=1

include sources.mk

FLAVOUR ?= release
B ?= build/$(FLAVOUR)
PREFIX ?= /usr/local
DESTDIR ?=
LIBDIR ?= $(PREFIX)/lib
ifeq ($(origin CC),default)
CC = gcc
endif
ifeq ($(origin AR),default)
AR = ar
endif
PKG_CONFIG ?= pkg-config
CROSS ?= aarch64-linux-gnu-
QEMU ?= qemu-aarch64

# ---- flavours ---------------------------------------------------------------------

# (of what a debugger could know, lines and functions alone: to look at variables, make CFLAGS='-O1 -g'; with them compiling
# takes a quarter longer)
OPT_release = -O3 -g1
OPT_quick   = -O0
OPT_asan    = -O1 -g1
OPT_ubsan   = -O1 -g1
OPT_tsan    = -O1 -g1
OPT_cov     = -O0 -g
OPT_fuzz    = -O1 -g
OPT_fuzzcov = -O1 -g1
OPT_aarch64 = -O2 -g1
# What UBSan finds is a trap, which AddressSanitizer tells with its line (ASAN_OPTIONS=handle_sigill=1): with words of its own
# objects are three times as large and take a fifth longer. The words: make FLAVOUR=ubsan.
SAN_asan  = -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer \
	    $(if $(findstring clang,$(CC)),,-fsanitize-undefined-trap-on-error)
# gcc's frames for use after return are aligned to 32 bytes, whatever lies in them (gcc bug 110027): wide registers
# would be stored where they may not be.
WIDE_asan = $(if $(findstring clang,$(CC)),,--param asan-use-after-return=0)
SAN_ubsan = -fsanitize=undefined -fno-sanitize-recover=all
SAN_tsan  = -fsanitize=thread
SAN_cov   = --coverage
SAN_fuzz  = -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SAN_fuzzcov = -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -fprofile-instr-generate -fcoverage-mapping
ifeq ($(filter $(FLAVOUR),release quick asan ubsan tsan cov fuzz fuzzcov aarch64),)
$(error FLAVOUR=$(FLAVOUR): expected release, quick, asan, ubsan, tsan, cov, fuzz, fuzzcov or aarch64)
endif
ifeq ($(FLAVOUR),aarch64)
CC = $(CROSS)gcc
AR = $(CROSS)ar
endif
CFLAGS ?= $(OPT_$(FLAVOUR))

# Tables for unwinding are for languages with exceptions: 0.5 MB less to install. Debuggers have theirs in the debug
# information.
LEAN_release = -fno-asynchronous-unwind-tables -fno-unwind-tables

BROKEN := $(filter $(NUMERIC_FORBIDDEN),$(CC) $(CFLAGS) $(CPPFLAGS) $(LDFLAGS))
ifneq ($(BROKEN),)
$(error $(BROKEN): hone gives the same bits everywhere; this flag would change them. Leave it out)
endif

WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-unused-parameter
ifeq ($(WERROR),1)
WARN += -Werror
else ifneq ($(filter asan tsan,$(FLAVOUR)),)
# Release, aarch64 and clang are asked for warnings; here looking for them is a twentieth of compiling.
WARN = -w
endif

VERSION := $(shell sed -n 's/^.define HONE_VERSION "\(.*\)"/\1/p' include/hone.h)
SOVERSION := $(firstword $(subst ., ,$(VERSION)))

# Libraries, by the headers the sources include: pkg-config name, and -l where there is
# no pkg-config. A new one is a line here and one in scripts/setup.sh.
dep = $(if $(filter $(1),$(2)),$(3))
headers = $(sort $(shell sed -n 's/^.include <\([a-z0-9_\/]*\.h\)>.*/\1/p' $(1) /dev/null))
LIB_HEADERS := $(call headers,$(LIB_SRC))
APP_HEADERS := $(call headers,$(wildcard src/cli/*.[ch] src/cli/*/*.[ch] src/serve/*.[ch] src/hub/*.[ch] src/lab/*/*.[ch]))
deps = $(call dep,jansson.h,$(1),jansson) $(call dep,utf8proc.h,$(1),libutf8proc) \
	$(call dep,editline/readline.h histedit.h,$(1),libedit) $(call dep,event2/event.h,$(1),libevent_core)
LIB_DEPS := $(sort $(call deps,$(LIB_HEADERS)))
APP_DEPS := $(sort $(LIB_DEPS) $(call deps,$(APP_HEADERS)))
pkg = $(if $(2),$(shell $(PKG_CONFIG) --$(1) $(2) 2>/dev/null || echo "$(3)"))
minus_l = $(addprefix -l,$(patsubst lib%,%,$(1)))
LIB_LIBS := $(call pkg,libs,$(LIB_DEPS),$(call minus_l,$(LIB_DEPS)))
APP_LIBS := $(call pkg,libs,$(APP_DEPS),$(call minus_l,$(APP_DEPS)))
DEP_CFLAGS := $(call pkg,cflags,$(APP_DEPS),)
# hone pull: libcurl's headers are enough, the program loads the library when it downloads (src/hub/curl_load.c).
# WITH_CURL=0 leaves it out, and the command says so.
WITH_CURL ?= $(if $(filter-out aarch64,$(FLAVOUR)),$(shell $(PKG_CONFIG) --exists libcurl 2>/dev/null && echo 1))
ifeq ($(WITH_CURL),1)
CURL_CFLAGS := -DHN_WITH_CURL $(call pkg,cflags,libcurl,)
APP_LIBS += $(if $(findstring darwin,$(shell $(CC) -dumpmachine 2>/dev/null)),,-ldl)
endif
CMOCKA_LIBS := $(call pkg,libs,cmocka,-lcmocka)
# tests may use an independent library as their reference
TEST_HEADERS := $(call headers,$(wildcard tests/*/*.[ch]))
TEST_LIBS := $(CMOCKA_LIBS) $(foreach p,jansson.h:jansson utf8proc.h:utf8proc pcre2.h:pcre2-8,\
	$(call dep,$(firstword $(subst :, ,$p)),$(TEST_HEADERS),-l$(lastword $(subst :, ,$p))))
ifeq ($(FLAVOUR),aarch64)
# Only tests/cross is linked, and it reaches nothing that needs a library: no arm64
# packages. Their declarations come from the host's headers.
LIB_LIBS =
DEP_CFLAGS = $(addprefix -idirafter ,/usr/include /usr/include/$(shell gcc -print-multiarch))
LDFLAGS += -static
endif

# Ours come last: the user's CFLAGS choose optimisation, not semantics.
HN_CFLAGS = -std=gnu11 -Iinclude -Isrc $(DEP_CFLAGS) -fPIC -fvisibility=$(if $(filter asan tsan,$(FLAVOUR)),default,hidden) -pthread $(LEAN_$(FLAVOUR)) $(SAN_$(FLAVOUR)) $(WARN) $(NUMERIC_FLAGS)
COMPILE = $(CC) $(CPPFLAGS) $(CFLAGS) $(HN_CFLAGS) $(ISA)
LINK = $(CC) $(CFLAGS) $(SAN_$(FLAVOUR)) -pthread $(LDFLAGS) $(LINK_NEEDED)
# Tests are two hundred programs a flavour, each with its debug information: gold, where it is there, links them in two thirds
# of the time. What is installed is linked as ever.
LINK_TEST = $(CC) $(CFLAGS) $(SAN_$(FLAVOUR)) -pthread $(FAST_LINKER) $(LDFLAGS)
FAST_LINKER = $(eval FAST_LINKER := $$(shell $$(FAST_PROBE)))$(FAST_LINKER)
FAST_PROBE = t=$$(mktemp) && echo 'int main(void) { return 0; }' | \
	$(CC) $(SAN_$(FLAVOUR)) -fuse-ld=gold -Wl,--as-needed $(LDFLAGS) -xc - -o $$t 2>/dev/null && \
	echo '-fuse-ld=gold -Wl,--as-needed' || echo '$(LINK_NEEDED)'; rm -f $$t

MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null)
# objects of files of kernels, those for their property tests too (INSTRUMENTED)
objects_of = $(B)/none $(foreach f,$(wildcard $(1)),$(f:%.c=$(B)/%.o) $(f:%.c=$(B)/instrumented/%.o))
$(B)/src/hub/%.o: ISA = $(CURL_CFLAGS)
ifneq ($(filter x86_64%,$(MACHINE)),)
$(call objects_of,src/kernels/scalar_fma.c): ISA = $(ISA_FMA)
$(call objects_of,src/kernels/avx2*.c): ISA = $(ISA_AVX2)
$(call objects_of,src/kernels/avx_vnni*.c): ISA = $(ISA_AVX_VNNI)
$(call objects_of,src/kernels/avx512*.c): ISA = $(ISA_AVX512) $(WIDE_$(FLAVOUR))
$(call objects_of,src/kernels/avx512_bf16.c): ISA = $(ISA_AVX512_BF16) $(WIDE_$(FLAVOUR))
else ifneq ($(filter aarch64% arm64%,$(MACHINE)),)
$(call objects_of,src/kernels/neon_dotprod*.c): ISA = $(ISA_NEON_DOTPROD)
$(call objects_of,src/kernels/neon_i8mm*.c): ISA = $(ISA_NEON_I8MM)
endif

# ---- products ------------------------------------------------------------------------

LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
# texts that the program carries: DIR/NAME.txt becomes $(B)/DIR/NAME.c
CORPUS := $(B)/src/lab/quality/corpus_t1
# the page of hone serve: these parts, in this order, become $(B)/src/serve/page/joined.html and its .c
PAGE := $(B)/src/serve/page/joined
PAGE_PARTS := $(addprefix src/serve/page/,page.html page.css $(addsuffix .js,strings text code markdown store talk api settings view app))
APP_OBJ := $(APP_SRC:%.c=$(B)/%.o) $(CORPUS).o $(PAGE).o
MAIN_OBJ := $(filter %/cli/main.o,$(APP_OBJ))
ifneq ($(findstring darwin,$(MACHINE)),)
SO_LINK = libhone.dylib
SO = libhone.$(VERSION).dylib
SONAME = libhone.$(SOVERSION).dylib
SO_FLAGS = -dynamiclib -install_name $(LIBDIR)/$(SONAME) -compatibility_version $(SOVERSION) -current_version $(VERSION)
LINK_NEEDED = -Wl,-dead_strip_dylibs
else
SO_LINK = libhone.so
SO = libhone.so.$(VERSION)
SONAME = libhone.so.$(SOVERSION)
SO_FLAGS = -shared -Wl,-soname,$(SONAME) -Wl,-z,defs
LINK_NEEDED = -Wl,--as-needed
# Relative relocations packed: 0.4 MB less to install, where the linker can and a program so linked runs here.
ifeq ($(FLAVOUR),release)
LINK_PACKED := -Wl,-z,pack-relative-relocs
PACKED_HERE = $(eval PACKED_HERE := $$(shell $$(PACKED_PROBE)))$(PACKED_HERE)
LINK_NEEDED += $(PACKED_HERE)
# In what is installed, functions that nobody calls are left out; tests keep theirs, whose symbols tests/e2e/check.sh reads.
LINK_LEAN := -Wl,--gc-sections
PACKED_PROBE = t=$$(mktemp) && echo 'int main(void) { return 0; }' | $(CC) $(LDFLAGS) -Wl,--fatal-warnings $(LINK_PACKED) \
	-xc - -o $$t 2>/dev/null && $$t 2>/dev/null && echo '$(LINK_PACKED)'; rm -f $$t
endif
endif
PROGRAM := $(if $(MAIN_OBJ),$(B)/hone)

all: $(PROGRAM) $(B)/libhone.a $(B)/$(SO_LINK) $(B)/hone.pc

# What is written anew at every call and takes effect where it is otherwise. Another make may be at it too.
NEW = $@.$(shell echo $$PPID)
if_changed = cmp -s $(NEW) $@ && rm -f $(NEW) || mv -f $(NEW) $@
# Everything is rebuilt when the compiler or a flag changes …
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(shell $(CC) --version 2>/dev/null | head -n 1)' '$(CC) $(CPPFLAGS) $(CFLAGS) $(filter-out $(WARN),$(HN_CFLAGS))' \
		'$(CURL_CFLAGS) $(ISA_FMA) $(ISA_AVX_VNNI) $(ISA_AVX512_BF16) $(OPT_KERNELS_$(FLAVOUR)) $(OPT_TESTS_$(FLAVOUR))' >$(NEW)
	@$(if_changed)
# … and version.c alone when the commit does.
$(B)/build_info.h: FORCE
	@mkdir -p $(@D)
	@sh scripts/build-info.sh '$(CC)' '$(strip $(CPPFLAGS) $(CFLAGS) $(SAN_$(FLAVOUR)) $(NUMERIC_FLAGS))' >$(NEW)
	@$(if_changed)
$(B)/src/base/version.o: $(B)/build_info.h
$(B)/src/base/version.o: ISA = -include $(B)/build_info.h

ifeq ($(V),1)
say = @:
Q =
else
say = @echo "  $(1) $(2)"
Q = @
endif

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(COMPILE) -MMD -MP -c $< -o $@
# the same bytes on every system: od and sed are everywhere, and octal escapes in every compiler
c_text = od -An -v -to1 $(1) | sed 's/ *\([0-7][0-7][0-7]\)/\\\1/g; s/ *$$//; s/.*/    "&"/'
$(CORPUS).c: $(CORPUS:$(B)/%=%).txt
	@mkdir -p $(@D)
	$(call say,TEXT,$@)
	$(Q){ echo '/* made from $< */'; echo 'extern const char hn_q_corpus[];'; echo 'const char hn_q_corpus[] ='; \
		$(call c_text,$<); echo '    "";'; } >$@.new && mv -f $@.new $@
$(PAGE).html: scripts/join-page.sh $(PAGE_PARTS)
	@mkdir -p $(@D)
	$(call say,JOIN,$@)
	$(Q)sh $^ >$@.new && mv -f $@.new $@
# $(call c_bytes,NAME,COMMAND): what the command writes, as const char NAME_bytes[NAME_len] and a NUL
c_bytes = echo 'extern const char $(1)_bytes[];'; echo 'extern const size_t $(1)_len;'; echo 'const char $(1)_bytes[] ='; \
	$(2) | $(call c_text,); echo '    "";'; echo 'const size_t $(1)_len = sizeof $(1)_bytes - 1;'
# (compressed with neither name nor time in it)
$(PAGE).c: $(PAGE).html Makefile
	$(call say,TEXT,$@)
	$(Q){ echo '/* made from $< */'; echo '#include <stddef.h>'; $(call c_bytes,hn_page,cat $<); \
		gzip -9 -n -c $< >$@.gz || : >$@.gz; $(call c_bytes,hn_page_gzip,cat $@.gz); } >$@.new && mv -f $@.new $@
$(CORPUS).o $(PAGE).o: %.o: %.c $(B)/flags
	$(call say,CC  ,$@)
	$(Q)$(COMPILE) -MMD -MP -c $< -o $@
$(B)/libhone.a: $(LIB_OBJ)
	$(call say,AR  ,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
# the program without main(), for tests
$(B)/libapp.a: $(filter-out $(MAIN_OBJ),$(APP_OBJ))
	$(call say,AR  ,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(B)/hone: $(MAIN_OBJ) $(B)/libapp.a $(B)/libhone.a
	$(call say,LINK,$@)
	$(Q)$(LINK) $(LINK_LEAN) -o $@ $^ $(APP_LIBS) -lm
$(B)/$(SO): $(LIB_OBJ)
	$(call say,LINK,$@)
	$(Q)$(LINK) $(LINK_LEAN) $(SO_FLAGS) -o $@ $^ $(LIB_LIBS) -lm
$(B)/$(SONAME): $(B)/$(SO)
	@ln -sf $(SO) $@
$(B)/$(SO_LINK): $(B)/$(SONAME)
	@ln -sf $(SO) $@
$(B)/hone.pc: hone.pc.in include/hone.h $(B)/flags FORCE
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@REQUIRES@|$(LIB_DEPS)|' $< >$(NEW)
	@$(if_changed)

# ---- tests -----------------------------------------------------------------------------

# those in tests/fault need a linker that wraps symbols
FAULT_SRC = $(if $(findstring darwin,$(MACHINE)),,tests/fault/*.c)
# one program per file
TEST_SRC := $(sort $(wildcard tests/unit/test_*.c tests/property/*.c tests/golden/*.c $(FAULT_SRC) tests/fuzz/mutate_*.c))
TEST_BIN := $(TEST_SRC:%.c=$(B)/%)
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BIN := $(FUZZ_SRC:%.c=$(B)/%)
# the program with wrong builds in it (tests/mutants): what its files define as __wrap_NAME stands in front of NAME
MUTANTS := $(if $(filter release quick,$(FLAVOUR)),$(if $(findstring darwin,$(MACHINE)),,$(B)/tests/mutants/hone))
MUTANT_WRAPS := $(sort $(shell grep -ho "__wrap_[a-z0-9_]*" tests/mutants/*.c))
# fuzz targets: libFuzzer in the fuzz flavour, else a plain driver that replays and mutates a corpus
FUZZ_MAIN := $(if $(filter fuzz,$(FLAVOUR)),,$(B)/tests/fuzz/driver.o)
FUZZ_SECONDS ?= 60

tests: test-programs
test-programs: $(TEST_BIN) $(FUZZ_BIN) $(MUTANTS)
# those that stage programs of tests/run.sh runs: what is in tests/fuzz is run under AddressSanitizer
run-programs: $(filter-out $(B)/tests/fuzz/%,$(TEST_BIN)) $(MUTANTS)
# all objects and no program: scripts/check.sh sees in their symbols what is part of what
test-objects: $(LIB_OBJ) $(APP_OBJ) $(TEST_BIN:%=%.o) $(FUZZ_BIN:%=%.o) $(FUZZ_MAIN)
# Where they are large, most of them share one library of what they test: 0.7 GB to write instead of 2. Not those that have kernels, an
# allocator, or a table of commands of their own.
ifneq ($(filter asan tsan,$(FLAVOUR)),)
APART := $(patsubst %.c,$(B)/%,$(shell grep -l 'hn_commands\[\] = ' tests/unit/*.c tests/fuzz/*.c))
SHARING := $(if $(findstring darwin,$(MACHINE)),,$(filter-out $(APART),\
	$(filter $(B)/tests/unit/% $(B)/tests/golden/% $(B)/tests/fuzz/fuzz_%,$(TEST_BIN) $(FUZZ_BIN))))
$(B)/libtested.so: $(APP_OBJ) $(LIB_OBJ)
	$(call say,LINK,$@)
	$(Q)$(LINK_TEST) -shared -o $@ $^ $(APP_LIBS) -lm
$(filter $(FUZZ_BIN),$(SHARING)): $(FUZZ_MAIN)
$(SHARING): $(B)/%: $(B)/%.o $(B)/libtested.so
	$(call say,LINK,$@)
	$(Q)$(LINK_TEST) -o $@ $(filter %.o,$^) $(B)/libtested.so -Wl,-rpath,'$$ORIGIN/../..' $(TEST_LIBS) $(APP_LIBS) -lm
endif
# tests/fault defines __wrap_malloc and its kin
$(filter $(B)/tests/fault/%,$(TEST_BIN)) $(B)/none: WRAP = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=mmap
$(filter-out $(SHARING),$(TEST_BIN)): $(B)/%: $(B)/%.o $(B)/libapp.a $(B)/libhone.a
	$(call say,LINK,$@)
	$(Q)$(LINK_TEST) $(WRAP) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(TEST_LIBS) $(APP_LIBS) -lm
# the level avx_vnni for CPUs without its instructions (src/kernels/avx_vnni.h)
ifneq ($(filter x86_64%,$(MACHINE)),)
EMULATED := $(patsubst %.c,$(B)/emulated/%.o,$(wildcard src/kernels/avx_vnni*.c))
$(B)/tests/property/test_kernels: $(EMULATED)
$(EMULATED): ISA = $(ISA_AVX2) -DHN_VNNI_EMULATED
$(B)/emulated/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(COMPILE) -MMD -MP -c $< -o $@
endif
$(B)/tests/mutants/hone: $(patsubst %.c,$(B)/%.o,$(wildcard tests/mutants/*.c)) $(MAIN_OBJ) $(B)/libapp.a $(B)/libhone.a
	$(call say,LINK,$@)
	$(Q)$(LINK_TEST) $(MUTANT_WRAPS:__wrap_%=-Wl,--wrap=%) -o $@ $^ $(APP_LIBS) -lm
# The library stays optimised and its unit tests are not: compiling them takes a third of the time, running them no
# more. tests/property has references that compute, and so have three of tests/unit.
OPT_TESTS_release = -O0 -g1
OPT_TESTS_asan = -O0 -g1
OPT_TESTS_tsan = -O0 -g1
ifneq ($(OPT_TESTS_$(FLAVOUR)),)
ifeq ($(origin CFLAGS),file)
$(B)/tests/unit/%.o $(B)/tests/fault/%.o: private CFLAGS = $(OPT_TESTS_$(FLAVOUR))
# of the property tests those whose references are not the time they take, and targets that asan and fuzz run
ifeq ($(FLAVOUR),release)
$(patsubst %,$(B)/tests/property/test_%.o,answers memory packed scheduler session): private CFLAGS = $(OPT_TESTS_release)
$(B)/tests/fuzz/%.o: private CFLAGS = -O0 -g1
$(patsubst %,$(B)/tests/unit/test_%.o,text_vectors dataset pack_file): private CFLAGS = -O1 -g1
endif
endif
endif
# READ_TESTS: of the tests' own files a compiler that runs none of them is asked for its warnings, not for code
ifneq ($(READ_TESTS),)
$(B)/tests/%.o: private HN_CFLAGS += -fsyntax-only
endif
# Half of all compiling is the kernels. What gcc notes of their variables for a debugger takes as long as the code: lines
# are enough.
OPT_KERNELS_release = -O3 -g1
# those for aarch64 too: their instructions are counted (tests/cross/instructions.sh), and are to be those that users run
OPT_KERNELS_aarch64 = -O3 -g1
# Where nothing is optimised, the library is a little: it costs seconds, and saves the tests minutes.
HOT = src/kernels $(if $(filter quick,$(FLAVOUR)),$(LIB_ROOMS:%=src/%) tests/property)
OPT_KERNELS_quick = -O1
# gcc's allocator of registers over single regions costs a third of compiling what a sanitizer made of them
ifeq ($(findstring clang,$(CC)),)
OPT_KERNELS_asan  = -O1 -g1 -fira-region=one
OPT_KERNELS_tsan  = $(OPT_KERNELS_asan)
OPT_KERNELS_ubsan = $(OPT_KERNELS_asan)
endif
# UBSan looks at what is tested: of the tests' own statements, and of inline functions that they take from headers, those
# of tests/property alone, and of files of src that a test includes
ifeq ($(FLAVOUR)$(findstring clang,$(CC)),asan)
UNSEEN := $(patsubst %.c,$(B)/%.o,$(shell grep -L 'include "[^"]*\.c"' tests/unit/*.c tests/fault/*.c tests/fuzz/*.c))
$(UNSEEN): private SAN_asan += -fno-sanitize=undefined,float-cast-overflow
endif
# Of what UBSan looks at, three take half the time of compiling kernels: a null pointer, an object's size, a pointer that
# goes round. AddressSanitizer sees them where they are used. (Alignment, shifts, sums and conversions are looked at.)
LEAN_SAN = -fno-sanitize=null,object-size,pointer-overflow
ifeq ($(FLAVOUR)$(findstring clang,$(CC)),asan)
$(B)/instrumented/src/kernels/%.o $(B)/emulated/src/kernels/%.o: private SAN_asan += $(LEAN_SAN)
# A look at memory is a call of AddressSanitizer's where nothing takes long (a third less to compile); elsewhere in functions
# that look fifty times, of kernels three hundred times (a fifth less, half for the widest, and their tests take no longer).
# (Two tests compute themselves.)
CALLS = --param asan-instrumentation-with-call-threshold
$(foreach r,backend engine gguf model template text train,$(B)/src/$r/%.o): private SAN_asan += $(CALLS)=50
$(patsubst %,$(B)/tests/%.o,unit/% fault/% fuzz/%) $(patsubst %,$(B)/src/%.o,cli/% serve/% hub/% forge/% lab/%): \
	private SAN_asan += $(CALLS)=0
$(B)/instrumented/src/kernels/%.o $(B)/emulated/src/kernels/%.o: private SAN_asan += $(CALLS)=300
$(patsubst %,$(B)/tests/unit/test_%.o,dataset rwkv): private SAN_asan += $(CALLS)=7000
endif
ifneq ($(OPT_KERNELS_$(FLAVOUR)),)
ifeq ($(origin CFLAGS),file)
$(foreach d,$(HOT),$(B)/$d/%.o) $(B)/instrumented/src/kernels/%.o: private CFLAGS = $(OPT_KERNELS_$(FLAVOUR))
# bits are looked at, not speed
$(B)/emulated/src/kernels/%.o: private CFLAGS = -O1 -g1 $(if $(findstring clang,$(CC)),,-fira-region=one)
endif
endif
# Of the wide ones a debugger's part of that: a fifth less to compile, and their tests take a fifth longer, which is the half of it.
ifeq ($(FLAVOUR)$(findstring clang,$(CC))$(origin CFLAGS),asanfile)
$(B)/instrumented/src/kernels/avx%.o: private CFLAGS = -Og -g1 -fira-region=one
endif
# On x86-64 this one is for CPUs without FMA, where calls for it take the time; others have scalar_fma, which nearly all
# of them know as the reference alone: half the code (which kernels take more instructions so: tests/golden/instructions.tsv).
ifneq ($(filter x86_64%,$(MACHINE)),)
ifeq ($(FLAVOUR)$(origin CFLAGS),releasefile)
$(B)/src/kernels/scalar.o: private CFLAGS = -Os -g1
$(B)/src/kernels/scalar_fma.o: private CFLAGS = -O2 -ftree-vectorize -fvect-cost-model=dynamic -g1
endif
endif
# Rooms where nothing takes long are made small: a third less code, compiled in less time.
COLD = $(patsubst %.c,$(B)/%.o,$(wildcard $(foreach r,cli cli/* serve hub template forge model gguf,src/$r/*.c) \
	$(foreach r,bench judge machine quality record stats,src/lab/$r/*.c) \
	$(foreach n,bench_layer bench_rooms bench_stages bench_train kern_check kern_data kern_run layouts net profile_train,src/lab/inside/$n.c) \
	$(foreach n,call chat gbnf grammar lang pattern reply schema vocab,src/text/$n*.c) \
	$(foreach n,adapter api_ context embed prefix scheduler session_file snapshot,src/engine/$n*.c) \
	$(foreach n,begin checkpoint data grad_new loader look schedule trainer,src/train/$n*.c) src/backend/profiled.c $(foreach n,argv file json known lines mapped options os sealed shown source,src/base/$n*.c)))
OPT_COLD_release = -Os -g1 -ffunction-sections -fdata-sections
# (what runs under emulation is a small part of them)
OPT_COLD_aarch64 = -O0 -g1
# Rooms that hand work out, and what measures from within: loops over rows in vectors, but unrolled for nobody. Encoders of
# K-quants, attention's backward pass and the loss likewise, which are as fast so (docs/LAB.md, 2026-12-01).
OPT_WARM_release = -O2 -ftree-vectorize -fvect-cost-model=dynamic -g1
ifneq ($(OPT_WARM_$(FLAVOUR)),)
ifeq ($(origin CFLAGS),file)
$(foreach d,backend engine lab/inside,$(B)/src/$d/%.o) $(B)/src/text/encode.o \
	$(patsubst %,$(B)/src/%.o,quant/quantize_k train/attn_grad train/loss): \
	private CFLAGS = $(OPT_WARM_$(FLAVOUR))
endif
endif
ifneq ($(OPT_COLD_$(FLAVOUR)),)
ifeq ($(origin CFLAGS),file)
$(COLD): private CFLAGS = $(OPT_COLD_$(FLAVOUR))
endif
endif
# Half of what the sanitizers' compilers do is optimising what takes no time in the tests.
ifneq ($(filter asanfile tsanfile,$(FLAVOUR)$(origin CFLAGS)),)
$(patsubst %.c,$(B)/%.o,$(wildcard $(foreach r,cli cli/* serve hub forge $(addprefix lab/,bench judge machine quality record),src/$r/*.c))): \
	private CFLAGS = -O0 -g1
endif
# Where sanitizers slow everything down, some files are optimised in full: the oracle, which every test of every level runs,
# decoders and hashes of whole files, and the test whose reference is a forward pass in double precision.
ifneq ($(filter asan ubsan tsan,$(FLAVOUR)),)
ifeq ($(origin CFLAGS),file)
$(B)/src/kernels/scalar_fma.o $(B)/instrumented/src/kernels/scalar_fma.o: private CFLAGS = -O3 -g1
$(B)/src/base/sha256.o $(patsubst %.c,$(B)/%.o,$(wildcard src/quant/*.c src/text/ugm.c)): private CFLAGS = -O2 -g1
$(B)/tests/unit/test_rwkv.o: private CFLAGS = -O1 -g1
endif
endif
# Under ThreadSanitizer and AddressSanitizer the levels' files are those of release, and their tables tell what they read
# and write (src/kernels/watched.h).
ifneq ($(filter asan tsan,$(FLAVOUR)),)
# (another compiler's, or those of other flags, are built apart: build/release stays what it was)
PLAIN = $(if $(filter gccfile,$(CC)$(origin CFLAGS)),build/release,$(B)/plain)
LEVELS := $(patsubst %.c,%.o,$(wildcard $(foreach l,scalar avx neon,src/kernels/$l*.c)))
$(B)/levels: FORCE
	+@$(MAKE) -s --no-print-directory FLAVOUR=release B=$(PLAIN) $(LEVELS:%=$(PLAIN)/%)
$(LEVELS:%=$(B)/%): $(B)/%: $(B)/levels
	@mkdir -p $(@D)
	@cmp -s $(PLAIN)/$* $@ || cp -f $(PLAIN)/$* $@
endif
# The property tests of kernels have them instrumented. Of the level avx_vnni they look at the emulated one.
ifeq ($(FLAVOUR),asan)
INSTRUMENTED := $(patsubst %,$(B)/instrumented/%,$(filter-out src/kernels/avx_vnni% %_peaks.o,$(LEVELS)))
$(INSTRUMENTED): $(B)/instrumented/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(COMPILE) -MMD -MP -c $< -o $@
$(patsubst %,$(B)/tests/property/test_%,kernels packed recurrent_kernels rwkv_kernels train_kernels): $(INSTRUMENTED)
endif
# Kernels parse nothing, and clang takes many minutes and gigabytes to instrument them: that is left to gcc's asan.
ifeq ($(FLAVOUR),fuzz)
$(B)/src/kernels/%.o: private SAN_fuzz =
else ifeq ($(FLAVOUR),fuzzcov)
$(B)/src/kernels/%.o: private SAN_fuzzcov =
endif
# scripts/fuzz.sh needs these alone: the targets, and the test that the sanitizer sees our own memory
fuzz-programs: $(FUZZ_BIN) $(B)/tests/unit/test_base
$(filter-out $(SHARING),$(FUZZ_BIN)): $(B)/%: $(B)/%.o $(FUZZ_MAIN) $(B)/libapp.a $(B)/libhone.a
	$(call say,LINK,$@)
	$(Q)$(LINK_TEST) $(if $(filter fuzz,$(FLAVOUR)),-fsanitize=fuzzer) -o $@ $^ $(APP_LIBS) -lm

check:
	+@MAKE='$(MAKE)' B='$(B)' FLAVOUR='$(FLAVOUR)' sh scripts/check.sh $(FILE)

test: all tests
	@B=$(B) FLAVOUR=$(FLAVOUR) sh tests/run.sh programs $(if $(PROGRAM),e2e)
asan ubsan tsan:
	@$(MAKE) --no-print-directory FLAVOUR=$@ tests
	@B=build/$@ FLAVOUR=$@ sh tests/run.sh programs
coverage:
	@$(MAKE) --no-print-directory FLAVOUR=cov tests
	@find build/cov -name '*.gcda' -delete
	@B=build/cov FLAVOUR=cov sh tests/run.sh programs
	@sh scripts/coverage.sh build/cov
fuzz:
	@sh scripts/fuzz.sh $(FUZZ_SECONDS)
fuzz-coverage:
	@sh scripts/fuzz.sh --coverage
lint:
	@sh scripts/lint.sh .
	@CC='$(CC)' sh scripts/lint-selftest.sh
format:
	clang-format -i $(wildcard include/*.h src/*/*.[ch] src/*/*/*.[ch] tests/*/*.[ch])
# One configuration; with SUITE the entries of the catalogue that belong to it.
bench: all
	./benchmark.sh -m models/hone-tiny.gguf -f local -t "make bench" -c "$$(git rev-parse --short HEAD 2>/dev/null || echo none)" $(if $(SUITE),--suite $(SUITE))

# The same outputs on another architecture: digests of kernels, decoders and model
# outputs, from a native program and from one for aarch64 under emulation.
$(B)/cross_check: $(B)/tests/cross/cross_check.o $(B)/libhone.a
	$(call say,LINK,$@)
	$(Q)$(LINK_TEST) -o $@ $^ $(LIB_LIBS) -lm
# tests/property there: cmocka replaced by the few lines it needs
$(B)/cross_kernels: tests/property/test_kernels.c
$(B)/cross_rwkv: tests/property/test_rwkv_kernels.c
$(B)/cross_recurrent: tests/property/test_recurrent_kernels.c
$(B)/cross_train: tests/property/test_train_kernels.c
$(B)/cross_kernels $(B)/cross_rwkv $(B)/cross_recurrent $(B)/cross_train: tests/cross/shim/cmocka.h $(B)/libhone.a
	$(call say,LINK,$@)
	$(Q)$(COMPILE) -Itests/cross/shim $(LDFLAGS) -o $@ $(filter %.c,$^) $(B)/libhone.a $(LIB_LIBS) -lm
# executed instructions of every kernel, counted by a plugin of qemu-user, held against tests/golden/instructions.tsv
$(B)/instructions: tests/cross/instructions.c $(B)/libhone.a
	$(call say,LINK,$@)
	$(Q)$(COMPILE) -DFLAGS='"$(if $(filter file,$(origin CFLAGS)),$(OPT_KERNELS_$(FLAVOUR)),$(CFLAGS))"' \
		$(LDFLAGS) -o $@ $^ $(LIB_LIBS) -lm
build/release/count_instructions.so: tests/cross/count_instructions.c tests/cross/count_instructions.h
	$(call say,LINK,$@)
	$(Q)$(COMPILE) -shared -o $@ $<
cross-programs:
	@$(MAKE) --no-print-directory build/release/cross_check build/release/instructions build/release/count_instructions.so
	@$(MAKE) --no-print-directory FLAVOUR=aarch64 $(addprefix build/aarch64/,cross_check cross_kernels cross_rwkv cross_recurrent \
		cross_train instructions)
cross: cross-programs
	@QEMU='$(QEMU)' sh tests/cross/compare.sh build/release build/aarch64
	@QEMU='$(QEMU)' sh tests/cross/instructions.sh build/release build/aarch64
instructions instructions-accept: cross-programs
	@QEMU='$(QEMU)' sh tests/cross/instructions.sh $(if $(filter %-accept,$@),--accept) build/release build/aarch64

# ---- install ------------------------------------------------------------------------------

D_BIN = $(DESTDIR)$(PREFIX)/bin
D_LIB = $(DESTDIR)$(LIBDIR)
D_INC = $(DESTDIR)$(PREFIX)/include
D_MAN = $(DESTDIR)$(PREFIX)/share/man/man1
D_BASH = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
D_ZSH = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
D_FISH = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
D_DOC = $(DESTDIR)$(PREFIX)/share/doc/hone
D_DATA = $(DESTDIR)$(PREFIX)/share/hone
DOCS = $(wildcard docs/*)
# each has a manual page, hone-NAME.1
COMMANDS = $(sort detokenize $(patsubst src/cli/cmd_%.c,%,$(wildcard src/cli/cmd_*.c)))
# the model that hone chat talks with (3 MB) goes along, unless MODEL=0; libhone.a (5 MB) with STATIC=1 alone
MODEL ?= 1
# debug information stays in the build folder; DEBUG=1 installs it
STRIP ?= strip
stripped = $(if $(DEBUG),true,$(STRIP) $(1) $(2))

# What is read to look something up is installed compressed; what only who works on hone reads is not. Links say so.
DOCS_PACKED = BENCHMARKING CONVERT LORA MODELS RECORDS SERVE STATISTICS TEMPLATES formats
DOCS_OF_SOURCE = DEVELOPING FUZZING LAB
space := $(subst ,, )
alternatives = $(subst $(space),|,$(strip $(1)))
LINKS_THERE = -e 's,\]\((CHANGELOG|(docs/)?($(call alternatives,$(DOCS_PACKED))))\.md,](\1.md.gz,g' \
	-e 's,\[([^]]*)\]\((docs/)?($(call alternatives,$(DOCS_OF_SOURCE)))\.md[^)]*\),\1 (docs/\3.md of the source),g'

install: all
	install -d $(D_BIN) $(D_LIB)/pkgconfig $(D_INC) $(D_MAN) $(D_BASH) $(D_ZSH) $(D_FISH) $(D_DOC)/docs $(D_DOC)/models
	install -m 755 $(B)/hone $(D_BIN)/hone
	$(call stripped,,$(D_BIN)/hone)
	$(if $(STATIC),install -m 644 $(B)/libhone.a $(D_LIB)/libhone.a)
	$(if $(STATIC),$(call stripped,-S,$(D_LIB)/libhone.a))
	install -m 755 $(B)/$(SO) $(D_LIB)/$(SO)
	$(call stripped,-x,$(D_LIB)/$(SO))
	ln -sf $(SO) $(D_LIB)/$(SONAME)
	ln -sf $(SO) $(D_LIB)/$(SO_LINK)
	install -m 644 include/hone.h $(D_INC)/hone.h
	install -m 644 $(B)/hone.pc $(D_LIB)/pkgconfig/hone.pc
	install -m 644 LICENSE README.md CHANGELOG.md $(D_DOC)
	gzip -9nf $(D_DOC)/CHANGELOG.md
	sed -E $(LINKS_THERE) README.md >$(D_DOC)/README.md
	install -m 644 $(filter-out $(DOCS_OF_SOURCE:%=docs/%.md),$(DOCS)) $(D_DOC)/docs
	cd $(D_DOC)/docs && for f in *.md; do sed -E $(LINKS_THERE) $$f >$$f.new && cat $$f.new >$$f && rm -f $$f.new; done && \
		gzip -9nf $(DOCS_PACKED:%=%.md)
	install -m 644 models/README.md $(D_DOC)/models
	$(if $(filter-out 0,$(MODEL)),install -d $(D_DATA) && install -m 644 models/hone-chat.gguf $(D_DATA)/hone-chat.gguf)
	@$(B)/hone version >/dev/null 2>&1 || { echo "no manual, no completion: $(B)/hone does not run here"; exit 0; }; \
	 $(B)/hone help --man >$(D_MAN)/hone.1 && \
	 for c in $(COMMANDS); do $(B)/hone help $$c --man >$(D_MAN)/hone-$$c.1 || exit 1; done && \
	 $(B)/hone help --completion bash >$(D_BASH)/hone && $(B)/hone help --completion zsh >$(D_ZSH)/_hone && \
	 $(B)/hone help --completion fish >$(D_FISH)/hone.fish && \
	 chmod 644 $(D_MAN)/hone.1 $(COMMANDS:%=$(D_MAN)/hone-%.1) $(D_BASH)/hone $(D_ZSH)/_hone $(D_FISH)/hone.fish && \
	 gzip -9nf $(D_MAN)/hone.1 $(COMMANDS:%=$(D_MAN)/hone-%.1)
	@[ -n "$(DESTDIR)" ] || ldconfig 2>/dev/null || true
uninstall:
	rm -f $(D_BIN)/hone $(D_LIB)/libhone.a $(D_LIB)/$(SO) $(D_LIB)/$(SONAME) $(D_LIB)/$(SO_LINK)
	rm -f $(D_INC)/hone.h $(D_LIB)/pkgconfig/hone.pc $(D_MAN)/hone.1* $(COMMANDS:%=$(D_MAN)/hone-%.1*)
	rm -f $(D_BASH)/hone $(D_ZSH)/_hone $(D_FISH)/hone.fish
	rm -f $(D_DOC)/LICENSE $(D_DOC)/README.md $(D_DOC)/CHANGELOG.md* $(D_DOC)/models/README.md
	rm -f $(D_DATA)/hone-chat.gguf
	rm -f $(DOCS:docs/%=$(D_DOC)/docs/%) $(DOCS:docs/%=$(D_DOC)/docs/%.gz)
	-rmdir $(D_DOC)/docs $(D_DOC)/models $(D_DOC) $(D_DATA) 2>/dev/null

# A source archive that knows its commit without git.
dist:
	@mkdir -p build/dist
	@git rev-parse --short=12 HEAD >build/dist/COMMIT
	git archive --format=tar.gz --prefix=hone-$(VERSION)/ --add-file=build/dist/COMMIT -o build/dist/hone-$(VERSION).tar.gz HEAD

ALL_SRC = $(LIB_SRC) $(APP_SRC) $(TEST_SRC) $(FUZZ_SRC)
compile_commands.json: FORCE
	@{ echo '['; for f in $(ALL_SRC); do \
	  case $$f in src/kernels/scalar_fma*) isa='$(ISA_FMA)';; src/kernels/avx512*) isa='$(ISA_AVX512)';; src/kernels/avx2*) isa='$(ISA_AVX2)';; \
	    src/kernels/avx_vnni*) isa='$(ISA_AVX_VNNI)';; \
	    src/kernels/neon_dotprod*) isa='$(if $(filter aarch64% arm64%,$(MACHINE)),$(ISA_NEON_DOTPROD))';; \
	    src/kernels/neon_i8mm*) isa='$(if $(filter aarch64% arm64%,$(MACHINE)),$(ISA_NEON_I8MM))';; *) isa=;; esac; \
	  printf '{"directory":"%s","file":"%s","command":"%s"}\n' "$(CURDIR)" "$$f" \
	    "$(CC) $(CPPFLAGS) $(CFLAGS) $(HN_CFLAGS) $$isa -c $$f"; done | sed '$$!s/$$/,/'; echo ']'; } >$@

clean:
	rm -rf build compile_commands.json
help:
	@echo 'all              $(B)/hone, libhone.a, $(SO_LINK), hone.pc (the default)'
	@echo 'test             all tests of this flavour; ./test.sh runs every check there is'
	@echo 'tests            only build the test programs'
	@echo 'check FILE=PATH  what a change of that file can break: its test programs and scripts'
	@echo 'asan ubsan tsan  the tests under a sanitizer'
	@echo 'cross            the library for aarch64: its outputs equal the native ones (under $(QEMU))'
	@echo 'instructions     executed instructions of every kernel against the table; instructions-accept writes the table anew'
	@echo 'fuzz             FUZZ_SECONDS=$(FUZZ_SECONDS) of fuzzing per target; scripts/fuzz.sh does more'
	@echo 'fuzz-coverage    line coverage of each parser by its fuzz target'
	@echo 'coverage         line coverage of the tests, per file'
	@echo 'lint             the rules of the house; can it still see a breach?'
	@echo 'format           clang-format over all sources'
	@echo 'bench            measure models/hone-tiny.gguf and append to benchmarks/local.md; SUITE=quick|full: the catalogue of hone lab list'
	@echo 'install          to DESTDIR=$(DESTDIR) PREFIX=$(PREFIX), with the model of hone chat unless MODEL=0, with libhone.a by STATIC=1; uninstall removes it'
	@echo 'dist             build/dist/hone-$(VERSION).tar.gz'
	@echo 'compile_commands.json, clean, help'
	@echo 'Variables: FLAVOUR=release|asan|ubsan|tsan|cov|fuzz|fuzzcov|aarch64 B=FOLDER CC CFLAGS LDFLAGS WERROR=1 V=1'

FORCE:
.SECONDARY:
.PHONY: all tests test-programs run-programs test-objects check test asan ubsan tsan coverage fuzz fuzz-programs fuzz-coverage lint format bench cross cross-programs install uninstall dist clean help FORCE
-include $(patsubst %.c,$(B)/%.d,$(LIB_SRC) $(APP_SRC) $(TEST_SRC) $(FUZZ_SRC) tests/cross/cross_check.c $(wildcard tests/mutants/*.c)) $(EMULATED:.o=.d) $(INSTRUMENTED:.o=.d)
