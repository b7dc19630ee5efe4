# hone: plain GNU Make. Objects live per flavour (build/release, build/asan, …).
FLAVOUR ?= release
B ?= build/$(FLAVOUR)
CC ?= gcc
AR ?= ar
PKG_CONFIG ?= pkg-config
CFLAGS ?= -O3 -g
WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-unused-parameter
HN_CFLAGS = -std=gnu11 -Iinclude -Isrc -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno -pthread $(WARN)
all: $(B)/hone
LIB_SRC := $(wildcard src/base/*.c src/quant/*.c src/gguf/*.c src/kernels/*.c src/backend/*.c src/text/*.c src/model/*.c src/engine/*.c src/train/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
CLI_SRC := $(wildcard src/lab/*.c src/serve/*.c src/cli/*.c)
CLI_OBJ := $(CLI_SRC:%.c=$(B)/%.o)
$(B)/src/kernels/avx2.o: HN_CFLAGS += -mavx2 -mfma -mf16c
$(B)/src/kernels/avx512.o: HN_CFLAGS += -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mprefer-vector-width=512
$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(HN_CFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@
$(B)/libhone.a: $(LIB_OBJ)
	rm -f $@; $(AR) rcs $@ $^
$(B)/hone: $(CLI_OBJ) $(B)/libhone.a
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread $^ -ljansson -lutf8proc -lm -o $@
clean:
	rm -rf build
-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d)
.PHONY: all clean
