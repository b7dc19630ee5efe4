/* synth_pieces: an invented vocabulary of the kind of gemma's: pieces with scores (SentencePiece), words of
 * consonant-vowel syllables with and without a leading space, all bytes. Knows no arithmetic. */
#include "forge/synth.h"

#include <stdlib.h>

/* Special tokens stand where gemma has them; a text of any bytes can be encoded, as every byte is a token. */
enum { PAD = 0, EOS, BOS, UNK, SPACE, FIRST_WORD, TURN = 105, END_OF_TURN = 106, FIRST_BYTE = 238, SLOT = 32 };
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, BYTE = 6 };

static int32_t piece(char *dst, int32_t id)
{
    static const char *const first[FIRST_WORD] = { "<pad>", "<eos>", "<bos>", "<unk>", "\xE2\x96\x81" };
    char word[24];
    bool space;
    if (id < FIRST_WORD || id == TURN || id == END_OF_TURN) {
        snprintf(dst, SLOT, "%s", id < FIRST_WORD ? first[id] : id == TURN ? "<start_of_turn>" : "<end_of_turn>");
        return id == UNK ? UNKNOWN : id == SPACE ? NORMAL : CONTROL;
    }
    if (id >= FIRST_BYTE && id < FIRST_BYTE + 256) {
        snprintf(dst, SLOT, "<0x%02X>", (unsigned)(id - FIRST_BYTE));
        return BYTE;
    }
    int32_t at = id - FIRST_WORD - (id > TURN ? 2 : 0) - (id >= FIRST_BYTE ? 256 : 0);
    hn_synth_word(word, at, &space);
    snprintf(dst, SLOT, "%s%s", space ? "\xE2\x96\x81" : "", word);
    return NORMAL;
}

hone_status hn_synth_put_pieces(hn_gguf_writer *w, int32_t n_vocab, bool add_eos, hone_error *err)
{
    hone_status st;
    if (n_vocab < FIRST_BYTE + 256) return HONE_OK; /* too small for the bytes: no tokenizer */
    uint64_t n = (uint64_t)n_vocab;
    char(*text)[SLOT] = calloc(n, sizeof *text);
    hone_str *token = calloc(n, sizeof *token);
    int32_t *type = calloc(n, sizeof *type);
    float *score = calloc(n, sizeof *score);
    if (!text || !token || !type || !score) {
        st = HN_FAIL(err, HONE_E_NOMEM, "vocabulary of %d tokens", n_vocab);
        goto end;
    }
    for (int32_t id = 0; id < n_vocab; id++) {
        type[id] = piece(text[id], id);
        token[id] = (hone_str){ text[id], strlen(text[id]) };
        score[id] = type[id] == NORMAL ? -(float)id : 0; /* shorter words first */
    }
    if ((st = hn_gguf_put_str(w, "tokenizer.ggml.model", "llama", 5, err)) == HONE_OK &&
        (st = hn_gguf_put_str_array(w, "tokenizer.ggml.tokens", token, n, err)) == HONE_OK &&
        (st = hn_gguf_put_array(w, "tokenizer.ggml.scores", HONE_KV_F32, score, n, err)) == HONE_OK &&
        (st = hn_gguf_put_array(w, "tokenizer.ggml.token_type", HONE_KV_I32, type, n, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.bos_token_id", BOS, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.eos_token_id", EOS, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.eot_token_id", END_OF_TURN, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.unknown_token_id", UNK, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.padding_token_id", PAD, err)) == HONE_OK &&
        (st = hn_gguf_put_bool(w, "tokenizer.ggml.add_bos_token", true, err)) == HONE_OK &&
        (!add_eos || (st = hn_gguf_put_bool(w, "tokenizer.ggml.add_eos_token", true, err)) == HONE_OK))
        st = hn_gguf_put_bool(w, "tokenizer.ggml.add_space_prefix", false, err);
end:
    free(text);
    free(token);
    free(type);
    free(score);
    return st;
}

/* ---- WordPiece ------------------------------------------------------------------------------------------- */

/* Where BERT has them; letters, digits and signs behind them, at the beginning of words and within. */
enum { WP_UNK = 100, WP_CLS, WP_SEP, WP_MASK, FIRST_CHAR, N_CHAR = '~' - '!' + 1, WP_WORD = FIRST_CHAR + 2 * N_CHAR };

static int32_t word_piece(char *dst, int32_t id)
{
    static const char *const special[] = { "[UNK]", "[CLS]", "[SEP]", "[MASK]" };
    char word[24] = "";
    bool begins;
    if (id < FIRST_CHAR) {
        if (id == 0) snprintf(dst, SLOT, "[PAD]");
        else if (id < WP_UNK) snprintf(dst, SLOT, "[unused%d]", (int)id - 1);
        else snprintf(dst, SLOT, "%s", special[id - WP_UNK]);
        return CONTROL;
    }
    if (id < WP_WORD) {
        begins = (id - FIRST_CHAR) % 2;
        word[0] = (char)('!' + (id - FIRST_CHAR) / 2);
    } else {
        hn_synth_word(word, id - WP_WORD, &begins);
    }
    snprintf(dst, SLOT, "%s%s", begins ? "\xE2\x96\x81" : "", word);
    return NORMAL;
}

hone_status hn_synth_put_wordpieces(hn_gguf_writer *w, int32_t n_vocab, hone_error *err)
{
    hone_status st;
    if (n_vocab < WP_WORD) return HONE_OK; /* too small for the characters: no tokenizer */
    uint64_t n = (uint64_t)n_vocab;
    char(*text)[SLOT] = calloc(n, sizeof *text);
    hone_str *token = calloc(n, sizeof *token);
    int32_t *type = calloc(n, sizeof *type);
    if (!text || !token || !type) {
        st = HN_FAIL(err, HONE_E_NOMEM, "vocabulary of %d tokens", n_vocab);
        goto end;
    }
    for (int32_t id = 0; id < n_vocab; id++) {
        type[id] = word_piece(text[id], id);
        token[id] = (hone_str){ text[id], strlen(text[id]) };
    }
    if ((st = hn_gguf_put_str(w, "tokenizer.ggml.model", "bert", 4, err)) == HONE_OK &&
        (st = hn_gguf_put_str_array(w, "tokenizer.ggml.tokens", token, n, err)) == HONE_OK &&
        (st = hn_gguf_put_array(w, "tokenizer.ggml.token_type", HONE_KV_I32, type, n, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.cls_token_id", WP_CLS, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.seperator_token_id", WP_SEP, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.unknown_token_id", WP_UNK, err)) == HONE_OK &&
        (st = hn_gguf_put_u32(w, "tokenizer.ggml.padding_token_id", 0, err)) == HONE_OK)
        st = hn_gguf_put_u32(w, "tokenizer.ggml.token_type_count", 2, err);
end:
    free(text);
    free(token);
    free(type);
    return st;
}
